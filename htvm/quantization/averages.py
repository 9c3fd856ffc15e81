"""Averages that change the scale: for retargeting, an average and a conversion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import UnsupportedError
from htvm.quantization.graph import FloatScale, Operator
from patterns.ops.onnxruntime.rounding import float_scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from patterns.reading.read import Node

__all__ = ["averaged"]


def averaged(
    node: Node, inputs: tuple[str, ...], shape: tuple[int, ...], zero_point: int
) -> list[Operator]:
    """The two operators that an ``onnx_average`` is; the second has its name.

    The conversion is left out where scales are free.  Run on integers, the two round once each,
    where the original rounds once: at most one step of difference.

    Args:
        node: of the integer form.
        inputs: names of the tensors it reads, paddings looked through.
        shape: of the result, channel-last, without batch.
        zero_point: of its input.

    Raises:
        UnsupportedError: if it is padded, or clips other than a rectifier does.
    """
    attrs: Mapping[str, Any] = node.attrs
    where = f"operator '{node.name}'"
    if any(attrs["padding"]):
        raise UnsupportedError(
            "an average that counts its padding", where=where, hint="leave the padding out"
        )
    zero, clip = int(attrs["zero_points"][1]), tuple(attrs["clip"])
    if clip not in ((-128, 127), (zero, 127)):
        raise UnsupportedError(f"an average clipped to {list(clip)}", where=where)
    scale = math.ldexp(attrs["multipliers"][0], -attrs["shifts"][0]) * math.prod(attrs["kernel"])
    multiplier, shift = float_scale(scale)
    mean = Operator(
        f"{node.name}_mean", "average_pool", inputs, shape, pool=attrs["kernel"],
        stride=attrs["strides"], zero_point=zero_point,
    )  # fmt: skip
    factor = FloatScale(np.array([multiplier]), np.array([shift]), zero)
    convert = Operator(
        node.name, "convert", (mean.name,), shape, requant=factor, offset=-zero_point,
        clip=(clip[0], clip[1]), zero_point=zero,
    )  # fmt: skip
    return [mean, convert]
