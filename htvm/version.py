"""The version of the library, also for ``setup.py``, which cannot import `htvm`."""

from __future__ import annotations

__version__ = "0.1.0"
