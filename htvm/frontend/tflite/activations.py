"""Functions of one tensor, element by element: rescaling, rectifiers, sigmoids, softmax.

Functions that only rescale and clip become conversions, which retargeting can omit; everything else
becomes a table, computed here with the arithmetic of TFLite Micro's reference kernels.

Inside a network tensors are int8, but where a converter negates reals.  At its border there may be
float32 and uint8: exporters put a QUANTIZE after such an input, and a QUANTIZE or DEQUANTIZE before
such an output.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied, Clip, Quantization
from htvm.frontend.scales import bound, converted
from htvm.frontend.tables import (
    check_fixed,
    hard_swish_table,
    leaky_relu_table,
    sigmoid_table,
    slopes_of,
)
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.reader import FULL_INT8, INT16, OperatorReader, constant_array
from patterns.op import INT8
from patterns.ops.convert import TableLookup, tabulate
from patterns.ops.float32.combine import RealCombine
from patterns.ops.float32.quantize import Dequantize, Quantize
from patterns.ops.integer.rescale import Rescale
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite import gemmlowp
from patterns.ops.tflite.log_softmax import TfliteL2Normalization, TfliteLogSoftmax
from patterns.ops.tflite.softmax import TfliteSoftmax
from patterns.ops.tflite.wide import PiecewiseRescale

# ------------------------------------------------------------------------------ tables


def unary(op: OperatorReader) -> tuple[TfliteTensor, Quantization, Quantization]:
    """Return input, its quantization and the output's."""
    op.count((1,))
    source = op.source()
    return source, op.step(source), op.step(op.result())


def table_of(
    op: OperatorReader, stem: str, source: Activation, table: Array, sub: int = 0
) -> Applied:
    """Apply a table; the output's zero point is that of the operator's result."""
    lookup = TableLookup(table, op.step(op.result()).zero_point)
    return op.apply(lookup, source, sub=sub, stem=stem)


def clipped(op: OperatorReader, source: Activation, clip: Clip, sub: int = 0) -> Applied:
    """Apply bounds to a tensor, keeping its quantization."""
    if op.dtype != "int8":
        same = (1 << 30, 1)
        rescale = PiecewiseRescale(same, same, clip=clip, dtype=op.dtype)
        return op.apply(rescale, source, sub=sub)
    return table_of(op, "clip", source, tabulate(lambda x: min(max(x, clip[0]), clip[1])), sub)


def _fixed(
    op: OperatorReader, name: str, parts: int, zero_point: int
) -> tuple[TfliteTensor, Quantization]:
    """Return input and its quantization; the output's must have the scale ``1 / parts``."""
    source, step, result_step = unary(op)
    check_fixed(name, result_step, Quantization(1 / parts, zero_point), op.unsupported)
    return source, step


def sigmoid(op: OperatorReader, function: Literal["logistic", "tanh"]) -> Sequence[Applied]:
    """LOGISTIC and TANH: output scales 1/256 and 1/128, zero points -128 and 0."""
    source, step, result_step = unary(op)
    table = sigmoid_table(function, step, result_step, op.unsupported)
    return [table_of(op, function, op.value(source), table)]


def hard_swish(op: OperatorReader) -> Sequence[Applied]:
    """HARD_SWISH: x * clip(x + 3, 0, 6) / 6 in int16 arithmetic."""
    source, step, result_step = unary(op)
    table = hard_swish_table(step, result_step, op.unsupported)
    return [table_of(op, "hard_swish", op.value(source), table)]


def leaky_relu(op: OperatorReader) -> Sequence[Applied]:
    """LEAKY_RELU: negative numbers times alpha."""
    source, step, result_step = unary(op)
    alpha = op.options(75).real(0)
    if not math.isfinite(alpha):
        raise op.corrupt(f"a slope of {alpha}")
    if op.dtype == "int16":
        positive, negative, sign = slopes_of(alpha, step, result_step)
        wide = PiecewiseRescale(positive, (sign * negative[0], negative[1]))
        return [op.apply(wide, op.value(source), stem="leaky_relu")]
    table = leaky_relu_table(alpha, step, result_step)
    return [table_of(op, "leaky_relu", op.value(source), table)]


def prelu(op: OperatorReader) -> Sequence[Applied]:
    """PRELU: negative numbers times a constant slope, one or one per channel."""
    source, alpha = _channel_slopes(op)
    step, result_step, slope = op.step(source), op.step(op.result()), op.step(alpha)
    positive = fixed_point(step.scale / result_step.scale)
    negative = fixed_point(step.scale * slope.scale / result_step.scale)
    factors = constant_array(alpha).reshape(-1).astype("int32") - slope.zero_point
    if op.dtype == "int16":
        wide = PiecewiseRescale(positive, negative, slopes=factors)
        return [op.apply(wide, op.value(source), stem="prelu")]

    def row(factor: int) -> Array:
        def function(x: int) -> int:
            centred = x - step.zero_point
            if centred >= 0:
                return gemmlowp.scaled(centred, *positive) + result_step.zero_point
            return gemmlowp.scaled(centred * factor, *negative) + result_step.zero_point

        return tabulate(function)

    rows = [row(int(factor)) for factor in factors]
    table = rows[0] if len(rows) == 1 else np.stack(rows)
    return [table_of(op, "prelu", op.value(source), table)]


def _channel_slopes(op: OperatorReader) -> tuple[TfliteTensor, TfliteTensor]:
    """Return the input of PRELU and its slopes: constant int8, one or one per channel."""
    op.count((2,))
    source, alpha = op.source(), op.tensor(1)
    if alpha.data is None:
        raise op.unsupported("its slopes are computed at run time", "make them constant")
    if alpha.dtype != "int8":
        raise op.unsupported(f"{alpha.dtype} slopes ({alpha.place})", FULL_INT8)
    if alpha.data.size not in (1, op.last_axis(source)) or alpha.shape[-1:] not in (
        (), (1,), source.shape[-1:],
    ):  # fmt: skip
        raise op.unsupported(
            f"slopes of shape {alpha.shape} ({alpha.place})", "share them over height and width"
        )
    return source, alpha


# ------------------------------------------------------------------------------ conversions


def relu(op: OperatorReader) -> Sequence[Applied]:
    """RELU by itself: rescaled, then nothing below zero."""
    source, step, result_step = unary(op)
    if op.dtype == "int16":
        factor = fixed_point(step.scale / result_step.scale)
        wide = PiecewiseRescale(factor, factor, clip=(0, op.limits[1]))
        return [op.apply(wide, op.value(source))]
    clip = (bound(0.0, result_step, INT8[0]), INT8[1])
    return [op.apply(converted(step, result_step, clip), op.value(source))]


def relu_6(op: OperatorReader) -> Sequence[Applied]:
    """RELU6 by itself: bounds in the input's integers, which TFLite Micro does not rescale."""
    source, step, _ = unary(op)
    op.same_step()
    bounds = (step.zero_point, bound(6.0, step, op.limits[1], op.limits))
    return [clipped(op, op.value(source), bounds)]


def softmax(op: OperatorReader) -> Sequence[Applied]:
    """SOFTMAX over the last axis."""
    source, step = _fixed(op, "softmax", 256, -128)
    beta = op.options(9).real(0)
    if beta != 1.0:
        raise op.unsupported(f"a softmax with beta {beta}", "use 1")
    op.last_axis(source)
    return [op.apply(TfliteSoftmax.of_scale(step.scale), op.value(source))]


def l2_normalization(op: OperatorReader) -> Sequence[Applied]:
    """L2_NORMALIZATION over the last axis: output scale 1/128, zero point 0."""
    source, step = _fixed(op, "L2 normalization", 128, 0)
    op.last_axis(source)
    fused = op.options(12).integer(0, "b")
    if fused:
        raise op.unsupported(f"fused activation function {fused}", "TFLite has none here")
    return [op.apply(TfliteL2Normalization(step.zero_point), op.value(source))]


def log_softmax(op: OperatorReader) -> Sequence[Applied]:
    """LOG_SOFTMAX over the last axis: output scale 1/16, zero point 127."""
    source, step = _fixed(op, "log softmax", 16, 127)
    op.last_axis(source)
    return [op.apply(TfliteLogSoftmax.of_scale(step.scale), op.value(source))]


_BYTES: Mapping[str, Clip] = {"int8": INT8, "uint8": (0, 255)}
_SIGNED: Mapping[str, Clip] = {"int8": INT8, "int16": INT16, "int32": (-(2**31), 2**31 - 1)}


def quantize(op: OperatorReader) -> Sequence[Applied]:
    """QUANTIZE: from float32, or from one scale to another; also among int8, int16 and int32."""
    source, result = _ends(op)
    limits = _BYTES if op.dtype == "int8" else _SIGNED
    if result.dtype not in limits:
        raise op.unsupported(f"{result.dtype} activations ({result.place})", FULL_INT8)
    result_step, value, clip = op.step(result), op.value(source), limits[result.dtype]
    if source.dtype == "float32":
        inward = Quantize(result_step.scale, result_step.zero_point, result.dtype)
        return [op.apply(inward, value)]
    if source.dtype not in limits:
        raise op.unsupported(f"{source.dtype} activations ({source.place})", FULL_INT8)
    step = op.step(source)
    if op.dtype == "int16":
        factor, zeros = (
            fixed_point(step.scale / result_step.scale),
            (step.zero_point, result_step.zero_point),
        )
        rescale = PiecewiseRescale(factor, factor, zeros, clip, result.dtype)
        return [op.apply(rescale, value)]
    if source.dtype != result.dtype and op.differ_by_128(source, result):
        # The same numbers under another type: the kernel then only moves them.
        shift = Rescale.moving(-128 if result.dtype == "int8" else 128, clip, result.dtype)
        return [op.apply(shift, value, stem="offset")]
    if source.dtype == result.dtype == "int8":
        return [op.apply(converted(step, result_step, clip), value)]
    convert = replace(converted(step, result_step, clip), dtype=result.dtype)
    return [op.apply(convert, value)]


def dequantize(op: OperatorReader) -> Sequence[Applied]:
    """DEQUANTIZE: a tensor of 8 or 16 bits to float32."""
    source, result = _ends(op)
    if source.dtype not in (*_BYTES, "int16"):
        raise op.unsupported(f"{source.dtype} activations ({source.place})", FULL_INT8)
    if result.dtype != "float32":
        raise op.unsupported(f"a dequantization to {result.dtype} ({result.place})", FULL_INT8)
    step = op.step(source)
    outward = Dequantize(step.scale, step.zero_point)
    return [op.apply(outward, op.value(source))]


def negate(op: OperatorReader) -> Sequence[Applied]:
    """NEG of float32, as the converter writes it between DEQUANTIZE and QUANTIZE."""
    source, result = _ends(op)
    for tensor in (source, result):
        if tensor.dtype != "float32":
            raise op.unsupported(f"{tensor.dtype} activations ({tensor.place})", "float32")
    one = (1,) if source.shape else ()
    turned = RealCombine("multiply", b=np.full(one, -1, "float32"))
    return [op.apply(turned, op.value(source))]


def _ends(op: OperatorReader) -> tuple[TfliteTensor, TfliteTensor]:
    """Return the only input, which must be computed, and the output."""
    op.count((1,))
    source = op.tensor(0)
    if source.data is not None:
        raise op.unsupported(f"{source.place} is constant, not an activation")
    return source, op.operator.outputs[0]
