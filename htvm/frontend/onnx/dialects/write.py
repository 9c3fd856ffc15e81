"""Writing pending values: products, sums of two tensors, and their requantization.

Of DIANA's analog core, gain, converter and scaling are one operator.  A product with ternary
weights whose sums are divided by a power of two, floored and clipped to the converter's range stays
pending (`values.Converted`).  If multiply, add, divide, floor and clip follow, everything becomes
one operator, `patterns.ops.analog`; otherwise it becomes a layer with one right shift.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import AnalogRequant, Array, MulShift, Shift
from htvm.frontend.onnx.dialects.values import (
    Converted,
    IntegerNode,
    Live,
    PendingSum,
    Products,
    Scaled,
    Value,
)
from patterns.op import INT8, Op
from patterns.ops.add import Add
from patterns.ops.analog.products import AnalogConv2d, AnalogDense
from patterns.ops.convert import Convert
from patterns.ops.convolution import Conv2dSums, conv2d_of
from patterns.ops.dense import Dense, Linear, LinearSums
from patterns.ops.integer.limits import check_int32
from patterns.ops.integer.rescale import Rescale
from patterns.ops.weighted import accumulator_bound

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

CONVERTER = (-32, 31)
"""Range of an analog core's converter."""

_INT32_MAX = 2**31 - 1


def requantize(
    node: IntegerNode,
    value: Live | Products | Converted | PendingSum,
    mul: Array,
    add: Array,
    shift: int,
    clip: tuple[int, int],
) -> Live:
    """Write ``clip((value * mul + add) >> shift)``, in one operator with the value if possible.

    Args:
        node: last node of the chain, for messages.
        value: the value to scale.
        mul, add: int64, broadcast over the value's shape.
        shift: number of bits, 0 to 31.
        clip: inclusive range of the result, which determines its type.

    Raises:
        UnsupportedError: constants do not fit.
    """
    dtype = _type_of(node, clip)
    bound = max(abs(clip[0]), abs(clip[1]))
    if not 0 <= shift <= 31:
        raise node.unsupported(f"a division by 2**{shift}", "at most 2**31")
    if isinstance(value, Products):
        factors, summands = (per_channel(part, value) for part in (mul, add))
        if factors is not None and summands is not None:
            live = _scaled_products(value, factors, summands, shift, clip, dtype)
            return Live(live.activation, bound)
    elif isinstance(value, PendingSum) and mul.size == add.size == 1 and value.shape[0] == 1:
        requant = _mul_shift(mul.reshape(-1), add.reshape(-1), shift)
        return _scaled_sum(value, requant, clip, dtype, bound)
    live = written(value)
    source = live.activation.dtype
    if source == dtype == "int8" and mul.size == add.size == 1:
        return _converted(node, live, mul.reshape(-1), add.reshape(-1), shift, clip, bound)
    for part in (mul, add):
        _check_broadcast(node, part, live.shape)
    op = Rescale(np.asarray(mul), np.asarray(add), shift, clip, dtype, live.bound)
    return node.apply(op, live, bound=bound)


def _type_of(node: OnnxNode, clip: tuple[int, int]) -> str:
    for dtype in ("int8", "uint8", "int16", "int32"):
        limits = np.iinfo(dtype)
        if limits.min <= clip[0] <= clip[1] <= limits.max:
            return dtype
    raise node.unsupported(f"a clip to {clip}", "inside 32 bits, from low to high")


def _check_broadcast(node: OnnxNode, part: Array, shape: tuple[int, ...]) -> None:
    try:
        fits = np.broadcast_shapes(part.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise node.unsupported(
            f"factors of shape {list(part.shape)} for a tensor of shape {list(shape)}",
            "one factor, or one per channel",
        )


def per_channel(part: Array, value: Products) -> Array | None:
    """Return one integer, or one per output channel, as a vector; ``None`` for other shapes."""
    if part.size == 1:
        return part.reshape(-1)
    rank, axis = len(value.shape), value.channel_axis
    channels = value.weight.shape[0]
    # Convolutions over one axis keep the shape (C, 1, 1) used for two axes.
    allowed = {(1,) * (axis - lead) + (channels,) + (1,) * (rank - 1 - axis) for lead in (0, 1)}
    allowed |= {(channels, 1, 1)} if value.window is not None else {(channels,)}
    return part.reshape(-1) if part.shape in allowed else None


def _mul_shift(mul: Array, add: Array, shift: int) -> MulShift:
    size = max(mul.size, add.size)
    return MulShift(
        tuple(np.broadcast_to(mul, size).tolist()),
        (shift,) * size,
        tuple(np.broadcast_to(add, size).tolist()),
    )


def _power_of(mul: Array, shift: int) -> int | None:
    """Return the exponent if all factors are the same power of two, not above ``2**shift``."""
    first = int(mul[0])
    if (mul != first).any() or first < 1 or first & (first - 1) or first > 1 << shift:
        return None
    return first.bit_length() - 1


def live(node: IntegerNode, index: int) -> Live:
    """Return an input that is computed, as a written tensor; errors as of `written`."""
    return written(node.value(index))


def written(value: Value) -> Live:
    """Write a pending value: products and sums without requantization, int32.

    Raises:
        UnsupportedError: it has been scaled, and not brought back to 8 bits.
    """
    if isinstance(value, Live):
        return value
    if isinstance(value, Converted):
        return _write_products(value.products, Shift(value.shift), CONVERTER, "int8")
    if isinstance(value, Scaled):
        raise value.node.unsupported(
            "a scaled tensor that is not brought back to 8 bits",
            "end the chain with Div, Floor and Clip",
        )
    if isinstance(value, Products):
        made = _write_products(value)
    else:
        made = value.node.combine("add", *value.operands)
    value.node.network.sources.setdefault(made.activation, value.node.outputs[0])
    return made


# ------------------------------------------------------------------------------ products


def _scaled_products(
    value: Products,
    mul: Array,
    add: Array,
    shift: int,
    clip: tuple[int, int],
    dtype: str,
) -> Live:
    exponent = _power_of(mul, shift)
    if exponent is None:
        return _write_products(value, _mul_shift(mul, add, shift), clip, dtype)
    # floor((acc * 2**k + add) / 2**s) = floor((acc + floor(add / 2**k)) / 2**(s - k))
    moved = replace(value, bias=value.bias + (add >> exponent))
    return _write_products(moved, Shift(shift - exponent), clip, dtype)


def _write_products(
    value: Products,
    requant: Shift | MulShift | None = None,
    clip: tuple[int, int] = (-128, 127),
    dtype: str = "int32",
) -> Live:
    """Write a convolution or product of matrices, int32 without requantization.

    Raises:
        UnsupportedError: a bias or an accumulator does not fit int32.
    """
    node, weight = value.node, value.weight
    worst = accumulator_bound(weight, value.bias, value.source.activation.dtype)
    check_int32(-worst, worst, node.where)
    bias = value.bias.astype(np.int32)
    bound = worst if requant is None else max(abs(clip[0]), abs(clip[1]))
    op = _product(value, bias, requant, clip, dtype)
    return node.reshape(node.apply(op, value.source, bound=bound), value.shape)


def _product(
    value: Products,
    bias: Array,
    requant: Shift | MulShift | None,
    clip: tuple[int, int],
    dtype: str,
) -> Op:
    weight, window = value.weight, value.window
    if window is None:
        if requant is None:
            return LinearSums(weight, bias)
        of_rows = Dense if value.source.shape[0] == 1 else Linear
        return of_rows(weight, bias, requant, clip, dtype)
    if requant is None:
        return Conv2dSums(weight, bias, window)
    return conv2d_of(weight, bias, window, requant, clip, dtype)


# ------------------------------------------------------------------------------ sums, conversions


def _scaled_sum(
    value: PendingSum,
    requant: MulShift,
    clip: tuple[int, int],
    dtype: str,
    bound: int,
) -> Live:
    exponent = _power_of(np.asarray(requant.mul), requant.shift[0])
    chosen: Shift | MulShift = requant
    if exponent is not None and requant.add[0] >> exponent == 0:
        chosen = Shift(requant.shift[0] - exponent)
    return value.node.apply(Add(chosen, clip, dtype), *value.operands, bound=bound)


def _converted(
    node: IntegerNode,
    live: Live,
    mul: Array,
    add: Array,
    shift: int,
    clip: tuple[int, int],
    bound: int,
) -> Live:
    exponent = _power_of(mul, shift)
    requant: Shift | MulShift = _mul_shift(mul, add, shift)
    offset = 0
    if exponent is not None and abs(int(add[0]) >> exponent) <= _INT32_MAX - 255:
        requant, offset = Shift(shift - exponent), int(add[0]) >> exponent
    if requant == Shift(0) and offset == 0 and clip == (-128, 127):
        return live  # the same numbers
    op = Convert(requant, clip, offset=offset)
    return node.apply(op, live, bound=bound)


_INT16 = np.iinfo(np.int16)


def converter_of(value: Scaled, shift: int, clip: tuple[int, int]) -> Converted | None:
    """Return the value after a converter, if a clip of a floored division is one."""
    base = value.base
    if clip != CONVERTER or shift < 1 or not isinstance(base, Products):
        return None
    plain = (value.mul == 1).all() and not value.add.any() and not base.bias.any()
    ternary = np.abs(base.weight.astype(np.int64)).max(initial=0) <= 1
    window = base.window
    simple = window is None or (window.groups == 1 and window.dilation == (1, 1))
    rows = window is not None or base.source.shape[0] == 1
    signed = base.source.activation.dtype == "int8"
    return Converted(base, shift) if plain and ternary and simple and rows and signed else None


def write_analog(
    node: IntegerNode,
    value: Converted,
    mul: Array,
    add: Array,
    shift: int,
    clip: tuple[int, int],
) -> Live | None:
    """Write layer and scaling as one operator; return ``None`` if the core has no such scaling."""
    products = value.products
    factors, summands = (per_channel(part, products) for part in (mul, add))
    if factors is None or summands is None or clip[0] < INT8[0] or clip[1] > INT8[1]:
        return None
    for part in (factors, summands):
        if part.min() < _INT16.min or part.max() > _INT16.max:
            return None
    weight = products.weight
    requant = AnalogRequant(
        gain=1 << value.shift,
        mul=tuple(factors.tolist()),
        add=tuple(summands.tolist()),
        shift=shift,
        rows=int(np.prod(weight.shape[1:])),  # the file sums all channels before it converts
        adc=CONVERTER,
    )
    op: Op = AnalogDense(weight, requant, clip)
    if products.window is not None:
        op = AnalogConv2d(weight, requant, clip, window=products.window)
    made = node.apply(op, products.source, bound=max(abs(clip[0]), abs(clip[1])))
    return node.reshape(made, products.shape)
