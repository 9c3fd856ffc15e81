"""onnxruntime's requantization, which uses float32, in exact integer arithmetic.

Its CPU kernels compute ``rint(float32(acc) * scale)`` with a float32 scale: the accumulator is
rounded to 24 bits, then the product is, and the result is rounded to an integer, each time to
nearest, ties to even.  A host without a floating-point unit needs about a hundred instructions for
this.

A float32 is ``mantissa * 2**-shift`` with a 24-bit mantissa; ``acc * mantissa`` fits 64 bits
exactly.  The rounding of the product can only affect whether the result is a tie: it moves products
onto ``f + 1/2`` that are within half a unit of the last of 24 bits.  This distance depends on the
magnitude of ``f + 1/2``; the test for a tie takes it into account, so the integers equal the floats
for every accumulator.

A float32 has 24 bits, so that a term and its sum with another one may each be rounded before the
sum is rounded to an integer (`TwoSteps`).  This matters only close to a tie: elsewhere the exact
sum has the same nearest integer.  Hosts round in 64 bits, and as float32 does only where it can
matter, which is for about one of ten thousand elements.

Conversion of float32 to 8 bits rounds ties to even, too; int32 sums become float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array, OnnxRequant
from patterns.op import TensorType, operator
from patterns.ops.broadcast import broadcast_load
from patterns.ops.float32.base import Definitions, within
from patterns.ops.float32.quantize import Quantize
from patterns.primitive import PrimitiveOp, call_primitive, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from patterns.op import Range


EXACT_BELOW = 1 << 24
"""Integers with smaller magnitudes are exact in float32."""

_LARGEST_SHIFT = 62
"""Scales with a larger shift give 0 for every accumulator."""


def float_scale(scale: float) -> tuple[int, int]:
    """Return a positive float32 as ``mantissa * 2**-shift``, with the mantissa in [2**23, 2**24).

    Scales that take every int32 to zero become (0, 62).

    Raises:
        UnsupportedError: the scale is not positive and finite, or is at least 2**23.
    """
    if not math.isfinite(scale) or scale <= 0:
        raise UnsupportedError(f"a scale ratio of {scale}", hint="scales must be positive, finite")
    fraction, exponent = math.frexp(float(np.float32(scale)))
    mantissa, shift = int(fraction * 2**24), 24 - exponent
    if shift > _LARGEST_SHIFT or mantissa == 0:
        return 0, _LARGEST_SHIFT
    if shift < 1:
        raise UnsupportedError(f"a scale ratio of {scale:g}", hint="it must be below 2**23")
    return mantissa, shift


# ------------------------------------------------------------------------------ tensor expressions


def _wide(value: Any) -> Any:
    return tirx.Cast("int64", value)


def _constant(value: int) -> Any:
    return tirx.const(value, "int64")


def float_product(acc: Any, mantissa: Any, shift: Any, *, large: bool, saturate: bool) -> Any:
    """Return ``rint(float32(acc) * float32(mantissa * 2**-shift))`` as int32, without floats.

    Exact where the result's magnitude is below 2**22; a clip to 8 or 16 bits saturates all others.

    Args:
        acc: int32.
        mantissa, shift: int32, as returned by `float_scale`.
        large: whether ``acc`` can reach 2**24.
        saturate: whether the result can exceed int32; it is then kept within 2**30.
    """
    # The only conversion that is cheaper when left to the compiler's library, because few layers
    # are so large.
    value = _wide(tirx.Cast("float32", acc)) if large else _wide(acc)
    product, shift = value * _wide(mantissa), _wide(shift)
    # Twice the tie nearest to the product, an odd number.
    tie = (product >> (shift - _constant(1))) | _constant(1)
    result = _pulled(product, tie, shift)
    if saturate:
        limit = _constant(1 << 30)
        result = tirx.max(tirx.min(result, limit), -limit)
    return tirx.Cast("int32", result)


def _pulled(product: Any, tie: Any, shift: Any) -> Any:
    """Return the integer on the float32 product's side of the tie, or the even one for a tie."""
    distance = product - (tie << (shift - _constant(1)))
    # In units of 2**(shift - 25), in which the leading bit of ``tie`` tells how far the rounding
    # moves the product; minus one, so that the bounds belong to the tie.
    outside = tirx.max(tirx.abs(distance) - _constant(1), _constant(0))
    outside = outside << tirx.max(_constant(25) - shift, _constant(0))
    outside = outside >> tirx.max(shift - _constant(25), _constant(0))
    size = tirx.abs(tie)
    # Whether the leading bit of ``outside`` is below that of ``size``.
    on_tie = _wide(outside < size) & _wide(outside < (outside ^ size))
    below, above = tie >> _constant(1), _wide(distance > _constant(0))
    # Not written as a selection, whose condition TVM's simplifier would work on for minutes.
    return below + (below & on_tie) + (above & (on_tie ^ _constant(1)))


# ------------------------------------------------------------------------------ builder


def onnx_requantize(
    bb: BlockBuilder, acc: Expr, requant: OnnxRequant, name: str, axis: int, bound: int
) -> Var:
    """Scale an int32 tensor; zero point, clip and cast come afterwards.

    The constant ``factors`` is int32 ``[2, channels]``: the multipliers, then the shifts.

    Args:
        bb: builder to write with.
        acc: the accumulator, int32.
        requant: requantization.
        name: name of the operator that it belongs to.
        axis: channel axis of ``acc``.
        bound: largest possible magnitude of ``acc``.
    """
    shape, channels = shape_of(acc), len(requant.multiplier)
    large = bound >= EXACT_BELOW
    factors = zip(requant.multiplier, requant.shift, strict=True)
    saturate = any((bound * multiplier) >> shift >= 1 << 30 for multiplier, shift in factors)
    func = _requantizing(shape, channels, axis, large, saturate)
    constant = relax.const(np.array([requant.multiplier, requant.shift], "int32"), "int32")
    return call_primitive(bb, func, [acc, constant], shape, "int32", name)


# TVM simplifies the body for a tenth of a second, and layers of large networks repeat.
@lru_cache(maxsize=256)
def _requantizing(
    shape: tuple[int, ...], channels: int, axis: int, large: bool, saturate: bool
) -> tirx.PrimFunc:
    """Return the function of `onnx_requantize`; flags as of `float_product`."""

    def body(value: te.Tensor, factor: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            channel = index[axis] if channels > 1 else 0
            mantissa, shift = factor[0, channel], factor[1, channel]
            return float_product(value(*index), mantissa, shift, large=large, saturate=saturate)

        return te.compute(extents(shape), element, name="requantized")

    inputs = [("acc", shape, "int32"), ("factors", (2, channels), "int32")]
    return primitive("onnx_requantize", inputs, body, {"axis": axis, "large": int(large)})


def read_factors(factors: Array, output_zero_point: int) -> OnnxRequant:
    """Return the requantization with these constant ``factors``."""
    multipliers, shifts = (tuple(int(value) for value in row) for row in factors)
    return OnnxRequant(multipliers, shifts, output_zero_point)


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


ROUNDING = (-2000.0, 2000.0, 1.5 * 2**23, 1.5 * 2**23)
"""What `rounded` reads: bounds beyond 8 bits, whatever the zero point, and a number that rounds to
integers when it is added, twice, so that nothing is cancelled."""


def rounded(
    block: Definitions, value: Any, figures: te.Tensor, first: int, zero_point: int, clip: Range
) -> Any:
    """Return ``rint(value) + zero_point`` as int8, ties to even, clipped.

    Args:
        block: definitions in front of the result.
        value: float32.
        figures: float32, with `ROUNDING` from ``first`` on.
        first: see ``figures``.
        zero_point, clip: of the result.
    """
    inside = within(block, value, figures[first], figures[first + 1])
    near = block.bind("near", (inside + figures[first + 2]) - figures[first + 3])
    low, high = (tirx.const(bound, "int32") for bound in clip)
    moved = tirx.Cast("int32", near) + zero_point
    return block.around(tirx.Cast("int8", tirx.max(tirx.min(moved, high), low)))


_COARSE = 1.2e7  # near this number float32 values are 1 apart; it is even and printed exactly


@operator
@dataclass(frozen=True, eq=False)
class OnnxQuantize(Quantize):
    """``rint(x / step) + zero_point``, ties to even, saturated; a NaN gives the upper end.

    Attributes:
        step, zero_point, dtype: as in `patterns.ops.float32.quantize.Quantize`.
    """

    tag = "onnx_quantize"

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, step = tensors
        limits = np.iinfo(self.dtype)
        # Variables, because TVM would repeat the division wherever its result is used, and
        # would cancel the addition and subtraction.
        ratio, below, value, moved = (
            tirx.Var(part, "float32") for part in ("ratio", "below", "value", "moved")
        )
        # Where float32 values are 1 apart, every sum is rounded to an integer, ties to even.
        coarse = tirx.const(_COARSE, "float32")
        result = tirx.Cast("int32", moved - coarse) + self.zero_point
        result = tirx.max(tirx.min(result, int(limits.max)), int(limits.min))
        result = tirx.Let(moved, value + coarse, tirx.Cast(self.dtype, result))
        end = self.beyond
        # Written so that a NaN, for which all comparisons are false, goes to the upper end.
        result = tirx.Let(value, tirx.Select(below > -end, below, -end), result)
        result = tirx.Let(below, tirx.Select(ratio < end, ratio, end), result)
        return tirx.Let(ratio, self.ratio(source(*index), step[0]), result)

    def ratio(self, x: Any, step: Any) -> Any:
        """Return a number in steps, given the constant of the scale."""
        return x / step


@operator
@dataclass(frozen=True, eq=False)
class OnnxReal(PrimitiveOp):
    """``float32(x) * factors`` of int32 sums of any shape.

    Attributes:
        factors: float32 factors with the rank of ``x``; axes of size 1 are broadcast.
    """

    kind = "onnx_real"

    factors: Array

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[0].shape, "float32")

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, factor = tensors
        return tirx.Cast("float32", source(*index)) * broadcast_load(factor, index)
