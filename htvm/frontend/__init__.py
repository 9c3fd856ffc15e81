"""From files and modules of others to the integer form."""

from __future__ import annotations

from htvm.frontend.load import load

__all__ = ["load"]
