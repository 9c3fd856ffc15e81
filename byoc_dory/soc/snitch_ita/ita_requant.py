"""Requantizations in the form that ITA takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ItaRequant:
    """``saturate(((acc * mult) >> shift, rounded half up) + add)``."""

    mult: int
    shift: int
    add: int


def ita_requant(mul: int, shift: int, add: int, max_shift: int) -> ItaRequant | str:
    """Return ``(acc * mul + add) >> shift`` for ITA, or the reason why ITA cannot compute it."""
    if not 0 <= mul <= 255:
        return f"the multiplier is {mul}, not in 0..255"
    if not 0 <= shift <= max_shift:
        return f"the shift is {shift}, not in 0..{max_shift}"
    half = (1 << shift) >> 1
    offset, rest = divmod(add - half, 1 << shift)
    if rest:
        return f"the addend {add} does not round half up: {half} plus a multiple of {1 << shift}"
    if not -128 <= offset <= 127:
        return f"the addend {add} is an offset of {offset}, not in -128..127"
    return ItaRequant(mul, shift, offset)
