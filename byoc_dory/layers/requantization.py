"""Requantizations from the int32 accumulator of a layer to its output type.

``acc`` is the accumulator, including the bias; ``clip`` is the layer's.  Divisions are shifts, and
their rounding is part of the definition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Shift:
    """Requantization by an arithmetic right shift that floors: ``y = clip(acc >> shift)``."""

    shift: int


@dataclass(frozen=True)
class MulShift:
    """Requantization ``y = clip((acc * mul + add) >> shift)``; one entry, or one per channel."""

    mul: tuple[int, ...]
    shift: tuple[int, ...]
    add: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class TfliteRequant:
    """TFLite's fixed-point requantization with double rounding; one entry, or one per channel.

    Attributes:
        multiplier: Q31 multipliers, per tensor (one entry) or per output channel.
        shift: TFLite's exponents (positive: left), as many as there are multipliers; -1 for a
            multiplier of zero, which gives zero with any, because all right shifts are simpler.
        output_zero_point: added after scaling.
        input_zero_points: one per input tensor; subtracted from the activations.
    """

    multiplier: tuple[int, ...]
    shift: tuple[int, ...]
    output_zero_point: int = 0
    input_zero_points: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        factors = zip(self.multiplier, self.shift, strict=True)
        object.__setattr__(self, "shift", tuple(shift if mul else -1 for mul, shift in factors))


@dataclass(frozen=True)
class OnnxRequant:
    """onnxruntime's float32 requantization; one entry, or one per channel.

    ``y = clip(rint(float32(acc) * scale) + output_zero_point)``, ties to even, where the float32
    ``scale`` is ``multiplier * 2**-shift``.

    Attributes:
        multiplier: 24-bit mantissas (0 for a scale that takes every int32 to zero).
        shift: shifts of 1 to 62 bits, as many as there are multipliers.
        output_zero_point: added after scaling.
        input_zero_points: one per input tensor; subtracted from the activations.
    """

    multiplier: tuple[int, ...]
    shift: tuple[int, ...]
    output_zero_point: int = 0
    input_zero_points: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class AnalogRequant:
    """Requantization of an in-memory core with ternary weights, such as DIANA's analog core.

    Each pass over the array gives ``v = clip(floor(acc / gain), *adc)``; the passes are summed,
    and ``y = clip((v * mul + add) >> shift)``.

    Attributes:
        gain: value of one step of the ADC, a power of two.
        mul, add: 16-bit numbers, one entry or one per output channel.
        shift: number of bits of the arithmetic right shift, which floors.
        adc: inclusive range of the converter.
        rows: number of rows of the array; a pass takes as many whole input channels as they hold,
            which is ``rows // (fy * fx)`` channels for the filter that the core executes.
    """

    gain: int
    mul: tuple[int, ...]
    add: tuple[int, ...]
    shift: int
    rows: int
    adc: tuple[int, int] = (-32, 31)


Requant: TypeAlias = Shift | MulShift | TfliteRequant | OnnxRequant | AnalogRequant
