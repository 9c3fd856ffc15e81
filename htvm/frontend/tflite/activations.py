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

_INPUT_BITS = 4  # integer bits of the argument of logistic and tanh, Q4.27


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
    source, step, made = unary(op)
    if made != Quantization(1 / parts, zero_point):
        article = "an" if name.startswith("L") else "a"
        raise op.unsupported(
            f"{article} {name} with output scale {made.scale:g}, zero point {made.zero_point}",
            f"int8 {name} has scale 1/{parts} and zero point {zero_point}",
        )
    return source, step


def sigmoid(op: OperatorReader, function: Literal["logistic", "tanh"]) -> Sequence[Applied]:
    """LOGISTIC and TANH: output scales 1/256 and 1/128, zero points -128 and 0."""
    kernel, bits, offset = gemmlowp.tanh, 7, 0
    if function == "logistic":
        kernel, bits, offset = gemmlowp.logistic, 8, -128
    source, step = _fixed(op, function, 1 << bits, offset)
    real = step.scale * 2.0 ** (31 - _INPUT_BITS)
    if not 2.0**-31 <= real < 2.0**30:
        raise op.unsupported(f"an input scale of {step.scale:g}", "use 2**-57 to 8")
    multiplier, shift = fixed_point(real)
    # Beyond +-15 the curve has reached its limit.
    limit = math.floor(15.0 * 2.0 ** (31 - _INPUT_BITS) / 2.0**shift)

    def entry(x: int) -> int:
        centred = x - step.zero_point
        if abs(centred) >= limit:
            return INT8[0] if centred <= -limit else INT8[1]
        curve = kernel(gemmlowp.scaled(centred, multiplier, shift), _INPUT_BITS)
        return gemmlowp.rounding_shift(curve, 31 - bits) + offset

    return [table_of(op, function, op.value(source), tabulate(entry))]


_SHIFTS = 15  # right shifts that 16 bits have


def hard_swish(op: OperatorReader) -> Sequence[Applied]:
    """HARD_SWISH: x * clip(x + 3, 0, 6) / 6 in int16 arithmetic."""
    source, step, made = unary(op)
    output, output_shift = fixed_point(step.scale / 128 / made.scale)
    relu_ish, relu_shift = fixed_point(step.scale / 128 / (3 / 32768))
    if output_shift > 0:
        raise op.unsupported(
            f"a hard swish whose output step {made.scale:g} is 128 times finer than its input's"
        )
    if min(output_shift, relu_shift) < -_SHIFTS:
        raise op.unsupported(
            f"a hard swish from steps of {step.scale:g} to steps of {made.scale:g}, which TFLite's "
            "shifts of 16 bits do not reach",
            "calibrate again: one of the two does not fit its numbers",
        )
    output, relu_ish = (min((value + (1 << 15)) >> 16, 2**15 - 1) for value in (output, relu_ish))

    def function(x: int) -> int:
        value = (x - step.zero_point) << 7
        scaled = _high_multiply_16(value, output)
        gate = value
        if relu_shift > 0:
            gate = _saturated_16(gate << (relu_shift - 1))
        gate = _high_multiply_16(gate, relu_ish)
        if relu_shift > 0:
            gate = _saturated_16(gate << 1)
        if relu_shift < 0:
            gate = gemmlowp.rounding_shift(gate, -relu_shift)
        gate = (gate + (1 << 15)) >> 1
        product = gate * scaled
        high = abs(product) >> 15  # toward zero
        high = high if product >= 0 else -high
        return gemmlowp.rounding_shift(high, -output_shift) + made.zero_point

    return [table_of(op, "hard_swish", op.value(source), tabulate(function))]


def _saturated_16(value: int) -> int:
    return min(max(value, -(2**15)), 2**15 - 1)


def _high_multiply_16(a: int, b: int) -> int:
    """Return the high half of 2ab for int16, rounded half away from zero."""
    product = a * b
    nudged = product + ((1 << 14) if product >= 0 else 1 - (1 << 14))
    high = abs(nudged) >> 15
    return _saturated_16(high if nudged >= 0 else -high)


def leaky_relu(op: OperatorReader) -> Sequence[Applied]:
    """LEAKY_RELU: negative numbers times alpha."""
    source, step, made = unary(op)
    alpha = op.options(75).real(0)
    if not math.isfinite(alpha):
        raise op.corrupt(f"a slope of {alpha}")
    # Products and ratios of the file's float32 numbers, not rounded to float32 in between, as in
    # the package of TFLite Micro; for int16 the last bit decides how some elements round.
    first, last, factor = (float(np.float32(n)) for n in (step.scale, made.scale, alpha))
    slope = first * factor / last
    above, below = fixed_point(first / last), fixed_point(abs(slope))
    if op.dtype == "int16":
        signed = (below[0] if slope >= 0 else -below[0], below[1])
        wide = PiecewiseRescale(above, signed)
        return [op.apply(wide, op.value(source), stem="leaky_relu")]

    def function(x: int) -> int:
        centred = x - step.zero_point
        if centred >= 0:
            return gemmlowp.scaled(centred, *above) + made.zero_point
        # The sign of the slope comes last: halves are rounded away from zero before.
        magnitude = gemmlowp.scaled(centred, *below)
        return (magnitude if slope >= 0 else -magnitude) + made.zero_point

    return [table_of(op, "leaky_relu", op.value(source), tabulate(function))]


def prelu(op: OperatorReader) -> Sequence[Applied]:
    """PRELU: negative numbers times a constant slope, one or one per channel."""
    source, alpha = _channel_slopes(op)
    step, made, slope = op.step(source), op.step(op.result()), op.step(alpha)
    above = fixed_point(step.scale / made.scale)
    below = fixed_point(step.scale * slope.scale / made.scale)
    factors = constant_array(alpha).reshape(-1).astype("int32") - slope.zero_point
    if op.dtype == "int16":
        wide = PiecewiseRescale(above, below, slopes=factors)
        return [op.apply(wide, op.value(source), stem="prelu")]

    def row(factor: int) -> Array:
        def function(x: int) -> int:
            centred = x - step.zero_point
            if centred >= 0:
                return gemmlowp.scaled(centred, *above) + made.zero_point
            return gemmlowp.scaled(centred * factor, *below) + made.zero_point

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
    source, step, made = unary(op)
    if op.dtype == "int16":
        factor = fixed_point(step.scale / made.scale)
        wide = PiecewiseRescale(factor, factor, clip=(0, op.limits[1]))
        return [op.apply(wide, op.value(source))]
    clip = (bound(0.0, made, INT8[0]), INT8[1])
    return [op.apply(converted(step, made, clip), op.value(source))]


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
    made, value, clip = op.step(result), op.value(source), limits[result.dtype]
    if source.dtype == "float32":
        inward = Quantize(made.scale, made.zero_point, result.dtype)
        return [op.apply(inward, value)]
    if source.dtype not in limits:
        raise op.unsupported(f"{source.dtype} activations ({source.place})", FULL_INT8)
    step = op.step(source)
    if op.dtype == "int16":
        factor, zeros = fixed_point(step.scale / made.scale), (step.zero_point, made.zero_point)
        rescale = PiecewiseRescale(factor, factor, zeros, clip, result.dtype)
        return [op.apply(rescale, value)]
    if source.dtype != result.dtype and op.differ_by_128(source, result):
        # The same numbers under another type: the kernel then only moves them.
        shift = Rescale.moving(-128 if result.dtype == "int8" else 128, clip, result.dtype)
        return [op.apply(shift, value, stem="offset")]
    if source.dtype == result.dtype == "int8":
        return [op.apply(converted(step, made, clip), value)]
    convert = replace(converted(step, made, clip), dtype=result.dtype)
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
