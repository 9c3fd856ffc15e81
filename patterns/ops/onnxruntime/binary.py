"""Sums, differences and products of two int8 tensors as onnxruntime's CPU kernels define them.

Its kernels compute in float32 and round once, ties to even; each kernel and each instruction set
adds the same few terms in another order.  Here the float32 factors are taken as exact numbers, the
terms are summed exactly in 64 bits, and the sum is rounded once, ties to even, which is what all
kernels approximate.  The results differ only where a float32 sum happens to be rounded onto a tie
or across it.

Where onnxruntime has no kernel of its own, it dequantizes both tensors, computes in reals, and
quantizes the result: float32, rounded after each step.  For most scales that is the exact result,
rounded before the zero point is added, for every pair of bytes; then no real is computed here.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Add, Array, OnnxRequant
from patterns.op import INT8, Range, Scale, TensorType, Work, operator
from patterns.ops.broadcast import broadcast_load
from patterns.ops.float32.let import Definitions
from patterns.ops.onnxruntime.reals import ROUNDING, rounded
from patterns.ops.sums import sum_layer
from patterns.primitive import extents, sizes_of
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["Function", "OnnxAdd", "OnnxBinary", "aligned"]

Function: TypeAlias = Literal["add", "subtract", "multiply"]

_FINEST = 40
"""Largest number of fraction bits of a sum; factors with more are rounded."""


def aligned(requant: OnnxRequant) -> tuple[tuple[int, ...], int]:
    """Return a sum's factors as integers in steps of 2**-exponent, and the exponent (1 to 40).

    Exact for factors of at least 2**-17; smaller ones keep 40 fraction bits.
    """
    exponent = max(1, min(max(requant.shift), _FINEST))
    factors = [
        multiplier << (exponent - shift)
        if shift <= exponent
        else (multiplier + (1 << (shift - exponent - 1))) >> (shift - exponent)
        for multiplier, shift in zip(requant.multiplier, requant.shift, strict=True)
    ]
    return tuple(factors), exponent


@dataclass(frozen=True, eq=False)
class _Pair(PrimitiveOp):
    """Base of functions of two operands.

    Attributes:
        requant: scales and zero points.  A sum or difference scales each operand by its own factor,
            s_i / s_out; a product has one factor, s_a * s_b / s_out.
        clip: inclusive range of the output.
        steps: the scales of both operands and of the result if it is computed in reals, where the
            zero point is added after rounding; if empty, the exact result is rounded once, with
            its zero point.
    """

    requant: OnnxRequant
    clip: Range = INT8
    steps: tuple[float, ...] = field(default=(), kw_only=True)

    @property
    def computes(self) -> Function:
        """The function of the two operands."""
        return "add"

    @cached_property
    def needs_reals(self) -> bool:
        """Whether steps in reals differ for some bytes from the exact result, rounded once."""
        if not self.steps:
            return False
        every = np.arange(-128, 128)
        a, b = (
            values - zero
            for values, zero in zip(
                (every[:, None], every), self.requant.input_zero_points, strict=True
            )
        )
        factors, exponent = aligned(self.requant)
        exact = _exact(self.computes, a, b, factors)
        near = (exact + (1 << (exponent - 1)) - 1 + ((exact >> exponent) & 1)) >> exponent
        first, second, last = (np.float32(step) for step in self.steps)
        parts = a.astype("float32") * first, b.astype("float32") * second
        with np.errstate(over="ignore"):
            reals = np.rint(_REAL[self.computes](*parts) / last)
        ends = [np.clip(each + self.zero_point, *self.clip) for each in (near, reals)]
        return not np.array_equal(*ends)

    @property
    def zero_point(self) -> int:
        """Integer of the output that represents 0.0."""
        return self.requant.output_zero_point

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        factors, _ = aligned(self.requant)
        largest = 2**16 if self.computes == "multiply" else 2**9
        if max(factors) * largest >= 2**62:
            raise UnsupportedError("an output scale far below those of the inputs")
        return TensorType(_broadcast([part.shape for part in inputs[:2]]))

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: both operands and their factors.

        In reals: the scales, and what rounds.
        """
        a, b = self.operands(inputs)
        if self.needs_reals:
            figures = np.asarray([*self.steps, *ROUNDING], "float32")
            return a, b, Argument("figures", figures)
        factors, _ = aligned(self.requant)
        return a, b, Argument("factors", np.asarray(factors, "int64"))

    def operands(self, inputs: Sequence[Expr]) -> tuple[Argument, Argument]:
        """Return the two operands."""
        a, b = inputs if len(inputs) == 2 else (inputs[0], inputs[0])
        return Argument("a", a), Argument("b", b)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        *parts, factor = tensors
        _, exponent = aligned(self.requant)
        requant = self.requant

        def element(*index: Any) -> Any:
            a, b = (
                tirx.Cast("int32", broadcast_load(part, index)) - zero
                for part, zero in zip(parts, requant.input_zero_points, strict=True)
            )
            if self.needs_reals:
                block = Definitions()
                value = _REAL[self.computes](
                    tirx.Cast("float32", a) * factor[0], tirx.Cast("float32", b) * factor[1]
                )
                ratio, zero = value / factor[2], requant.output_zero_point
                return rounded(block, ratio, factor, 3, zero, self.clip)
            exact = _exact(self.computes, a, b, factor, lambda value: tirx.Cast("int64", value))
            zero = requant.output_zero_point
            before, after = (0, zero) if self.steps else (zero, 0)
            return _rounded(exact, exponent, before, after, self.clip)

        out = _broadcast([sizes_of(part) for part in parts])
        return te.compute(extents(out), element, name=self.computes)


@operator
@dataclass(frozen=True, eq=False)
class OnnxAdd(_Pair):
    """The sum of two int8 tensors of the same shape, which can be a layer."""

    kind = "add"
    tag = "onnx_add"
    work = Work.SUM
    scale = Scale.FREE
    neutral = True

    def layer(self, name: str, inputs: Sequence[tuple[str, TensorType]], output: TensorType) -> Add:
        """See `Op.layer`; its requantization has one multiplier and shift per operand."""
        operands = inputs if len(inputs) == 2 else [inputs[0], inputs[0]]
        return sum_layer(name, operands, output, self.requant, self.clip)


@operator
@dataclass(frozen=True, eq=False)
class OnnxBinary(_Pair):
    """A sum, difference or product of two int8 tensors, broadcast like in numpy.

    Attributes:
        function: name of the function.
        a, b: the first or second operand if it is constant, int8; at most one of them is.
    """

    kind = "onnx_binary"

    function: Function = "add"
    a: Array | None = None
    b: Array | None = None

    @property
    def stem(self) -> str:
        """See `Op.stem`."""
        return self.function

    @property
    def computes(self) -> Function:
        """The function of the two operands."""
        return self.function

    def operands(self, inputs: Sequence[Expr]) -> tuple[Argument, Argument]:
        """Return the two operands, with a constant one in its place."""
        if self.a is not None:
            return Argument("a", self.a, "a"), Argument("b", inputs[0])
        if self.b is not None:
            return Argument("a", inputs[0]), Argument("b", self.b, "b")
        return super().operands(inputs)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in np.broadcast_shapes(*shapes))
    except ValueError as error:
        raise IntegerFormError(f"operands of shapes {shapes[0]} and {shapes[1]}") from error


def _exact(
    function: Function,
    a: Any,
    b: Any,
    factor: Any,
    wide: Callable[[Any], Any] = lambda value: value,
) -> Any:
    """Return the sum, difference or product in steps of the factors; ``wide`` makes 64 bits."""
    if function == "multiply":
        return wide(a * b) * factor[0]
    first, second = wide(a) * factor[0], wide(b) * factor[1]
    return first - second if function == "subtract" else first + second


_REAL = {"add": operators.add, "subtract": operators.sub, "multiply": operators.mul}


def _rounded(exact: Any, exponent: int, before: int, after: int, clip: tuple[int, int]) -> Any:
    """Return ``exact / 2**exponent``, ties to even, clipped to int8.

    ``before`` is added before rounding, and decides which of two integers is even; ``after``, then.
    """
    value = exact + tirx.const(before << exponent, "int64")
    amount, one = tirx.const(exponent, "int64"), tirx.const(1, "int64")
    odd = (value >> amount) & one
    nudged = value + tirx.const((1 << (exponent - 1)) - 1, "int64") + odd
    low, high = (tirx.const(bound - after, "int64") for bound in clip)
    near = tirx.max(tirx.min(nudged >> amount, high), low)
    return tirx.Cast("int8", near + tirx.const(after, "int64") if after else near)
