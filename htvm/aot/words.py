"""Convolutions whose input channels are no words of four: channels of zeros are added.

The products of four elements need channels side by side in words.  A padding writes the additional
channels, so it is free where the convolution has a padding anyway; weights get zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax
from tvm.ir import GenericConst
from tvm.relax import op as R

from patterns.names import name_of, with_name
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import Call

_LEAST_USES = 6
"""How often an input element must be used: writing one costs as much as a few products save."""


@dataclass(frozen=True, eq=False)
class InWords:
    """A convolution whose channels are words.

    Attributes:
        padding: call that pads the input.
        layer: name of the layer that the padding belongs to.
        weight: padded weights.
        channels: input channels before.
    """

    padding: Call
    layer: str
    weight: GenericConst
    channels: int


def in_words(conv: Call, padding: Call | None, layer: str) -> InWords | None:
    """Return what makes the channels of a convolution without padding words.

    Args:
        conv: call of a convolution.
        padding: call that pads its input, if there is one.
        layer: name of its layer.

    Returns:
        ``None`` if channels or rows of the filter are words already, if the convolution is no
        ordinary one of int8 in NHWC, or if it would not pay.
    """
    data, weight = conv.args
    attrs = conv.attrs
    if str(attrs.data_layout) != "NHWC" or str(attrs.kernel_layout) != "HWIO":
        return None
    ordinary = int(attrs.groups) == 1 and all(int(step) == 1 for step in attrs.dilation)
    if not ordinary or not isinstance(weight, GenericConst):
        return None
    if dtype_of(data) != "int8" or dtype_of(weight) != "int8":
        return None
    fy, fx, channels, k = shape_of(weight)
    uses = fy * fx * k / (int(attrs.strides[0]) * int(attrs.strides[1]))
    if channels % 4 == 0 or uses < _LEAST_USES:
        return None
    if channels == 1 or channels * fx % 4 == 0:
        return None  # three of four products would be wasted; rows of the filter are words
    source, widths, value = data, [0] * 8, 0
    if padding is not None:
        source, value = padding.args[0], int(padding.attrs.pad_value)
        widths = [int(width) for width in padding.attrs.pad_width]
        layer = name_of(padding) or layer
    more = -channels % 4
    widths[7] += more
    wide = np.pad(weight.value.numpy(), [(0, 0), (0, 0), (0, more), (0, 0)])
    call = with_name(R.nn.pad(source, widths, "constant", value), layer)
    return InWords(call, layer, relax.const(wide, "int8"), channels)
