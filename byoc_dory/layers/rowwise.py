"""Functions of the rows of a matrix: softmax and norms in integers, activations of single bytes.

Each class describes a function; the formulas here define it, and it is computed by TVM
(`patterns`), by an independent interpreter (tests) and by the accelerators' C.  ``//`` and ``>>``
round down, ``trunc`` rounds toward zero, ``isqrt`` is the integer square root, ``clip`` saturates
at the bounds of int8.  x is a row of n bytes (int8 or uint8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from byoc_dory.layers.layer import Array


@dataclass(frozen=True)
class TableSoftmax:
    """``y = e * (levels - 1) // sum(e)`` with ``e = exponentials[max(x) - x]``; uint8.

    Attributes:
        exponentials: 256 non-negative entries, one per distance from the row's maximum.
        levels: number of output levels, at most 256.
    """

    exponentials: tuple[int, ...]
    levels: int = 256


@dataclass(frozen=True)
class ItaSoftmax:
    """The Integer Transformer Accelerator's softmax with powers of two (ITAMax).

    Let ``R(d) = (d + 2**(step_bits-1)) >> step_bits`` (R(d) = d if step_bits is 0), and initially m
    = -128 and S = 0.  For each group of ``group`` elements in order: ``m' = max(m, group)``, ``S =
    (S >> R(m' - m)) + sum(256 >> R(m' - x))``, ``m = m'``.  Then ``I = numerator // S`` and ``y = I
    >> R(m - x)``.

    Attributes:
        group: number of elements per update of maximum and sum; 0: the whole row at once.
        step_bits: 5 as published (32 input steps halve a probability), or 0 (every step does).
        numerator: 65280 on the accelerator (y up to 255, uint8); ``(levels - 1) * 256`` or
            ``(levels / 2 - 1) * 256`` in the files of the PULP flow.
    """

    group: int = 16
    step_bits: int = 5
    numerator: int = 65280


@dataclass(frozen=True)
class FixedPointSoftmax:
    """TFLite's softmax in gemmlowp's fixed point; output scale 1/256, zero point -128.

    Attributes:
        multiplier, left_shift: Q31 factor and shift that convert a difference to Q5.26.
    """

    multiplier: int
    left_shift: int


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """``clip((trunc((x - m) * weight / s) + bias) >> shift)``.

    ``m = trunc(sum(x) / n)`` and ``s = isqrt(sum((x - m)**2) // n + 1)``.

    Attributes:
        weight, bias: int32 [n].
        shift: number of bits of the right shift.
    """

    weight: Array
    bias: Array
    shift: int


@dataclass(frozen=True, eq=False)
class RmsNorm:
    """``clip(trunc(x * weight / s) >> shift)``, ``s = isqrt(sum(x**2) // n + 1)``."""

    weight: Array
    shift: int


@dataclass(frozen=True, eq=False)
class AffineNorm:
    """``clip(((x * weight + bias) * mul) >> shift)``, without statistics (MobileBERT's NoNorm).

    Attributes:
        weight, bias: int32 [n].
        mul: a factor.
        shift: number of bits of the right shift.
    """

    weight: Array
    bias: Array
    mul: int
    shift: int


@dataclass(frozen=True, eq=False)
class TableMap:
    """Any function of a single byte, ``y = table[x]``.

    Attributes:
        table: uint8 [256], indexed by the byte x; its entries are the bytes y, both in two's
            complement.
    """

    table: Array


@dataclass(frozen=True)
class ItaGelu:
    """The Integer Transformer Accelerator's GELU, including the requantization after it.

    ``x = max(x, -127)``, ``e = sgn(x) * ((min(|x|, -b) + b)**2 + c)``, ``g = x * (e + c)``, and ``y
    = clip(round_half_up(g * mul / 2**shift) + add)``, like the accelerator's requantization.

    Attributes:
        b, c: 16-bit parameters of the polynomial, with ``b`` not positive.
        mul: 8-bit unsigned factor.
        shift: number of bits of the right shift, rounded half up (0: no shift).
        add: int8 summand.
    """

    b: int
    c: int
    mul: int
    shift: int
    add: int

    def table(self) -> TableMap:
        """Return the same function as a table for all int8 values."""
        x = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
        x = np.maximum(x, -127)
        e = np.sign(x) * ((np.minimum(np.abs(x), -self.b) + self.b) ** 2 + self.c)
        product = x * (e + self.c) * self.mul
        half = (product >> (self.shift - 1)) & 1 if self.shift else 0
        y = np.clip((product >> self.shift) + half + self.add, -128, 127)
        return TableMap(y.astype(np.int8).view(np.uint8))


RowFunction: TypeAlias = (
    TableSoftmax
    | ItaSoftmax
    | FixedPointSoftmax
    | LayerNorm
    | RmsNorm
    | AffineNorm
    | TableMap
    | ItaGelu
)
