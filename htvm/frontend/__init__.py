"""Reading files and modules from other tools into the integer form."""

from __future__ import annotations

from htvm.frontend.load import load

__all__ = ["load"]
