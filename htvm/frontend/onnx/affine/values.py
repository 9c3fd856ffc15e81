"""The values that a tensor of the file can stand for while it is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied, Clip, Quantization
from htvm.frontend.scales import Rounding, bound
from patterns.op import INT8
from patterns.ops.float32.quantize import Dequantize


@dataclass(frozen=True, eq=False)
class _Written:
    """A tensor that has been written, of one of the kinds below."""

    activation: Activation

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return self.activation.shape


@dataclass(frozen=True, eq=False)
class Quantized(_Written):
    """An 8-bit tensor; in programs of torch also one of int16.

    Attributes:
        activation: int8 tensor, to which uint8 in the file is shifted by -128; or int16.
        dtype: type in the file.
    """

    dtype: str


@dataclass(frozen=True, eq=False)
class View(_Written):
    """A dequantized 8-bit tensor; one of int16 only for those who ask for it (`integers_of`).

    Attributes:
        activation: int8 tensor, to which uint8 in the file is shifted by -128; or int16.
        step: quantization of that tensor.
        dtype: type in the file.
    """

    step: Quantization
    dtype: str = "int8"


@dataclass(frozen=True, eq=False)
class Real(_Written):
    """A computed float32 tensor."""


@dataclass(frozen=True, eq=False)
class Sums(_Written):
    """An int32 tensor without scale: sums of ConvInteger and MatMulInteger, places, or indices.

    Attributes:
        activation: int32 tensor.
        dtype: type in the file, int16, int32 or int64.
    """

    dtype: str = "int32"


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant.

    Attributes:
        data: elements as in the file, before dequantization; integers if ``scale`` is given.
        scale: float32 scale, with the rank of ``data``; ``None`` if it was not dequantized.
        zero_point: int64 zero point, likewise.
        spread: place of the node that leaves scales along several axes, if one does.
        blocks: whether there is a scale for each block of elements.
    """

    data: Array
    scale: Array | None = None
    zero_point: Array | None = None
    spread: str = ""
    blocks: bool = False

    @classmethod
    def along_axes(
        cls, data: Array, scale: Array, zeros: Array, where: str, *, blocks: bool = False
    ) -> Constant:
        """Return a constant with a scale and zero point for each element as one along few axes.

        Args:
            data: the elements.
            scale, zeros: broadcast to all elements, or some of the axes already of size 1.
            where: place of the node that they come from.
            blocks: see the class.
        """
        for axis in range(data.ndim):
            first, zero = scale.take([0], axis), zeros.take([0], axis)
            if (scale == first).all() and (zeros == zero).all():
                scale, zeros = first, zero
        several = sum(size > 1 for size in scale.shape) > 1
        return cls(data, scale, zeros, where if several else "", blocks)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return tuple(self.data.shape)

    @property
    def centred(self) -> Array:
        """The integers minus their zero point, int64."""
        assert self.scale is not None and self.zero_point is not None
        return self.data.astype("int64") - self.zero_point

    @property
    def real(self) -> Array:
        """The values, float32 if they were dequantized."""
        if self.scale is None:
            return self.data
        return self.centred.astype("float32") * self.scale


@dataclass(frozen=True)
class Bound:
    """Bounds on reals, as applied by rectifiers."""

    low: float = -math.inf
    high: float = math.inf

    def clip(self, step: Quantization, rounding: Rounding, dtype: str = "int8") -> Clip:
        """Return the bounds as integers of a type, in this quantization."""
        if rounding == "tflite":
            return bound(self.low, step, INT8[0]), bound(self.high, step, INT8[1])
        limits = np.iinfo(dtype)
        ends = int(limits.min), int(limits.max)
        return _integer(self.low, step, rounding, ends), _integer(self.high, step, rounding, ends)

    def within(self, low: float, high: float) -> Bound:
        """Combine with later bounds, which win, because the file applies them afterwards."""
        return Bound(min(max(self.low, low), high), min(max(self.high, low), high))


def in_steps(reals: Any, step: Quantization, rounding: Rounding) -> Any:
    """Return float32 reals in steps of a scale, float32.

    torch multiplies by the reciprocal, which it takes in double and rounds; others divide.
    """
    if rounding == "torch":
        return reals * np.float32(1.0 / step.scale)
    return reals / np.float32(step.scale)


def _integer(real: float, step: Quantization, rounding: Rounding, limits: Clip) -> int:
    if math.isinf(real):
        return limits[0] if real < 0 else limits[1]
    ratio = float(np.rint(in_steps(np.float32(real), step, rounding)))
    return int(min(max(ratio + step.zero_point, limits[0]), limits[1]))


@dataclass(frozen=True, eq=False)
class Pending:
    """A float result of 8-bit or int16 operands that is yet to be quantized.

    Attributes:
        shape: shape of the result.
        finish: makes the tensor of ``dtype``, given its quantization, bounds, and the constant
            added to it.
        real: makes the float tensor instead (arguments: bounds and that constant); ``None`` if
            there is no float form.
        bias_axis: axis along which a constant may be added before quantization; ``None`` if not
            allowed.
        bias: the added constant.
        bound: bounds from rectifiers.
        of: if it is an element-wise function of one 8-bit tensor, that tensor and the function of
            float32 arrays.
        dtype: int8, or int16 of int16 operands; for another type the real form is quantized.
    """

    shape: tuple[int, ...]
    finish: Callable[[Quantization, Clip, Constant | None], Activation]
    real: Callable[[Bound, Constant | None], Activation] | None = None
    bias_axis: int | None = None
    bias: Constant | None = None
    bound: Bound = Bound()
    of: tuple[View, Callable[[Array], Array]] | None = None
    dtype: str = "int8"


Value: TypeAlias = Quantized | View | Real | Sums | Constant | Pending


def integers_of(value: Value) -> View | None:
    """Return the int16 tensor that reals were dequantized from, if they were.

    Most operators compute in float32 between int16 tensors, as torch does, so these stand for their
    reals; those that move elements or have weights ask for the integers.
    """
    origin = value.activation.origin if isinstance(value, Real) else None
    if not isinstance(origin, Applied) or not isinstance(origin.op, Dequantize):
        return None
    (source,) = origin.inputs
    step = Quantization(origin.op.step, origin.op.input_zero_point)
    return View(source, step, "int16") if source.dtype == "int16" else None
