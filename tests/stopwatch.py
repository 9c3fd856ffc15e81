"""Helper: limits on CPU time that hold on fast and slow machines alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_ROUNDS = 200_000


def _yardstick() -> float:
    """Return the CPU seconds of a fixed amount of Python: about 0.03 on a recent machine."""
    start = time.process_time()
    table: dict[int, int] = {}
    for number in range(_ROUNDS):
        table[number & 1023] = table.get(number & 511, 0) + number
    return time.process_time() - start


def yardsticks(work: Callable[[], T]) -> tuple[T, float]:
    """Return what ``work`` returns, and its CPU time as a multiple of a fixed amount of Python.

    Other work on the machine can slow both down, so the slower of two yardsticks counts: one before
    and one after.
    """
    before = _yardstick()
    start = time.process_time()
    result = work()
    seconds = time.process_time() - start
    return result, seconds / max(before, _yardstick())
