"""Averages of int8 windows, and softmax of int8 rows, as onnxruntime's CPU kernels define them.

An average has a single term, so it is exact (see `patterns.ops.onnxruntime.rounding`).  The softmax
is ``y = round(e[max - x] / (s_y * sum(e[max - x]))) + zero_point``; the kernel has the exponentials
of all 256 distances from the maximum in float32; here they are integers with as many bits as the
sum of a row allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Array, Convolution, Layer, OnnxRequant
from patterns.op import INT8, Operands, Range, Scale, TensorType, Work, operator
from patterns.ops.float32.base import Definitions
from patterns.ops.layers import map_of
from patterns.ops.moves.base import y_axis
from patterns.ops.onnxruntime.rounding import EXACT_BELOW, ROUNDING, float_product, rounded
from patterns.ops.scaling import window_counts
from patterns.primitive import Argument, Inputs, PrimitiveOp, extents, sizes_of, type_of


@operator
@dataclass(frozen=True, eq=False)
class OnnxAverage(PrimitiveOp):
    """Averages of int8 windows: the centred sum times s_in / (s_out * count).

    Attributes:
        requant: requantization, whose scale includes the number of elements in a window.
        kernel, strides: sizes (y, x).
        padding: sizes (top, left, bottom, right); positions outside count as 0.0.
        clip: inclusive range of the output.
        layout: layout of the maps, ``"NHWC"`` or ``"NCHW"``.
        steps: for onnxruntime's QLinearAveragePool, which sums row by row in float32, rounds after
            each step, and adds the zero point before it rounds to an integer: scales of input and
            output, and the output's zero point, which may be that of uint8 (0.0 for its float
            pool, which adds the zero point afterwards).  If empty, the exact sum is scaled and
            rounded once, as its QLinearGlobalAveragePool does.
    """

    kind = "onnx_average"
    stem = "average"
    work = Work.WINDOW
    scale = Scale.FREE

    requant: OnnxRequant
    kernel: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    clip: Range = INT8
    layout: str = "NCHW"
    steps: tuple[float, ...] = ()

    @property
    def zero_point(self) -> int:
        """Integer of the output that represents 0.0."""
        return self.requant.output_zero_point

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        source, y = inputs[0].shape, y_axis(self.layout)
        maps = source[y : y + 2]
        sizes = window_counts(maps, self.kernel, self.strides, self.padding)
        if min(sizes) < 1:
            raise IntegerFormError(f"windows of {self.kernel} on maps of {maps}")
        return TensorType((*source[:y], *sizes, *source[y + 2 :]))

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, and mantissa and shift of the scale.

        In float32: both scales, the number of elements in a window, the zero point, and what
        rounds.
        """
        if self.steps:
            first, last, zero = self.steps
            figures = [first, last, math.prod(self.kernel), zero, *ROUNDING]
            return Argument("x", inputs[0]), Argument("figures", np.asarray(figures, "float32"))
        factors = np.asarray([*self.requant.multiplier, *self.requant.shift], "int32")
        return Argument("x", inputs[0]), Argument("factors", factors)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        source, factor = tensors
        if self.steps:
            return self._in_reals(source, factor)
        total = self._sums(source)
        ((mantissa,), (shift,)) = self.requant.multiplier, self.requant.shift
        bound = math.prod(self.kernel) * 255
        large, saturate = bound >= EXACT_BELOW, (bound * mantissa) >> shift >= 1 << 30

        def element(*index: Any) -> Any:
            scaled = float_product(
                total(*index), factor[0], factor[1], large=large, saturate=saturate
            )
            value = scaled + self.requant.output_zero_point
            return tirx.Cast("int8", tirx.max(tirx.min(value, self.clip[1]), self.clip[0]))

        return te.compute(total.shape, element, name="average")

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Layer | None:
        """See `Op.kept_layer`: a sum is a product with ones, if it is rounded once."""
        source, result = map_of(*inputs[0], self.layout), map_of(name, output, self.layout)
        if self.steps or source is None or result is None:
            return None
        return Convolution(
            name=name, inputs=(source,), output=result,
            weight=np.ones((source.shape[0], 1, *self.kernel), np.int8), stride=self.strides,
            pad=self.padding, groups=source.shape[0], requant=self.requant, clip=self.clip,
        )  # fmt: skip

    def _in_reals(self, source: te.Tensor, figures: te.Tensor) -> te.Tensor:
        total = self._sums(source, figures[0])

        def element(*index: Any) -> Any:
            block = Definitions()
            value = total(*index) / figures[2] / figures[1] + figures[3]
            left = self.requant.output_zero_point - int(self.steps[2])
            return rounded(block, value, figures, 4, left, self.clip)

        return te.compute(total.shape, element, name="average")

    def _sums(self, source: te.Tensor, step: Any = None) -> te.Tensor:
        """Return the centred sum of each window, in reals if a step is given.

        Positions outside do not contribute.
        """
        at, kernel, (zero,) = y_axis(self.layout), self.kernel, self.requant.input_zero_points
        sizes = sizes_of(source)[at : at + 2]
        ry, rx = te.reduce_axis((0, kernel[0]), "ry"), te.reduce_axis((0, kernel[1]), "rx")

        def window(*index: Any) -> Any:
            y = index[at] * self.strides[0] - self.padding[0] + ry
            z = index[at + 1] * self.strides[1] - self.padding[1] + rx
            taken = tirx.Cast("int32", source(*index[:at], y, z, *index[at + 2 :])) - zero
            if step is not None:
                taken = tirx.Cast("float32", taken) * step
            if any(self.padding):
                inside = tirx.all(y >= 0, y < sizes[0], z >= 0, z < sizes[1])
                taken = tirx.if_then_else(inside, taken, tirx.const(0, taken.ty.dtype))
            return te.sum(taken, axis=[ry, rx])

        return te.compute(self.extents([source]), window, name="total")


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
