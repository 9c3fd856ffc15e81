"""What became of a mutated file."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Mutant"]


@dataclass(frozen=True)
class Mutant:
    """What became of a mutant: passed, refused, wrong, crashed, or without oracle; and why."""

    number: int
    case: str
    changes: tuple[str, ...]
    result: str
    reason: str = ""
