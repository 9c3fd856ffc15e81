"""Packages of an extra, imported where they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from byoc_dory.errors import DependencyError

__all__ = ["optional"]


def optional(module: str, purpose: str, extra: str = "explore") -> Any:
    """Import a module of an extra.

    Raises:
        DependencyError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DependencyError(
            f"{purpose} need the package '{module.split('.')[0]}', which is not installed",
            where=f"results of htvm.{extra}",
            hint=f"pip install 'htvm[{extra}]'",
        ) from error
