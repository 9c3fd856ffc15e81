"""Functions of the rows of a matrix: softmax and norms in integers, activations of one byte.

Each is a frozen description; what it means is written here in formulas, computed by TVM
(`patterns`), by an independent interpreter (tests) and by the accelerators' C.  ``//`` and ``>>``
round down, ``trunc`` rounds toward zero, ``isqrt`` is the integer square root, ``clip`` saturates
at the bounds of int8.  x is a row of n bytes (int8 or uint8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from byoc_dory.layers.tensor import Array

__all__ = [
    "AffineNorm",
    "ItaGelu",
    "ItaSoftmax",
    "LayerNorm",
    "RmsNorm",
    "RowFunction",
    "TableMap",
    "TableSoftmax",
]


@dataclass(frozen=True)
class TableSoftmax:
    """``y = e * (levels - 1) // sum(e)`` with ``e = exponentials[max(x) - x]``; uint8.

    Attributes:
        exponentials: 256 entries, one per distance from the row's maximum, not negative.
        levels: of the output, at most 256.
    """

    exponentials: tuple[int, ...]
    levels: int = 256


@dataclass(frozen=True)
class ItaSoftmax:
    """The softmax of powers of two that the Integer Transformer Accelerator computes (ITAMax).

    With ``R(d) = (d + 2**(step_bits-1)) >> step_bits`` (R(d) = d where step_bits is 0), m = -128
    and S = 0 at first, for each group of ``group`` elements in order: ``m' = max(m, group)``, ``S =
    (S >> R(m' - m)) + sum(256 >> R(m' - x))``, ``m = m'``.  Then ``I = numerator // S`` and ``y =
    I >> R(m - x)``.

    Attributes:
        group: elements that one update of maximum and sum takes; 0: the whole row at once.
        step_bits: 5 as published (32 steps of the input halve a probability), or 0 (each step).
        numerator: 65280 on the accelerator (y up to 255, uint8); ``(levels - 1) * 256`` or
            ``(levels / 2 - 1) * 256`` in the files of the PULP flow.
    """

    group: int = 16
    step_bits: int = 5
    numerator: int = 65280


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """``clip((trunc((x - m) * weight / s) + bias) >> shift)``.

    ``m = trunc(sum(x) / n)`` and ``s = isqrt(sum((x - m)**2) // n + 1)``.

    Attributes:
        weight, bias: int32 [n].
        shift: right shift.
    """

    weight: Array
    bias: Array
    shift: int


@dataclass(frozen=True, eq=False)
class RmsNorm:
    """``clip(trunc(x * weight / s) >> shift)``, ``s = isqrt(sum(x**2) // n + 1)``; see above."""

    weight: Array
    shift: int


@dataclass(frozen=True, eq=False)
class AffineNorm:
    """``clip(((x * weight + bias) * mul) >> shift)``; no statistics (MobileBERT's NoNorm).

    Attributes:
        weight, bias: int32 [n].
        mul: one factor.
        shift: right shift.
    """

    weight: Array
    bias: Array
    mul: int
    shift: int


@dataclass(frozen=True, eq=False)
class TableMap:
    """Any function of one byte, ``y = table[x]``.

    Attributes:
        table: uint8 [256], indexed by the byte of x; the byte of y, both in two's complement.
    """

    table: Array


@dataclass(frozen=True)
class ItaGelu:
    """The GELU of the Integer Transformer Accelerator with the requantization behind it.

    ``x = max(x, -127)``, ``e = sgn(x) * ((min(|x|, -b) + b)**2 + c)``, ``g = x * (e + c)``, and
    ``y = clip(round_half_up(g * mul / 2**shift) + add)``: see the accelerator's requantization.

    Attributes:
        b, c: of the polynomial, 16 bits, ``b`` not positive.
        mul: 8 bits unsigned.
        shift: right shift, rounded half up (0: none).
        add: int8.
    """

    b: int
    c: int
    mul: int
    shift: int
    add: int

    def table(self) -> TableMap:
        """The same as a table of all int8."""
        x = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
        x = np.maximum(x, -127)
        e = np.sign(x) * ((np.minimum(np.abs(x), -self.b) + self.b) ** 2 + self.c)
        product = x * (e + self.c) * self.mul
        half = (product >> (self.shift - 1)) & 1 if self.shift else 0
        y = np.clip((product >> self.shift) + half + self.add, -128, 127)
        return TableMap(y.astype(np.int8).view(np.uint8))


RowFunction: TypeAlias = (
    TableSoftmax | ItaSoftmax | LayerNorm | RmsNorm | AffineNorm | TableMap | ItaGelu
)
