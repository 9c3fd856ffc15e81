"""The version of the library, also for ``setup.py``, which cannot import `htvm`."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
