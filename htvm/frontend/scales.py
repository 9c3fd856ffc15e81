"""Operators in TFLite's arithmetic between tensors with given quantizations."""

from __future__ import annotations

import math

import numpy as np

from htvm.frontend.operators import Clip, Quantization
from patterns.ops.convert import Convert
from patterns.ops.tflite.binary import TfliteAdd
from patterns.ops.tflite.factors import AddFactors


def converted(before: Quantization, after: Quantization, clip: Clip) -> Convert:
    """Return the conversion of int8 from one quantization to another.

    Raises:
        UnsupportedError: the scales are too far apart.
    """
    zeros = (before.zero_point, after.zero_point)
    return Convert.of_scales((before.scale, after.scale), zeros, clip)


def summed(a: Quantization, b: Quantization, output: Quantization, clip: Clip) -> TfliteAdd:
    """Return the sum of two int8 tensors, each with its own quantization.

    Raises:
        UnsupportedError: the output's scale is absurdly small.
    """
    scales = (a.scale, b.scale, output.scale)
    zeros = (a.zero_point, b.zero_point, output.zero_point)
    return TfliteAdd(AddFactors.from_scales(scales, zeros), clip)


def bound(real: float, step: Quantization, otherwise: int, limits: Clip = (-128, 127)) -> int:
    """Return a real bound in quantized steps, inside the type's limits, int8 by default.

    It is divided as float32 and rounded half away from zero; ``otherwise`` is returned if it is
    infinite.
    """
    if math.isinf(real):
        return otherwise
    scaled = float(np.float32(real) / np.float32(step.scale))
    number = step.zero_point + int(math.copysign(math.floor(abs(scaled) + 0.5), scaled))
    return min(max(number, limits[0]), limits[1])
