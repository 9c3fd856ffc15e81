"""`Work`: what a host spends its cycles on when it runs an operator."""

from __future__ import annotations

from enum import Enum

__all__ = ["Work"]


class Work(Enum):
    """What a host spends its cycles on; costs and code sizes are asked for by it."""

    NOTHING = "nothing"
    """No instruction at all: another shape of the same bytes."""
    MOVE = "move"
    """One load and one store for each element of the result."""
    SUM = "sum"
    """A sum of requantized elements."""
    WINDOW = "window"
    """A sum or a maximum over windows, or over whole axes."""
    SOFTMAX = "softmax"
    """Exponentials and a division for each row."""
    REAL = "real"
    """Float32 arithmetic, which most hosts have no unit for."""
    PRODUCT = "product"
    """Multiply-accumulates."""
    OTHER = "other"
    """Work for which there is no estimate."""
