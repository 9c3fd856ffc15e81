"""Saved reports, where users import them: see `htvm.tools.report`."""

from __future__ import annotations

from htvm.tools.report import difference_of, load, load_exploration, save, schema

__all__ = ["difference_of", "load", "load_exploration", "save", "schema"]
