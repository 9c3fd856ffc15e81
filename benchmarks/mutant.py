"""What became of a mutated file."""

from __future__ import annotations

from dataclasses import dataclass

from htvm.errors import DefectError, HtvmError

__all__ = ["Mutant", "failure"]


@dataclass(frozen=True)
class Mutant:
    """What became of a mutant: passed, refused, wrong, crashed, or without oracle; and why."""

    number: int
    case: str
    changes: tuple[str, ...]
    result: str
    reason: str = ""


def failure(error: Exception) -> tuple[str, str]:
    """Return the result and the reason of what was not read: refused, or crashed by a defect."""
    if isinstance(error, HtvmError) and not isinstance(error, DefectError):
        return "refused", error.what
    return "crashed", f"{type(error).__name__}: {error}"
