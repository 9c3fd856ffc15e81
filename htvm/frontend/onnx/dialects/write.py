"""Writing pending values: products, sums of two tensors, and their requantization.

Of DIANA's analog core, gain, converter and scaling are one operator.  A product with ternary
weights whose sums are divided by a power of two, floored and clipped to the converter's range stays
pending (`values.Converted`).  If multiply, add, divide, floor and clip follow, everything becomes
one operator, `patterns.ops.analog`; otherwise it becomes a layer with one right shift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from htvm.frontend.operators import Clip
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


@dataclass(frozen=True, eq=False)
class Scaling:
    """``clip((x * mul + add) >> shift)``.

    Attributes:
        mul, add: int64, broadcast over the shape of x.
        shift: number of bits, 0 to 31.
        clip: inclusive range of the result, which determines its type.
    """

    mul: Array
    add: Array
    shift: int
    clip: Clip

    @property
    def bound(self) -> int:
        """Largest magnitude of the result."""
        return max(abs(self.clip[0]), abs(self.clip[1]))

    @property
    def is_scalar(self) -> bool:
        """Whether all elements are scaled alike."""
        return bool(self.mul.size == self.add.size == 1)

    def requant(self, most: int = 2**62) -> tuple[Shift | MulShift, Array]:
        """Return it for one number or one per channel: a right shift alone if that does.

        Factors are then the same power of two, not above ``2**shift``:
        ``floor((x * 2**k + add) / 2**s) = floor((x + floor(add / 2**k)) / 2**(s - k))``.

        Args:
            most: largest magnitude of what can be added before the shift.

        Returns:
            The requantization, and what is added before it.
        """
        mul, add, first = self.mul.reshape(-1), self.add.reshape(-1), int(self.mul.flat[0])
        if (mul == first).all() and first > 0 and not first & (first - 1):
            exponent = first.bit_length() - 1
            if exponent <= self.shift and (np.abs(add >> exponent) <= most).all():
                return Shift(self.shift - exponent), add >> exponent
        size = max(mul.size, add.size)
        factors, summands = (tuple(np.broadcast_to(part, size).tolist()) for part in (mul, add))
        return MulShift(factors, (self.shift,) * size, summands), np.zeros(1, np.int64)


def requantize(
    node: IntegerNode, value: Live | Products | Converted | PendingSum, scaling: Scaling
) -> Live:
    """Write a scaled value, in one operator with the value if possible.

    Args:
        node: last node of the chain, for messages.
        value: the value to scale.
        scaling: how.

    Raises:
        UnsupportedError: constants do not fit.
    """
    clip, bound = scaling.clip, scaling.bound
    dtype = _type_of(node, clip)
    if not 0 <= scaling.shift <= 31:
        raise node.unsupported(f"a division by 2**{scaling.shift}", "at most 2**31")
    if isinstance(value, Products):
        mul, add = (per_channel(part, value) for part in (scaling.mul, scaling.add))
        if mul is not None and add is not None:
            requant, before = replace(scaling, mul=mul, add=add).requant()
            moved = replace(value, bias=value.bias + before)
            return Live(_write_products(moved, requant, clip, dtype).activation, bound)
    elif isinstance(value, PendingSum) and scaling.is_scalar and value.shape[0] == 1:
        op = Add(scaling.requant(0)[0], clip, dtype)
        return value.node.apply(op, *value.operands, bound=bound)
    live = written_value(value)
    if live.activation.dtype == dtype == "int8" and scaling.is_scalar:
        requant, before = scaling.requant(_INT32_MAX - 255)
        if requant == Shift(0) and not before.any() and clip == INT8:
            return live  # the same numbers
        return node.apply(Convert(requant, clip, offset=int(before[0])), live, bound=bound)
    for part in (scaling.mul, scaling.add):
        _check_broadcast(node, part, live.shape)
    mul, add = np.asarray(scaling.mul), np.asarray(scaling.add)  # also of single numbers
    rescale = Rescale(mul, add, scaling.shift, clip, dtype, live.bound)
    return node.apply(rescale, live, bound=bound)


def _type_of(node: OnnxNode, clip: Clip) -> str:
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


def live(node: IntegerNode, index: int) -> Live:
    """Return an input that is computed, as a written tensor; errors as of `written_value`."""
    return written_value(node.value(index))


def written_value(value: Value) -> Live:
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
        activation = _write_products(value)
    else:
        activation = value.node.combine("add", *value.operands)
    value.node.network.sources.setdefault(activation.activation, value.node.outputs[0])
    return activation


# ------------------------------------------------------------------------------ products


def _write_products(
    value: Products,
    requant: Shift | MulShift | None = None,
    clip: Clip = INT8,
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
    clip: Clip,
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


# ------------------------------------------------------------------------------ the analog core


_INT16 = np.iinfo(np.int16)


def converter_of(value: Scaled, shift: int, clip: Clip) -> Converted | None:
    """Return the value after a converter, if a clip of a floored division is one."""
    base = value.base
    if clip != CONVERTER or shift < 1 or not isinstance(base, Products):
        return None
    is_unscaled = (value.mul == 1).all() and not value.add.any() and not base.bias.any()
    ternary = np.abs(base.weight.astype(np.int64)).max(initial=0) <= 1
    window = base.window
    simple = window is None or (window.groups == 1 and window.dilation == (1, 1))
    rows = window is not None or base.source.shape[0] == 1
    signed = base.source.activation.dtype == "int8"
    return (
        Converted(base, shift) if is_unscaled and ternary and simple and rows and signed else None
    )


def write_analog(node: IntegerNode, value: Converted, scaling: Scaling) -> Live | None:
    """Write layer and scaling as one operator; return ``None`` if the core has no such scaling."""
    products, clip = value.products, scaling.clip
    factors, summands = (per_channel(part, products) for part in (scaling.mul, scaling.add))
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
        shift=scaling.shift,
        rows=int(np.prod(weight.shape[1:])),  # the file sums all channels before it converts
        adc=CONVERTER,
    )
    op: Op = AnalogDense(weight, requant, clip)
    if products.window is not None:
        op = AnalogConv2d(weight, requant, clip, window=products.window)
    made = node.apply(op, products.source, bound=scaling.bound)
    return node.reshape(made, products.shape)
