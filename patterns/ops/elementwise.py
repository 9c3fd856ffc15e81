"""Element-wise operators: the sum of two tensors, and the conversion between two scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx
from tvm.relax import op as R
from tvm.relax.dpl import is_const, is_gv, is_op, is_tuple, wildcard

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import (
    Add,
    Array,
    MulShift,
    Requant,
    Shift,
    Tensor,
    TfliteRequant,
)
from patterns.match import Match
from patterns.names import emit, tensor_name
from patterns.ops.requantize import (
    fixed_point,
    int_constant,
    read_clip,
    read_requantize,
    requantize,
    requantize_pattern,
    rounding_high_multiply,
    short_rounding_right_shift,
)
from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from patterns.primitive import Parameter

__all__ = [
    "ADD_LEFT_SHIFT",
    "TfliteAdd",
    "add",
    "add_pattern",
    "convert",
    "convert_pattern",
    "has_table",
    "read_add",
    "read_table",
    "read_tflite_add",
    "tflite_add",
    "tflite_add_pattern",
]

ADD_LEFT_SHIFT = 20
"""Fraction bits TFLite gives the operands of an add before scaling them."""


@dataclass(frozen=True)
class TfliteAdd:
    """TFLite's add: both operands scaled to a common step, summed, scaled to the output.

    Attributes:
        multipliers, shifts: of first operand, second operand and output.
        zero_points: likewise.
    """

    multipliers: tuple[int, int, int]
    shifts: tuple[int, int, int]
    zero_points: tuple[int, int, int]

    @classmethod
    def from_scales(
        cls, scales: tuple[float, float, float], zero_points: tuple[int, int, int]
    ) -> TfliteAdd:
        """From the real scales of first operand, second operand and output.

        Raises:
            UnsupportedError: if the output's step is absurdly fine.
        """
        first, second, output = scales
        twice_largest = 2.0 * max(first, second)
        parts = (
            fixed_point(first / twice_largest),
            fixed_point(second / twice_largest),
            fixed_point(twice_largest / ((1 << ADD_LEFT_SHIFT) * output)),
        )
        if parts[2][1] > 0:
            raise UnsupportedError(
                f"an add whose output step {output:g} is 2**20 times finer than its inputs'"
            )
        return cls(
            (parts[0][0], parts[1][0], parts[2][0]),
            (parts[0][1], parts[1][1], parts[2][1]),
            zero_points,
        )


# ------------------------------------------------------------------------------ add


def add(
    bb: BlockBuilder,
    a: Expr,
    b: Expr,
    requant: Shift | MulShift,
    clip: tuple[int, int] = (-128, 127),
    *,
    name: str,
    dtype: str = "int8",
) -> Var:
    """Write the sum of two 8-bit tensors of one shape and one scale; ``dtype`` is the output's."""
    first = emit(bb, R.astype(a, "int32"), name)
    second = emit(bb, R.astype(b, "int32"), name)
    acc = emit(bb, R.add(first, second), name)
    return requantize(bb, acc, requant, clip, name, bound=510, dtype=dtype)


def add_pattern() -> Match:
    """A sum with shift or multiply-and-shift; slots ``a``, ``b``, ``sum`` ..."""
    a, b = wildcard(), wildcard()
    total = is_op("relax.add")(is_op("relax.astype")(a), is_op("relax.astype")(b))
    root, slots = requantize_pattern(total)
    return Match("add", root, {"a": a, "b": b, "sum": total, **slots})


def read_add(slots: Mapping[str, Expr]) -> Add:
    """The layer of a match of `add_pattern`."""
    name = tensor_name(slots["sum"])
    names = (tensor_name(slots["a"]), tensor_name(slots["b"]))
    dtypes = (dtype_of(slots["a"]), dtype_of(slots["b"]), dtype_of(slots["cast"]))
    shape, requant = shape_of(slots["sum"]), read_requantize(slots)
    return _add_layer(name, names, shape, requant, read_clip(slots), dtypes)


def tflite_add(
    bb: BlockBuilder,
    a: Expr,
    b: Expr,
    parameters: TfliteAdd,
    clip: tuple[int, int] = (-128, 127),
    *,
    name: str,
) -> Var:
    """Write the sum of two int8 tensors of one shape with TFLite's own arithmetic."""
    shape = shape_of(a)

    def divided(value: Any, shift: int) -> Any:
        # Operands are below 2**28 and only shrink, so that the short form never overflows.
        return short_rounding_right_shift(value, -shift) if shift < 0 else value

    def body(first: te.Tensor, second: te.Tensor, multiplier: te.Tensor) -> te.Tensor:
        def operand(value: Any, index: int) -> Any:
            # (centred << 20) * multiplier >> 31 with rounding, the common factor left out.
            centred = tirx.Cast("int32", value) - parameters.zero_points[index]
            product = tirx.Cast("int64", centred) * tirx.Cast("int64", multiplier[index])
            drop = 31 - ADD_LEFT_SHIFT
            rounded = (product + tirx.const(1 << (drop - 1), "int64")) >> tirx.const(drop, "int64")
            return divided(tirx.Cast("int32", rounded), parameters.shifts[index])

        def element(*index: Any) -> Any:
            total = operand(first(*index), 0) + operand(second(*index), 1)
            high = rounding_high_multiply(total, multiplier[2])
            result = divided(high, parameters.shifts[2]) + parameters.zero_points[2]
            return tirx.Cast("int8", tirx.max(tirx.min(result, clip[1]), clip[0]))

        return te.compute(extents(shape), element, name="sum")

    attributes: dict[str, Parameter] = {
        "multipliers": parameters.multipliers,
        "shifts": parameters.shifts,
        "zero_points": parameters.zero_points,
        "clip": clip,
    }
    # The multipliers are an argument, because TVM multiplies known ones out, into three wide
    # products instead of one.
    inputs = [("a", shape, "int8"), ("b", shape, "int8"), ("multiplier", (3,), "int32")]
    func = primitive("tflite_add", inputs, body, attributes)
    args = [a, b, int_constant(parameters.multipliers)]
    return call_primitive(bb, func, args, shape, "int8", name, last=True)


def tflite_add_pattern() -> Match:
    """TFLite's add, a call of its PrimFunc; slots ``a``, ``b``, ``call``.

    A pattern cannot see which PrimFunc is called: ask `patterns.primitive.kind_of`.
    """
    a, b = wildcard(), wildcard()
    call = is_op("relax.call_tir")(is_gv(), is_tuple([a, b, is_const()]))
    return Match("tflite_add", call, {"a": a, "b": b, "call": call})


def read_tflite_add(slots: Mapping[str, Expr], parameters: Mapping[str, Any]) -> Add:
    """The layer of a match of `tflite_add_pattern` and the PrimFunc's parameters.

    The three multipliers of its requantization are those of `TfliteAdd`.
    """
    *input_zero_points, output_zero_point = parameters["zero_points"]
    requant = TfliteRequant(
        multiplier=tuple(parameters["multipliers"]),
        shift=tuple(parameters["shifts"]),
        output_zero_point=output_zero_point,
        input_zero_points=tuple(input_zero_points),
    )
    names = (tensor_name(slots["a"]), tensor_name(slots["b"]))
    low, high = parameters["clip"]
    name, shape = tensor_name(slots["call"]), shape_of(slots["call"])
    return _add_layer(name, names, shape, requant, (low, high))


def _add_layer(
    name: str,
    inputs: tuple[str, str],
    shape: tuple[int, ...],
    requant: Requant,
    clip: tuple[int, int],
    dtypes: tuple[str, str, str] = ("int8", "int8", "int8"),
) -> Add:
    if len(shape) == 4 and shape[0] != 1:
        raise IntegerFormError(
            f"batch size {shape[0]}", where=f"operator '{name}'", hint="only 1 is supported"
        )
    # An element-wise operator does not know its layout; NHWC only orders the three sizes.
    sizes, layout = (_product(shape), 1, 1), "C"
    if len(shape) == 4:
        sizes, layout = (shape[3], shape[1], shape[2]), "NHWC"
    elif _product(shape[:-1]) > 1:
        # A matrix, as the products around it have it.
        sizes, layout = (shape[-1], _product(shape[:-1]), 1), "NHWC"
    tensors = [
        Tensor(tensor, sizes if layout == "NHWC" else sizes[:1], dtype, layout)  # type: ignore[arg-type]
        for tensor, dtype in zip((*inputs, name), dtypes, strict=True)
    ]
    a, b, output = tensors
    return Add(name=name, inputs=(a, b), output=output, requant=requant, clip=clip)


def _product(shape: tuple[int, ...]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


# ------------------------------------------------------------------------------ convert


def convert(
    bb: BlockBuilder,
    x: Expr,
    requant: Requant,
    clip: tuple[int, int] = (-128, 127),
    *,
    offset: int = 0,
    name: str,
    dtype: str = "int8",
) -> Var:
    """Write ``clip(requant(x + offset))`` of one 8-bit tensor: from one scale to another.

    ``dtype`` is the output's.
    """
    largest = 128 if dtype_of(x) == "int8" else 255
    wide = emit(bb, R.astype(x, "int32"), name)
    acc = emit(bb, R.add(wide, int_constant(offset)), name)
    return requantize(bb, acc, requant, clip, name, bound=largest + abs(offset), dtype=dtype)


def has_table(attrs: Mapping[str, Any]) -> bool:
    """Whether a conversion with these attributes can be written as a table of bytes."""
    if attrs.get("input_dtype", "int8") != "int8" or attrs.get("output_dtype", "int8") != "int8":
        return False
    requant = attrs["requant"]
    if isinstance(requant, MulShift):
        return len(requant.mul) == len(requant.shift) == len(requant.add) == 1
    return isinstance(requant, Shift)


def read_table(attrs: Mapping[str, Any]) -> Array:
    """A conversion of int8 as a table: uint8 [256], by the source's byte in two's complement.

    Args:
        attrs: ``offset``, ``requant`` and ``clip`` of a `patterns.reading.read.Node` of kind
        ``convert``.
    """
    requant, (low, high) = attrs["requant"], attrs["clip"]
    values = np.arange(256, dtype="uint8").view("int8").astype("int64") + int(attrs["offset"])
    if isinstance(requant, MulShift):
        values = (values * requant.mul[0] + requant.add[0]) >> requant.shift[0]
    else:
        values = values >> requant.shift
    values = np.clip(values, low, high)
    return values.astype("int8").view("uint8")


def convert_pattern() -> Match:
    """A conversion; slots ``x``, ``offset``, ``sum`` and those of the requantization."""
    x, offset = wildcard(), is_const()
    total = is_op("relax.add")(is_op("relax.astype")(x), offset)
    root, slots = requantize_pattern(total)
    return Match("convert", root, {"x": x, "offset": offset, "sum": total, **slots})
