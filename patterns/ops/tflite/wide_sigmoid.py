"""Logistic and tanh of int16 in TFLite's arithmetic: one curve of 256 points, and lines between.

tanh(x) is 2 * logistic(2x) - 1, and both are symmetric, so that one table of the logistic function
of positive numbers serves both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Array
from patterns.op import Range, TensorType, operator
from patterns.ops.tflite.wide import INT16
from patterns.primitive_op import Argument, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["WideSigmoid"]

_POINTS = 256
_POINTS_PER_UNIT = 24
_UNIT = 3 << 12  # of numbers that are scaled to be looked up
_MOST_BITS = 15  # of the factor


@operator
@dataclass(frozen=True, eq=False)
class WideSigmoid(PrimitiveOp):
    """The logistic function or tanh of int16; output scale 1/32768, zero point 0.

    Attributes:
        function: name of the function.
        multiplier, shift: a number times ``multiplier``, shifted right and rounded, is what is
            looked up; from `of_scale`.
    """

    kind = "wide_sigmoid"

    function: Literal["logistic", "tanh"]
    multiplier: int
    shift: int

    @classmethod
    def of_scale(cls, function: Literal["logistic", "tanh"], scale: float) -> WideSigmoid:
        """Return the function for an input of this scale.

        Raises:
            UnsupportedError: the scale is too large for TFLite's arithmetic.
        """
        # TFLite takes a scale of 1/4096, or for tanh 1/2048, within 0.07 %, for exactly that.
        power = np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2)))
        exponent = round(float(power))
        whole = (-12,) if function == "logistic" else (-12, -11)
        if abs(power - np.float32(exponent)) < np.float32(1e-3) and exponent in whole:
            return cls(function, 3 << (12 + exponent), 0)
        factor, shift = float(np.float32(scale)) * _UNIT, 0
        while factor <= (2**_MOST_BITS - 1) / 2 and shift < 31:
            factor, shift = factor * 2, shift + 1
        if factor >= 2**_MOST_BITS:
            raise UnsupportedError(
                f"a {function} whose input scale is {scale:g}", hint="use below 2.6"
            )
        return cls(function, int(factor), shift)

    @property
    def stem(self) -> str:
        """See `Op.stem`."""
        return self.function

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        if inputs[0].dtype != "int16":
            raise IntegerFormError(f"an input of type {inputs[0].dtype}, not int16")
        return inputs[0]

    def arguments(self, inputs: Sequence[Expr]) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input and the curve."""
        return Argument("x", inputs[0]), Argument("curve", _curve())

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, curve = tensors
        logistic = self.function == "logistic"
        # Bits between two points, bits of the result's fraction that are rounded, and the result
        # for zero before that, with a half.
        between, dropped = (9, 10) if logistic else (8, 8)
        centre = (1 << 24 if logistic else 0) + (1 << (dropped - 1))
        last = ((_POINTS - 1) << between) - 1
        half = 1 << (self.shift - 1) if self.shift else 0

        def element(*index: Any) -> Any:
            scaled = (tirx.Cast("int32", source(*index)) * self.multiplier + half) >> self.shift
            magnitude = tirx.min(tirx.Select(scaled < 0, -scaled, scaled), last)
            place, part = magnitude >> between, magnitude & ((1 << between) - 1)
            low, high = (tirx.Cast("int32", curve[at]) for at in (place, place + 1))
            value = (low << between) + part * (high - low)
            signed = tirx.Select(scaled < 0, -1 - value, value)
            return tirx.Cast("int16", (signed + centre) >> dropped)

        return te.compute(source.shape, element, name=self.function)

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: all of int16."""
        return INT16


@cache
def _curve() -> Array:
    """The logistic function less 1/2 of 0 to 255 / 24, with 16 fraction bits: int16 [256].

    Each point is half as much too high as the line to the next one is too low between them.
    """

    def exact(point: float) -> float:
        return 2**16 / (1 + math.exp(-point / _POINTS_PER_UNIT)) - 2**15

    def raised(point: int) -> float:
        below = exact(point + 0.5) - (exact(point) + exact(point + 1)) / 2
        return exact(point) + below / 2

    points = [math.floor(raised(point) + 0.5) for point in range(_POINTS - 1)]
    return np.asarray([*points, 2**15 - 1], "int16")
