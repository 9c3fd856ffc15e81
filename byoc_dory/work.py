"""`Work`: the kinds of work that operators cause on a host."""

from __future__ import annotations

from enum import Enum


class Work(Enum):
    """The kind of work of an operator on a host, from which cycles and code sizes are estimated."""

    NOTHING = "nothing"
    """No instructions: only another shape for the same bytes."""
    MOVE = "move"
    """One load and one store per element of the result."""
    SUM = "sum"
    """A sum of requantized elements."""
    WINDOW = "window"
    """A sum or a maximum over windows, or over whole axes."""
    SOFTMAX = "softmax"
    """Exponentials and a division per row."""
    REAL = "real"
    """Float32 arithmetic, for which most hosts have no unit."""
    PRODUCT = "product"
    """Multiply-accumulates."""
    OTHER = "other"
    """Work without an estimate."""
