"""Conversions between number formats: QUANTIZE and DEQUANTIZE.

Inside a network tensors are int8, but where a converter negates reals.  At its border there may be
float32 and uint8: exporters put a QUANTIZE after such an input, and a QUANTIZE or DEQUANTIZE before
such an output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from htvm.frontend.operators import Applied
from htvm.frontend.scales import converted
from htvm.frontend.tflite.file import TfliteTensor
from htvm.frontend.tflite.reader import FULL_INT8, INT8, OperatorReader
from patterns.ops.float32.combine import RealCombine
from patterns.ops.float32.dequantize import Dequantize
from patterns.ops.float32.quantize import Quantize
from patterns.ops.integer.rescale import Rescale

__all__ = ["dequantize", "negate", "quantize"]

_BYTES = ("int8", "uint8")


def quantize(op: OperatorReader) -> Sequence[Applied]:
    """QUANTIZE: from float32, or from one 8-bit scale to another."""
    op.count((1,))
    source, result = op.tensor(0), op.operator.outputs[0]
    op.result_shape(source.shape)
    _computed(op, source)
    if result.dtype not in _BYTES:
        raise op.unsupported(f"{result.dtype} activations ({result.place})", FULL_INT8)
    made, value = op.step(result), op.value(source)
    clip = INT8 if result.dtype == "int8" else (0, 255)
    if source.dtype == "float32":
        inward = Quantize(made.scale, made.zero_point, result.dtype)
        return [Applied(op.position(), op.where, (value,), inward)]
    if source.dtype not in _BYTES:
        raise op.unsupported(f"{source.dtype} activations ({source.place})", FULL_INT8)
    step = op.step(source)
    if source.dtype != result.dtype and op.moved(source, result):
        # The same numbers under another type: the kernel then only moves them.
        shift = Rescale.moving(-128 if result.dtype == "int8" else 128, clip, result.dtype)
        return [Applied(op.position(), op.where, (value,), shift, stem="offset")]
    if source.dtype == result.dtype == "int8":
        return [Applied(op.position(), op.where, (value,), converted(step, made, clip))]
    convert = replace(converted(step, made, clip), dtype=result.dtype)
    return [Applied(op.position(), op.where, (value,), convert)]


def dequantize(op: OperatorReader) -> Sequence[Applied]:
    """DEQUANTIZE: a tensor of 8 or 16 bits to float32."""
    op.count((1,))
    source, result = op.tensor(0), op.operator.outputs[0]
    op.result_shape(source.shape)
    _computed(op, source)
    if source.dtype not in (*_BYTES, "int16"):
        raise op.unsupported(f"{source.dtype} activations ({source.place})", FULL_INT8)
    if result.dtype != "float32":
        raise op.unsupported(f"a dequantization to {result.dtype} ({result.place})", FULL_INT8)
    step = op.step(source)
    outward = Dequantize(step.scale, step.zero_point)
    return [Applied(op.position(), op.where, (op.value(source),), outward)]


def negate(op: OperatorReader) -> Sequence[Applied]:
    """NEG of float32, as the converter writes it between DEQUANTIZE and QUANTIZE."""
    op.count((1,))
    source, result = op.tensor(0), op.operator.outputs[0]
    op.result_shape(source.shape)
    _computed(op, source)
    for tensor in (source, result):
        if tensor.dtype != "float32":
            raise op.unsupported(f"{tensor.dtype} activations ({tensor.place})", "float32")
    one = (1,) if source.shape else ()
    turned = RealCombine("multiply", b=np.full(one, -1, "float32"))
    return [Applied(op.position(), op.where, (op.value(source),), turned)]


def _computed(op: OperatorReader, tensor: TfliteTensor) -> None:
    if tensor.data is not None:
        raise op.unsupported(f"{tensor.place} is constant, not an activation")
