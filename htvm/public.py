"""`public`: names what users import by the place they import it from."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["public"]

Named = TypeVar("Named")


def public(named: Named) -> Named:
    """Return a class or function that messages, tracebacks and help call ``htvm.NAME``."""
    named.__module__ = "htvm"
    return named
