"""Matrices that rotate queries and keys by the position of their token (RoPE)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import ModelError

if TYPE_CHECKING:
    from byoc_dory.layers import Array

_BASE = 10000.0
_ONE = 127


def rotations(positions: int, head: int) -> Array:
    """Return the rotation of each position, int8 [positions, head, head].

    A row vector is multiplied from the left.  Its elements i and i + head / 2 are a pair, which is
    rotated by ``position / 10000 ** (2 * i / head)``; 127 represents 1.0, and products are rounded
    toward zero, as in the development set's files.

    Raises:
        ModelError: there is no position, or ``head`` is not even.
    """
    if positions < 1 or head < 2 or head % 2:
        raise ModelError(
            f"no rotations for {positions} positions and heads of {head}",
            where="htvm.tools.language.rotations",
            hint="at least one position, and an even number of elements",
        )
    half = head // 2
    table = np.zeros((positions, head, head), "int8")
    for position in range(positions):
        for i in range(half):
            angle = position * _BASE ** (-2 * i / head)
            cosine, sine = int(_ONE * math.cos(angle)), int(_ONE * math.sin(angle))
            table[position, i, i] = table[position, i + half, i + half] = cosine
            table[position, i, i + half] = sine
            table[position, i + half, i] = -sine
    return table
