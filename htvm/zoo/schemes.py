"""The schemes in which a network of the zoo can be drawn; see `htvm.zoo.drawing`."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["SCHEMES", "Layout", "Scheme"]

Scheme: TypeAlias = Literal["8-bit", "ternary", "mixed"]
Layout: TypeAlias = Literal["NHWC", "NCHW"]

SCHEMES: tuple[Scheme, ...] = ("8-bit", "ternary", "mixed")
