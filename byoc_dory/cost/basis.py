"""`Basis`: what a number of cycles is based on."""

from __future__ import annotations

from typing import Literal, TypeAlias

Basis: TypeAlias = Literal["predicted", "measured", "estimated"]
"""An accelerator's cost model; the code itself, simulated; or sizes, where neither is there."""
