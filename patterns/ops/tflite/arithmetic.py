"""Sums, differences and products of two int8 tensors that TFLite broadcasts, and means.

The sum of two tensors of one shape is `patterns.ops.elementwise`, because accelerators know it;
what is here has operands of different shapes, constants among them, or other functions.  All of it
runs in TFLite's own arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from patterns.ops.elementwise import ADD_LEFT_SHIFT, TfliteAdd
from patterns.ops.requantize import (
    fixed_point,
    int_constant,
    left_shift,
    rounding_high_multiply,
    short_rounding_right_shift,
)
from patterns.primitive import call_primitive, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers.layer import Array
    from patterns.primitive import Parameter

__all__ = [
    "PRIMITIVES",
    "Function",
    "TfliteMultiply",
    "as_operand",
    "binary",
    "broadcast",
    "mean",
    "mean_factor",
    "read_binary",
]

PRIMITIVES = {"tflite_binary": "tflite_binary", "tflite_mean": "tflite_mean"}
"""Kind of the PrimFunc -> kind of the operator."""

Function: TypeAlias = Literal["add", "subtract", "multiply"]


@dataclass(frozen=True)
class TfliteMultiply:
    """TFLite's product: the centred operands multiplied, scaled to the output.

    Attributes:
        multiplier, shift: Q31 and exponent of s_a * s_b / s_out.
        zero_points: of first operand, second operand and output.
    """

    multiplier: int
    shift: int
    zero_points: tuple[int, int, int]

    @classmethod
    def from_scales(
        cls, scales: tuple[float, float, float], zero_points: tuple[int, int, int]
    ) -> TfliteMultiply:
        """From the real scales of first operand, second operand and output.

        Raises:
            UnsupportedError: if the product would leave int32 before it is rounded.
        """
        multiplier, shift = fixed_point(scales[0] * scales[1] / scales[2])
        if shift > 14:  # a product of two centred bytes is below 2**16
            raise UnsupportedError(
                f"a product whose output step {scales[2]:g} is 2**14 times finer than that of the "
                "operands"
            )
        return cls(multiplier, shift, zero_points)


def broadcast(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """The shape of a result of operands of these shapes.

    Raises:
        IntegerFormError: if the shapes do not fit.
    """
    try:
        return tuple(int(size) for size in np.broadcast_shapes(tuple(first), tuple(second)))
    except ValueError as error:
        raise IntegerFormError(
            f"operands of shapes {tuple(first)} and {tuple(second)} cannot be broadcast"
        ) from error


def as_operand(item: Expr | Array) -> Expr:
    """A tensor as it is, an array as a constant, int8."""
    if isinstance(item, np.ndarray):
        return relax.const(np.ascontiguousarray(item), "int8")
    return item


# ------------------------------------------------------------------------------ binary


def binary(
    bb: BlockBuilder,
    function: Function,
    operands: tuple[Expr | Array, Expr | Array],
    parameters: TfliteAdd | TfliteMultiply,
    clip: tuple[int, int] = (-128, 127),
    *,
    name: str,
) -> Var:
    """Write a function of two int8 tensors, broadcast as numpy does.

    Args:
        bb: where to write, inside a dataflow block.
        function: ``"add"`` and ``"subtract"`` take a `TfliteAdd`, ``"multiply"`` a
            `TfliteMultiply`.
        operands: tensors; an array is a constant, int8.
        parameters: scales and zero points.
        clip: inclusive range of the output.
        name: of the operator.

    Raises:
        IntegerFormError: if the shapes do not fit.
    """
    args = [as_operand(item) for item in operands]
    shapes = [shape_of(arg) for arg in args]
    out = broadcast(*shapes)
    clipped = _multiplied if isinstance(parameters, TfliteMultiply) else _summed

    def body(first: te.Tensor, second: te.Tensor, multiplier: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            pair = [
                _at(operand, shape, index)
                for operand, shape in zip((first, second), shapes, strict=True)
            ]
            value = clipped(pair, function, parameters, multiplier)
            return tirx.Cast("int8", tirx.max(tirx.min(value, clip[1]), clip[0]))

        return te.compute(extents(out), element, name=function)

    if isinstance(parameters, TfliteMultiply):
        multipliers: tuple[int, ...] = (parameters.multiplier,)
        shifts: tuple[int, ...] = (parameters.shift,)
    else:
        multipliers, shifts = parameters.multipliers, parameters.shifts
    attributes: dict[str, Parameter] = {
        "function": function,
        "zero_points": parameters.zero_points,
        "clip": clip,
        "shifts": shifts,
        "multipliers": multipliers,
    }
    # The multipliers are an argument, because TVM multiplies known ones out.
    inputs = [("a", shapes[0], "int8"), ("b", shapes[1], "int8")]
    func = primitive(
        "tflite_binary", [*inputs, ("multiplier", (len(multipliers),), "int32")], body, attributes
    )
    args.append(int_constant(multipliers))
    return call_primitive(bb, func, args, out, "int8", name, last=True)


def _at(operand: te.Tensor, shape: tuple[int, ...], index: Sequence[Any]) -> Any:
    """The element of an operand that belongs to an element of the result, int32."""
    own = index[len(index) - len(shape) :]
    place = [
        at if size > 1 else tirx.const(0, "int64") for at, size in zip(own, shape, strict=True)
    ]
    return tirx.Cast("int32", operand(*place))


def _summed(pair: Sequence[Any], function: str, parameters: Any, multiplier: Any) -> Any:
    """As in `patterns.ops.elementwise.tflite_add`; a difference negates what was scaled."""

    def operand(index: int) -> Any:
        # (centred << 20) * multiplier >> 31 with rounding, the common factor left out.
        centred = pair[index] - parameters.zero_points[index]
        product = tirx.Cast("int64", centred) * tirx.Cast("int64", multiplier[index])
        drop = 31 - ADD_LEFT_SHIFT
        rounded = (product + tirx.const(1 << (drop - 1), "int64")) >> tirx.const(drop, "int64")
        return _divided(tirx.Cast("int32", rounded), parameters.shifts[index])

    first, second = operand(0), operand(1)
    total = first - second if function == "subtract" else first + second
    high = rounding_high_multiply(total, multiplier[2])
    return _divided(high, parameters.shifts[2]) + parameters.zero_points[2]


def _multiplied(pair: Sequence[Any], _: str, parameters: Any, multiplier: Any) -> Any:
    zeros = parameters.zero_points
    product = (pair[0] - zeros[0]) * (pair[1] - zeros[1])
    if parameters.shift > 0:
        product = left_shift(product, tirx.const(parameters.shift, "int32"))
    high = rounding_high_multiply(product, multiplier[0])
    return _divided(high, parameters.shift) + zeros[2]


def _divided(value: Any, shift: int) -> Any:
    # Everything that gets here is below 2**30, so that the short form never overflows.
    return short_rounding_right_shift(value, -shift) if shift < 0 else value


def read_binary(call: Any) -> dict[str, tuple[int, ...]]:
    """Constant operands of a call that `binary` wrote: ``a`` or ``b`` flat, ``a_shape`` ..."""
    found: dict[str, tuple[int, ...]] = {}
    for key, arg in zip("ab", call.args[1], strict=False):
        if not isinstance(arg, relax.Var):
            values = arg.value.numpy()
            found[key] = tuple(int(value) for value in values.reshape(-1))
            found[f"{key}_shape"] = tuple(int(size) for size in values.shape)
    return found


# ------------------------------------------------------------------------------ mean


def mean(
    bb: BlockBuilder,
    x: Expr,
    axes: Sequence[int],
    factor: tuple[int, int],
    zero_points: tuple[int, int],
    *,
    keep_dims: bool = False,
    name: str,
) -> Var:
    """Write the mean of int8 over some axes as TFLite has it: the count goes into the multiplier.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8, any rank.
        axes: to sum over, counted from 0.
        factor: multiplier and exponent, of `mean_factor`.
        zero_points: of input and output.
        keep_dims: keep the axes, of size 1.
        name: of the operator.

    Raises:
        UnsupportedError: if a sum may leave int32.
    """
    shape = shape_of(x)
    count = math.prod(shape[axis] for axis in axes)
    if count >= 1 << 22:  # 2**22 centred bytes, 9 bits each
        raise UnsupportedError(f"a mean over {count} elements", where=f"operator '{name}'")
    multiplier, shift = factor
    # The axes of the input that the result has, too.
    kept = [axis for axis in range(len(shape)) if keep_dims or axis not in axes]
    out = tuple(1 if axis in axes else shape[axis] for axis in kept)

    def body(source: te.Tensor, factors: te.Tensor) -> te.Tensor:
        sums = _sums(source, shape, axes, kept)

        def element(*index: Any) -> Any:
            centred = sums(*index) - zero_points[0] * count
            if shift > 0:
                centred = left_shift(centred, tirx.const(shift, "int32"))
            high = rounding_high_multiply(centred, factors[0])
            value = _divided(high, shift) + zero_points[1]
            return tirx.Cast("int8", tirx.max(tirx.min(value, 127), -128))

        return te.compute(extents(out), element, name="mean")

    attributes: dict[str, Parameter] = {
        "axes": tuple(axes),
        "keep_dims": int(keep_dims),
        "multiplier": multiplier,
        "shift": shift,
        "zero_points": zero_points,
    }
    inputs = [("x", shape, "int8"), ("multiplier", (1,), "int32")]
    func = primitive("tflite_mean", inputs, body, attributes)
    return call_primitive(bb, func, [x, int_constant((multiplier,))], out, "int8", name, last=True)


def _sums(
    source: te.Tensor, shape: tuple[int, ...], axes: Sequence[int], kept: Sequence[int]
) -> te.Tensor:
    """The sums over ``axes``, int32; the result has the axes ``kept``, those summed of size 1."""
    reduced = {axis: te.reduce_axis((0, shape[axis]), f"r{axis}") for axis in axes}

    def total(*index: Any) -> Any:
        place = dict(zip(kept, index, strict=True)) | reduced
        element = source(*(place[axis] for axis in range(len(shape))))
        return te.sum(tirx.Cast("int32", element), axis=list(reduced.values()))

    out = tuple(1 if axis in reduced else shape[axis] for axis in kept)
    return te.compute(extents(out), total, name="total")


def mean_factor(scales: tuple[float, float], count: int) -> tuple[int, int]:
    """Multiplier and exponent of a mean over ``count`` elements, divided and cut as TFLite does.

    Args:
        scales: of input and output.
        count: of the elements.
    """
    multiplier, shift = fixed_point(scales[0] / scales[1])
    bits = max(min(count.bit_length() - 1, 32, 31 + shift), 0)
    return (multiplier << bits) // count, shift - bits
