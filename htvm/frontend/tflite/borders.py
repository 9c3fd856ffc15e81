"""Conversions between number formats: QUANTIZE and DEQUANTIZE.

Inside a network tensors are int8, but where a converter negates reals.  At its border there may be
float32 and uint8: exporters put a QUANTIZE after such an input, and a QUANTIZE or DEQUANTIZE before
such an output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from htvm.frontend.operators import Applied, Clip
from htvm.frontend.scales import converted
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.reader import FULL_INT8, INT8, INT16, OperatorReader
from patterns.ops.float32.combine import RealCombine
from patterns.ops.float32.quantize import Dequantize, Quantize
from patterns.ops.integer.rescale import Rescale
from patterns.ops.requantize import fixed_point
from patterns.ops.tflite.wide import PiecewiseRescale

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
    if source.dtype != result.dtype and op.moved(source, result):
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
