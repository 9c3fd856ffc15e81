"""Fixed-point factors of TFLite's sums and products of two tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.errors import UnsupportedError
from patterns.ops.requantize import fixed_point

if TYPE_CHECKING:
    from typing_extensions import Self

ADD_LEFT_SHIFT = 20
"""Number of fraction bits that TFLite gives the operands of an add before scaling them."""

WIDE_LEFT_SHIFT = 15
"""The same of an add of int16."""

MULTIPLY_LEFT_SHIFT = 14
"""Most bits by which a product of two centred bytes, below 2**16, may be shifted left."""

SQUARE_LEFT_SHIFT = 7
"""The same of a squared difference."""


@dataclass(frozen=True)
class AddFactors:
    """TFLite's add: both operands scaled to a common step, summed, scaled to the output.

    Attributes:
        multipliers, shifts: those of first operand, second operand and output.
        zero_points: those of first operand, second operand and output.
        bits: number of fraction bits of the operands.
    """

    multipliers: tuple[int, int, int]
    shifts: tuple[int, int, int]
    zero_points: tuple[int, int, int]
    bits: int = ADD_LEFT_SHIFT

    @classmethod
    def from_scales(
        cls,
        scales: tuple[float, float, float],
        zero_points: tuple[int, int, int],
        bits: int = ADD_LEFT_SHIFT,
    ) -> AddFactors:
        """Return the factors for the real scales of first operand, second operand and output.

        Raises:
            UnsupportedError: the output's step is absurdly small.
        """
        first, second, output = scales
        twice_largest = 2.0 * max(first, second)
        ratios = (
            first / twice_largest,
            second / twice_largest,
            twice_largest / ((1 << bits) * output),
        )
        refusal = f"an add whose output step {output:g} is 2**{bits} times finer than its inputs'"
        return cls._of_ratios(ratios, zero_points, bits, refusal)

    @classmethod
    def _of_ratios(
        cls,
        ratios: tuple[float, float, float],
        zero_points: tuple[int, int, int],
        bits: int,
        refusal: str,
    ) -> Self:
        (a, i), (b, j), (c, k) = (fixed_point(ratio) for ratio in ratios)
        if k > 0:
            raise UnsupportedError(refusal)
        return cls((a, b, c), (i, j, k), zero_points, bits)


@dataclass(frozen=True)
class MultiplyFactors:
    """TFLite's product: the centred operands multiplied, scaled to the output.

    Attributes:
        multiplier, shift: Q31 multiplier and exponent of s_a * s_b / s_out.
        zero_points: those of first operand, second operand and output.
    """

    multiplier: int
    shift: int
    zero_points: tuple[int, int, int]

    @classmethod
    def from_scales(
        cls,
        scales: tuple[float, float, float],
        zero_points: tuple[int, int, int],
        most: int = MULTIPLY_LEFT_SHIFT,
    ) -> MultiplyFactors:
        """Return the factors for the real scales of first operand, second operand and output.

        Args:
            scales, zero_points: those of first operand, second operand and output.
            most: bits by which a product may be shifted left.

        Raises:
            UnsupportedError: the product would exceed int32 before it is rounded.
        """
        multiplier, shift = fixed_point(scales[0] * scales[1] / scales[2])
        if shift > most:
            raise UnsupportedError(
                f"a product whose output step {scales[2]:g} is 2**{most} times finer than that of "
                "the operands"
            )
        return cls(multiplier, shift, zero_points)


@dataclass(frozen=True)
class SquareFactors(AddFactors):
    """TFLite's squared difference: operands in a common step, subtracted, squared, scaled."""

    bits: int = SQUARE_LEFT_SHIFT

    @classmethod
    def from_scales(
        cls,
        scales: tuple[float, float, float],
        zero_points: tuple[int, int, int],
        bits: int = SQUARE_LEFT_SHIFT,
    ) -> SquareFactors:
        """See `AddFactors.from_scales`."""
        first, second, output = scales
        twice_largest = 2.0 * max(first, second)
        fine = (1 << 2 * bits) * output
        ratios = (
            first / twice_largest,
            second / twice_largest,
            twice_largest * twice_largest / fine,
        )
        refusal = (
            f"a squared difference whose output step is {output:g}, with operands' steps of "
            f"{first:g} and {second:g}"
        )
        return cls._of_ratios(ratios, zero_points, bits, refusal)
