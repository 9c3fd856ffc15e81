"""The console command ``htvm``."""

from __future__ import annotations

from htvm.cli.app import main

__all__ = ["main"]
