"""Layers of DIANA's analog core: gain, converter and scaling are one operator.

A product with ternary weights whose sums are divided by a power of two, floored and clipped to the
converter's range stays pending (`values.Converted`).  If multiply, add, divide, floor and clip
follow, everything becomes one operator, `patterns.ops.analog`; otherwise it becomes a layer with
one right shift.
"""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import AnalogRequant, Array
from htvm.frontend.onnx.dialects.values import Converted, IntegerNode, Live, Products, Scaled
from htvm.frontend.onnx.dialects.write import CONVERTER, per_channel
from patterns.op import Op
from patterns.ops.analog.products import AnalogConv2d, AnalogDense

_INT8 = (-128, 127)
_INT16 = np.iinfo(np.int16)


def converted(value: Scaled, shift: int, clip: tuple[int, int]) -> Converted | None:
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
    if factors is None or summands is None or clip[0] < _INT8[0] or clip[1] > _INT8[1]:
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
