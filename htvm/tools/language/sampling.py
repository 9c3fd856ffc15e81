"""The choice of the next token, in integers: the same on every machine, and in generated C.

A token's weight is ``2 ** -(sharpness * (highest - score) / 65536)``.  The exponent is split into
whole halvings, which are shifts, and sixteenths, between which a table is interpolated.  Random
numbers come from SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
OOPSLA 2014), of which the upper 32 bits are used.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import InputError

if TYPE_CHECKING:
    from byoc_dory.layers import Array

HALVINGS = (
    65536, 62757, 60097, 57549, 55109, 52773, 50535, 48393, 46341,
    44376, 42495, 40693, 38968, 37316, 35734, 34219, 32768,
)  # fmt: skip
"""``round(65536 * 2 ** (-i / 16))``: what 0 to 16 sixteenths of a halving leave."""

LARGEST_VOCABULARY = 65535
"""So that the sum of all weights fits 32 bits."""

_FRACTION_BITS = 12  # of an exponent, below its sixteenths
_MOST = 31  # halvings that leave nothing of 65536, and can be shifted
_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF


def sharpness_of(temperature: float, scale: float) -> int:
    """Return how fast weights fall: halvings for each step of a score, in 1/65536.

    Args:
        temperature: 0 for the highest score alone; 1 for the model's own probabilities; above,
            more random ones.
        scale: real value of one step of a score.

    Returns:
        0 if the temperature is 0; else ``65536 * scale * log2(e) / temperature``, rounded, 1 to
        2**32 - 1.

    Raises:
        InputError: the temperature is negative or no number.
    """
    known = isinstance(temperature, (int, float, np.integer, np.floating))
    if not known or isinstance(temperature, bool) or not 0 <= temperature < math.inf:
        raise InputError(
            f"the temperature cannot be {temperature!r}",
            where="option 'temperature'",
            hint="0 takes the most probable token, 1 draws with the model's probabilities",
        )
    if temperature == 0:
        return 0
    found = 65536 * scale * math.log2(math.e) / float(temperature)
    return min(max(round(min(found, float(_MASK32))), 1), _MASK32)


class Draws:
    """Random numbers of 32 bits that depend on the seed alone.

    Args:
        seed: whole number, of which 64 bits are used.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK64

    def next(self) -> int:
        """Return the next number, 0 to 2**32 - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK64
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
        return (z ^ (z >> 31)) >> 32


def weights(scores: Array, sharpness: int) -> Array:
    """Return the weight of each token, int64 [vocabulary]; that of the highest score is 65536.

    Args:
        scores: int32 [vocabulary].
        sharpness: from `sharpness_of`, at least 1.
    """
    wide = scores.astype("int64")
    # Up to 2**32 * 2**32, which uint64 holds.
    exponent = (wide.max() - wide).astype("uint64") * np.uint64(sharpness)
    whole = np.minimum(exponent >> np.uint64(16), _MOST).astype("int64")
    rest = (exponent & np.uint64(0xFFFF)).astype("int64")
    sixteenth, fraction = rest >> _FRACTION_BITS, rest & ((1 << _FRACTION_BITS) - 1)
    table = np.asarray(HALVINGS, "int64")
    left, right = table[sixteenth], table[sixteenth + 1]
    return (left - (((left - right) * fraction) >> _FRACTION_BITS)) >> whole


def pick(scores: Array, sharpness: int, draws: Draws) -> int:
    """Return the next token's id.

    Args:
        scores: int32 [vocabulary].
        sharpness: 0 for the highest score, of equal ones that of the lower id; else a token is
            drawn with `weights`, and one number is taken from ``draws``.
        draws: where random numbers come from.
    """
    if sharpness == 0:
        return int(np.argmax(scores))
    sums = np.cumsum(weights(scores, sharpness))
    # uint32 * uint32 >> 32: below the sum of all weights.
    place = (draws.next() * int(sums[-1])) >> 32
    return int(np.searchsorted(sums, place, side="right"))
