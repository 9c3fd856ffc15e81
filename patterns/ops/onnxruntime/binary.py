"""Sums, differences and products of two int8 tensors as onnxruntime's kernels for x86 compute them.

Its kernel of sums (for AVX2 and later) adds two products to a constant with the zero points, that
of products scales and adds the zero point; both round to float32 after each step, and the result to
an integer, ties to even.  `patterns.ops.onnxruntime.rounding` does the same in integers.  (Kernels
for other CPUs add the same terms in another order, and differ in one of some thousand elements.)

Where onnxruntime has no kernel of its own, it dequantizes both tensors, computes in reals, and
quantizes the result: float32, rounded after each step.  For most scales that is the exact result,
rounded before the zero point is added, for every pair of bytes; then no real is computed here.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Add, Array, OnnxRequant, OnnxSum
from patterns.op import INT8, Operands, Range, Scale, TensorType, Work, operator
from patterns.ops.broadcast import PairOp, broadcast, broadcast_load
from patterns.ops.float32.base import Definitions
from patterns.ops.layers import sum_layer
from patterns.ops.onnxruntime.rounding import ROUNDING, TwoSteps, nearest, rounded
from patterns.primitive import sizes_of

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
class _Pair(PairOp):
    """Base of functions of two operands.

    Attributes:
        requant: scales and zero points.  A sum or difference scales each operand by its own factor,
            s_i / s_out; a product has one factor, s_a * s_b / s_out.
        clip: inclusive range of the output.
        steps: the scales of both operands and of the result if it is computed in reals, where the
            zero point is added after rounding; if empty, it is computed in a kernel.
        kernel: type of the integers and zero points in this kernel.
    """

    requant: OnnxRequant
    clip: Range = INT8
    steps: tuple[float, ...] = field(default=(), kw_only=True)
    kernel: Literal["int8", "uint8"] = field(default="int8", kw_only=True)

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

    @property
    def offset(self) -> int:
        """What the kernel's integers are above int8."""
        return 128 if self.kernel == "uint8" else 0

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        factors, _ = aligned(self.requant)
        largest = 2**16 if self.computes == "multiply" else 2**10
        if max(factors) * largest >= 2**62:
            raise UnsupportedError("an output scale far below those of the inputs")
        return TensorType(broadcast(*(part.shape for part in inputs[:2])))

    def constants(self) -> Mapping[str, Array]:
        """See `PrimitiveOp.constants`: the factors; in reals also the scales, and what rounds."""
        exact, _ = aligned(self.requant)
        factors = {"factors": np.asarray(exact, "int64")}
        if not self.needs_reals:
            return factors
        return {**factors, "figures": np.asarray([*self.steps, *ROUNDING], "float32")}

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        parts, factors, figures = tensors[:2], tensors[2], tensors[-1]
        turned = self.computes != "multiply" and _is_one_along_rows(*map(sizes_of, parts))
        kernel = _Kernel.of(self.requant, self.computes, self.offset, turned)
        block = Definitions()
        a, b = (tirx.Cast("int32", broadcast_load(part, index)) for part in parts)
        if self.steps:
            return self._of_reals(block, a, b, factors, figures)
        made = kernel.result(block, a, b, factors)
        low, high = (_wide(bound) for bound in self.clip)
        return block.around(tirx.Cast("int8", tirx.max(tirx.min(made, high), low)))

    def _of_reals(
        self, block: Definitions, a: Any, b: Any, factors: te.Tensor, figures: te.Tensor
    ) -> Any:
        """Return what steps in reals give, which are computed only where they can matter.

        That is close to a tie: elsewhere the exact result has the same nearest integer.
        """
        zeros, zero = self.requant.input_zero_points, self.zero_point
        integers, exponent = aligned(self.requant)
        a, b = (item - own for item, own in zip((a, b), zeros, strict=True))
        exact = _exact(self.computes, a, b, factors, lambda value: tirx.Cast("int64", value))
        bounds = [_wide(bound - zero) for bound in self.clip]

        def clipped(near: Any) -> Any:
            return tirx.Cast("int8", tirx.max(tirx.min(near, bounds[1]), bounds[0]) + _wide(zero))

        if not self.needs_reals:
            return clipped(_rounded(exact, exponent))
        total, amount = block.bind("total", exact, "int64"), _wide(exponent)
        half, reach = 1 << (exponent - 1), _reach(self.computes, integers)
        # One less, so that a tie is between the two even where nothing moves.
        low = block.bind("low", (total + _wide(half - reach - 1)) >> amount, "int64")
        high = (total + _wide(half + reach)) >> amount
        first, second = (tirx.Cast("float32", item) * figures[at] for at, item in enumerate((a, b)))
        ratio = _REAL[self.computes](first, second) / figures[2]
        reals = rounded(Definitions(), ratio, figures, 3, zero, self.clip)
        return block.around(tirx.Select(low == high, clipped(low), reals))


@dataclass(frozen=True)
class _Kernel:
    """A kernel of onnxruntime.

    Attributes:
        function: what it computes.
        zeros: zero points of the operands, int8.
        offset: what its integers are above int8.
        constant: what it adds, in steps of ``2**-exponent``.
        rounding: how it rounds.
        turned: whether a sum has its operands in the other order.
    """

    function: Function
    zeros: tuple[int, ...]
    offset: int
    constant: int
    rounding: TwoSteps
    turned: bool

    @classmethod
    def of(cls, requant: OnnxRequant, function: Function, offset: int, turned: bool) -> _Kernel:
        """Return the kernel for a requantization, integers above int8 by so much, and an order."""
        (factors, exponent), zeros = aligned(requant), requant.input_zero_points
        constant = (requant.output_zero_point + offset) << exponent
        if function == "multiply":
            first = 2**16 * factors[0]
            second = abs(constant)
        else:
            a, b = ((zero + offset) * factor for zero, factor in zip(zeros, factors, strict=True))
            b = -b if function == "subtract" else b
            first, last = (b, a) if turned else (a, b)
            constant = nearest(constant - nearest(first + nearest(last)))
            second = 2**8 * max(factors)
            first = abs(constant) + second
        rounding = TwoSteps(exponent, first, first + second)
        return cls(function, zeros, offset, constant, rounding, turned)

    def result(self, block: Definitions, a: Any, b: Any, factors: te.Tensor) -> Any:
        """Return the int64 result, before it saturates.

        Args:
            block: definitions in front of it.
            a, b: int8 operands as int32.
            factors: of `aligned`.
        """
        if self.function == "multiply":
            product = (a - self.zeros[0]) * (b - self.zeros[1])
            first, second = tirx.Cast("int64", product) * factors[0], _wide(self.constant)
        else:
            x, y = (
                tirx.Cast("int64", item + self.offset) * factors[at]
                for at, item in enumerate((a, b))
            )
            y = -y if self.function == "subtract" else y
            first, second = (x, y) if self.turned else (y, x)
            first = first + _wide(self.constant)
        return self.rounding.rounded(block, first, second) - _wide(self.offset)


@operator
@dataclass(frozen=True, eq=False)
class OnnxAdd(_Pair):
    """The sum of two int8 tensors of the same shape, which can be a layer."""

    kind = "add"
    tag = "onnx_add"
    work = Work.SUM
    scale = Scale.FREE
    neutral = True

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Add:
        """See `Op.layer`; its requantization has one multiplier and shift per operand."""
        operands = inputs if len(inputs) == 2 else [inputs[0], inputs[0]]
        requant = OnnxSum(
            **vars(self.requant),
            offset=self.offset,
            turned=_is_one_along_rows(*(kind.shape for _, kind in operands)),
            steps=self.steps,
        )
        return sum_layer(name, operands, output, requant, self.clip)


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
        return self.function

    @property
    def computes(self) -> Function:
        """The function of the two operands."""
        return self.function


def _is_one_along_rows(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether the first operand is one number along the rows on which the kernel runs.

    These are the innermost axes on which both operands have as many elements, or one of them has
    one.  The kernel takes such an operand as its second one.
    """
    pairs = zip_longest(reversed(a), reversed(b), fillvalue=1)
    return next((x == 1 for x, y in pairs if (x, y) != (1, 1)), True)


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


def _reach(function: Function, factors: Sequence[int]) -> int:
    """Return the largest distance of a result of steps in reals from the exact one, in its steps.

    Each of the steps and factors is rounded to 24 bits, and small factors to whole steps.
    """
    largest = 2**16 * factors[0] if function == "multiply" else 2**8 * sum(factors)
    return (largest >> 20) + 2**10


def _rounded(exact: Any, exponent: int) -> Any:
    """Return ``exact / 2**exponent`` as int64, ties to even."""
    amount, one = _wide(exponent), _wide(1)
    return (exact + _wide((1 << (exponent - 1)) - 1) + ((exact >> amount) & one)) >> amount


def _wide(value: int) -> Any:
    return tirx.const(value, "int64")
