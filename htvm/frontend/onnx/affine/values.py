"""What a tensor of the file can be while it is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Clip, Quantization

__all__ = ["INT8", "Bound", "Constant", "Pending", "Quantized", "Real", "Sums", "Value", "View"]

INT8: Clip = (-128, 127)
"""Range of the activations inside; unsigned ones are moved by 128."""


@dataclass(frozen=True, eq=False)
class Quantized:
    """An 8-bit tensor.

    Attributes:
        activation: int8; what the file calls uint8 is less by 128.
        dtype: in the file, int8 or uint8.
    """

    activation: Activation
    dtype: str


@dataclass(frozen=True, eq=False)
class View:
    """A dequantized 8-bit tensor; ``step`` is that of the int8 activation."""

    activation: Activation
    step: Quantization

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor."""
        return self.activation.shape


@dataclass(frozen=True, eq=False)
class Real:
    """A float32 tensor that is computed."""

    activation: Activation


@dataclass(frozen=True, eq=False)
class Sums:
    """An int32 tensor, as ConvInteger and MatMulInteger give it."""

    activation: Activation


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant.

    Attributes:
        data: as in the file, before dequantization; integers if ``scale`` is given.
        scale: float32, of the rank of ``data``; ``None`` if it was not dequantized.
        zero_point: likewise, int64.
    """

    data: Array
    scale: Array | None = None
    zero_point: Array | None = None

    @property
    def centred(self) -> Array:
        """The integers less their zero point, int64."""
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
    """Bounds on reals, as rectifiers set them."""

    low: float = -math.inf
    high: float = math.inf

    def clip(self, step: Quantization) -> Clip:
        """In integers of that step, inside int8."""
        return _integer(self.low, step), _integer(self.high, step)

    def within(self, low: float, high: float) -> Bound:
        """Both bounds; as the file applies them one after the other, the later ones win."""
        return Bound(min(max(self.low, low), high), min(max(self.high, low), high))


def _integer(real: float, step: Quantization) -> int:
    if math.isinf(real):
        return INT8[0] if real < 0 else INT8[1]
    ratio = float(np.rint(np.float32(real) / np.float32(step.scale)))
    return int(min(max(ratio + step.zero_point, INT8[0]), INT8[1]))


@dataclass(frozen=True, eq=False)
class Pending:
    """A float result of 8-bit operands, on its way to being quantized.

    Attributes:
        shape: of the result.
        finish: makes the int8 tensor, given its step, bounds, and the constant added to it.
        real: makes the float tensor instead (arguments: bounds and that constant); ``None`` if
            there is no float form.
        bias_axis: axis along which a constant may be added before quantization, if it may.
        bias: that constant.
        bound: what rectifiers let through.
        of: the one 8-bit tensor it is a function of, element by element, and the function of
            float32 arrays, if it is one.
    """

    shape: tuple[int, ...]
    finish: Callable[[Quantization, Clip, Constant | None], Activation]
    real: Callable[[Bound, Constant | None], Activation] | None = None
    bias_axis: int | None = None
    bias: Constant | None = None
    bound: Bound = Bound()
    of: tuple[View, Callable[[Array], Array]] | None = None


Value: TypeAlias = Quantized | View | Real | Sums | Constant | Pending
