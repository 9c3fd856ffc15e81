"""The rounding of a sum of two terms in float32, in integers.

A float32 has 24 bits, so that a term and its sum with another one may each be rounded before the
sum is rounded to an integer.  This matters only close to a tie: elsewhere the exact sum has the
same nearest integer.  Hosts round in 64 bits, and as float32 does only where it can matter, which
is for about one of ten thousand elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm import tirx

from patterns.ops.float32.let import Definitions

__all__ = ["TwoSteps", "nearest"]

_BITS = 24


def nearest(value: int) -> int:
    """Return an integer rounded to 24 bits, ties to even, as float32 does."""
    excess = abs(value).bit_length() - _BITS
    if excess <= 0:
        return value
    odd = (value >> excess) & 1
    return (value + (1 << (excess - 1)) - 1 + odd) >> excess << excess


@dataclass(frozen=True)
class TwoSteps:
    """``rint(float32(float32(first) + second))`` of int64 terms in steps of ``2**-exponent``.

    Attributes:
        exponent: number of fraction bits, 1 to 40.
        first, total: largest magnitudes of the first term and of the sum.
    """

    exponent: int
    first: int
    total: int

    @property
    def reach(self) -> int:
        """The largest distance by which both roundings to float32 move a sum."""
        return sum((1 << max(n.bit_length() - _BITS, 0)) >> 1 for n in (self.first, self.total))

    def rounded(self, block: Definitions, first: Any, second: Any) -> Any:
        """Return the nearest integer, int64, with definitions in a block."""
        amount, half = _constant(self.exponent), 1 << (self.exponent - 1)
        first = block.bind("first", first, "int64")
        second = block.bind("second", second, "int64")
        total = block.bind("total", first + second, "int64")
        # One less, so that a tie is between the two even where nothing moves.
        low = block.bind("low", (total + _constant(half - self.reach - 1)) >> amount, "int64")
        high = (total + _constant(half + self.reach)) >> amount
        close = Definitions()
        moved = close.bind("moved", _float32(_float32(first) + second), "int64")
        odd = (moved >> amount) & _constant(1)
        even = close.around((moved + _constant(half - 1) + odd) >> amount)
        return tirx.Select(low == high, low, even)


def _float32(value: Any) -> Any:
    return tirx.Cast("int64", tirx.Cast("float32", value))


def _constant(value: int) -> Any:
    return tirx.const(value, "int64")
