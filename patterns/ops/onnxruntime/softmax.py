"""Softmax of int8 rows with a table of exponentials, as in onnxruntime's quantized kernel.

``y = round(e[max - x] / (s_y * sum(e[max - x]))) + zero_point``; the kernel has the exponentials of
all 256 distances from the maximum in float32; here they are integers with as many bits as the sum
of a row allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from patterns.op import INT8, Range, TensorType, Work, operator
from patterns.primitive import extents, sizes_of
from patterns.primitive_op import Argument, Inputs, PrimitiveOp, type_of

_BITS = 30  # bits of a sum, and of an exponential in output steps


def exponentials(scale: float, row: int) -> Array:
    """``exp(-d * scale)`` for d from 0 to 255, int32 [256]; sums of such rows are at most 2**30."""
    bits = _BITS - math.ceil(math.log2(max(row, 1)))
    distances = np.arange(256, dtype="float64") * float(np.float32(scale))
    return np.rint(np.exp(-distances) * 2.0**bits).astype("int32")


@operator
@dataclass(frozen=True, eq=False)
class OnnxSoftmax(PrimitiveOp):
    """A softmax over the last axis of an int8 tensor of any rank.

    Attributes:
        input_step: scale of the input.
        output_step: scale of the result, at least 2**-15.
        zero_point: integer of the result that represents 0.0.
        clip: inclusive range of the result.
    """

    kind = "onnx_softmax"
    stem = "softmax"
    work = Work.SOFTMAX

    input_step: float
    output_step: float
    zero_point: int = 0
    clip: Range = INT8

    @property
    def _steps(self) -> int:
        """Steps of the result in 1.0, in units of 2**-16.

        onnxruntime's kernel takes whole steps only (``floor(1 / scale)``), also for other scales.
        """
        return int(np.floor(np.float32(1) / np.float32(self.output_step))) << 16

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        row = inputs[0].shape[-1]
        if self._steps >= 1 << 31 or row > 1 << 20:
            raise UnsupportedError(
                f"a softmax of rows of {row} to a scale of {self.output_step:g}",
                hint="quantize its result with scale 1/256",
            )
        return TensorType(inputs[0].shape)

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the exponentials."""
        table = exponentials(self.input_step, type_of(inputs[0]).shape[-1])
        return Argument("x", inputs[0]), Argument("exponential", table)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, table = tensors
        shape = sizes_of(source)
        row = tirx.const(shape[-1], "int64")
        kmax, ksum = te.reduce_axis((0, row), "kmax"), te.reduce_axis((0, row), "ksum")
        largest = te.compute(
            extents(shape[:-1]), lambda *i: te.max(source(*i, kmax), axis=[kmax]), "largest"
        )

        def exponential(index: Any, k: Any) -> Any:
            top = tirx.Cast("int32", largest(*index))
            return table[top - tirx.Cast("int32", source(*index, k))]

        total = te.compute(
            extents(shape[:-1]), lambda *i: te.sum(exponential(i, ksum), axis=[ksum]), "total"
        )

        def element(*index: Any) -> Any:
            *batch, k = index
            steps = tirx.const(self._steps, "int64")
            numerator = tirx.Cast("int64", exponential(batch, k)) * steps
            whole = tirx.Cast("int64", total(*batch)) << tirx.const(16, "int64")
            half = whole >> tirx.const(1, "int64")
            value = tirx.Cast("int32", tirx.truncdiv(numerator + half, whole)) + self.zero_point
            return tirx.Cast("int8", tirx.max(tirx.min(value, self.clip[1]), self.clip[0]))

        return te.compute(extents(shape), element, "softmax")
