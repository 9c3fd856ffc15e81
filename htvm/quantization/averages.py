"""Retargeting averages that change the scale: as an average and a conversion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import OnnxRequant
from htvm.quantization.operators import Operator
from htvm.quantization.passing import AverageOperator, ConvertOperator
from patterns.ops.onnxruntime.rounding import float_scale
from patterns.ops.tflite.average_pool import AveragePool

if TYPE_CHECKING:
    from patterns.ops.onnxruntime.average import OnnxAverage

__all__ = ["averaged"]


def averaged(
    name: str, op: OnnxAverage, inputs: tuple[str, ...], shape: tuple[int, ...], zero_point: int
) -> list[Operator]:
    """Return the two operators for an average; the second has its name.

    The conversion is left out if scales are free.  On integers, the two round once each, where the
    original rounds only once: at most one step of difference.

    Args:
        name: name of the average.
        op: operator of the average.
        inputs: names of the tensors it reads, before any paddings.
        shape: shape of the result, channel-last, without batch.
        zero_point: zero point of its input.

    Raises:
        UnsupportedError: it is padded.
    """
    where = f"operator '{name}'"
    if any(op.padding):
        raise UnsupportedError(
            "an average that counts its padding", where=where, hint="leave the padding out"
        )
    zero = op.zero_point
    scale = math.ldexp(op.requant.multiplier[0], -op.requant.shift[0]) * math.prod(op.kernel)
    multiplier, shift = float_scale(scale)
    pool = AveragePool(op.kernel, op.strides, layout=op.layout)
    mean = AverageOperator(f"{name}_mean", inputs, shape, op=pool, zero_point=zero_point)
    requant = OnnxRequant((multiplier,), (shift,), zero)
    convert = ConvertOperator(
        name, (mean.name,), shape, requant=requant, offset=-zero_point, clip=op.clip,
        zero_point=zero,
    )  # fmt: skip
    return [mean, convert]
