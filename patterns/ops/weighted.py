"""Products with constant weights: their sums in numpy, and bounds of these.

Everything is exact integer arithmetic.  Sums are a floating-point matrix product whose partial sums
provably stay integers below 2**24 (float32) or 2**53 (float64), so the result depends neither on
the library behind numpy nor on its number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from patterns.op import Work
from patterns.ops.requantize import shifted
from patterns.relax_op import ComposedOp

if TYPE_CHECKING:
    from byoc_dory.layers import Shift
    from patterns.op import Range


@dataclass(frozen=True, eq=False)
class WeightedOp(ComposedOp):
    """Base of products with constant weights.

    Attributes:
        weight: ``[K, C / groups, ...]``.
    """

    work = Work.PRODUCT

    weight: Array

    def compute(self, inputs: Sequence[Array], pad: int = 0) -> Array:
        """See `Op.compute`; ``pad`` is the value of the padding."""
        raise NotImplementedError

    def operands(self, x: Array, pad: int = 0) -> Array:
        """Return the operands of every sum.

        Args:
            x: ``[N, C]``, or ``[N, y, x, C]`` for a convolution.
            pad: value of the padding.

        Returns:
            ``[B, N, ..., D]`` for B parts of the weights that read operands of their own, in the
            order of ``weight.reshape(B, -1, D)``.
        """
        return x[None]

    def accumulate(self, x: Array, pad: int = 0) -> Array:
        """Return the sums without bias: integers in a floating-point array ``[N, ..., K]``.

        Args:
            x: integers as for `operands`.
            pad: value of the padding.
        """
        matrix = self.weight.reshape(len(self.weight), -1).T
        dtype = self._float(x)
        (rows,) = self.operands(x.astype(dtype), pad)
        sums = rows.reshape(-1, len(matrix)) @ matrix.astype(dtype)
        return np.asarray(sums.reshape(*rows.shape[:-1], -1))

    def _float(self, x: Array) -> str:
        """A type that holds every partial sum exactly."""
        bound = accumulator_bound(self.weight, np.zeros(1), x.dtype.name)
        return "float32" if bound < 1 << 24 else "float64"


def accumulator_bound(weight: Array, bias: Array, dtype: str = "int8") -> int:
    """Return the largest possible |accumulator|: |bias| + 128 * sum |w| (255 if unsigned).

    Args:
        weight: int8 weights, one row (or filter) per output channel.
        bias: int32, one number per output channel.
        dtype: type of the input.
    """
    largest = {"int8": 128, "uint8": 255}[dtype]
    rows = np.abs(weight.astype("int64")).reshape(weight.shape[0], -1).sum(axis=1)
    return int((rows * largest + np.abs(bias.astype("int64"))).max())


def weighted_range(
    weight: Array, bias: Array, read: Range, padded: bool, requant: Shift, clip: Range
) -> Range:
    """Return the output range of a product that is requantized by one right shift.

    Args:
        weight, bias: weight and bias as for `accumulator_bound`.
        read: range of the input.
        padded: whether zeros are also read.
        requant, clip: requantization and clip of the operator.
    """
    low, high = read
    if padded:
        low, high = min(low, 0), max(high, 0)
    rows = weight.reshape(len(weight), -1).astype(np.int64)
    positive = np.maximum(rows, 0).sum(axis=1)
    negative = np.minimum(rows, 0).sum(axis=1)
    sums = bias.astype(np.int64)
    least = int((sums + positive * low + negative * high).min())
    most = int((sums + positive * high + negative * low).max())
    return shifted(least, most, requant, clip)
