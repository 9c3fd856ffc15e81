"""What numbers a target computes with, read from the description of its accelerators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from byoc_dory.errors import InputError, TargetError
from byoc_dory.layers.rowwise import ItaSoftmax
from byoc_dory.soc.base import Target
from byoc_dory.soc.registry import resolve
from byoc_dory.soc.schemes import (
    MulShiftScheme,
    NumberScheme,
    ShiftScheme,
    SourceScheme,
    TernaryScheme,
)

INT8 = (-128, 127)

_WEIGHT_BITS = (2, 8)


@dataclass(frozen=True)
class Arithmetic:
    """The numbers of a network on a target.

    Attributes:
        target: name of the target.
        scales: ``"power_of_two"``: every scale is a power of two, that of a sum and its operands is
            the same, no number has an offset, and biases lie on grids where no result is a tie, so
            that torch's reals equal the target's integers; ``"free"``: scales are any, as a host
            multiplies by them.
        activation: inclusive range of the tensors between layers.
        weight: inclusive range of weights, except of an array.
        unsigned: whether tensors that a rectifier makes, and layers with weights alone read, are
            uint8.
        per_channel: whether each output channel has a scale of its own.
        clips: whether layers clip to any bound, as relu6 does; otherwise to 0 and their range.
        array: the in-memory array that computes the layers, if there is one.
        softmax: the softmax of attention that an accelerator computes, if one does; GELU and layer
            norm are integers then, too.
    """

    target: str
    scales: Literal["power_of_two", "free"]
    activation: tuple[int, int] = INT8
    weight: tuple[int, int] = (-127, 127)
    unsigned: bool = False
    per_channel: bool = False
    clips: bool = False
    array: TernaryScheme | None = None
    softmax: ItaSoftmax | None = None


def arithmetic_of(target: str | Target, weight_bits: int = 8) -> Arithmetic:
    """Return the numbers that networks for a target should have.

    Args:
        target: a target's name, or what `htvm.soc` returns.
        weight_bits: bits of the weights, 2 to 8; a ternary core has its own.

    Raises:
        TargetError: the target is unknown, or its accelerators have no number scheme.
        InputError: weights cannot have so many bits.
    """
    resolved = resolve(target)
    least, most = _WEIGHT_BITS
    if isinstance(weight_bits, bool) or not isinstance(weight_bits, int):
        raise InputError(
            f"{weight_bits!r} is no number of bits", where="option 'weight_bits'", hint="give 2..8"
        )
    if not least <= weight_bits <= most:
        raise InputError(
            f"weights of {weight_bits} bits",
            where="option 'weight_bits'",
            hint=f"give {least} to {most}",
        )
    half = 1 << (weight_bits - 1)
    # Eight bits are symmetric, as everywhere; fewer need each value they have.
    weight = (1 - half, half - 1) if weight_bits == most else (-half, half - 1)
    accelerators = resolved.accelerators
    schemes = [accelerator.scheme for accelerator in accelerators]
    name = resolved.name
    if not schemes:
        return Arithmetic(name, "free", weight=weight, per_channel=True, clips=True)
    scheme = _widest(schemes)
    if isinstance(scheme, TernaryScheme):
        if weight_bits != most:
            raise InputError(
                f"weights of {weight_bits} bits, and {name} has ternary ones",
                where="option 'weight_bits'",
                hint="leave it out",
            )
        numbers = scheme.activation_range
        return Arithmetic(name, "power_of_two", numbers, weight, array=scheme)
    if isinstance(scheme, ShiftScheme):
        return Arithmetic(name, "power_of_two", weight=weight)
    if isinstance(scheme, MulShiftScheme):
        multiplying = [entry for entry in schemes if isinstance(entry, MulShiftScheme)]
        channels = all(entry.per_channel for entry in multiplying)
        unsigned = all(entry.unsigned for entry in multiplying)
        softmax = next(filter(None, (accelerator.softmax for accelerator in accelerators)), None)
        return Arithmetic(
            name,
            "power_of_two",
            weight=weight,
            unsigned=unsigned,
            per_channel=channels,
            softmax=softmax,
        )
    if isinstance(scheme, SourceScheme):
        # It rounds in integers; powers of two without ties are the same in any rounding.
        return Arithmetic(name, "power_of_two", weight=weight, per_channel=True, clips=True)
    raise TargetError(
        f"{name} has accelerators of the number scheme {scheme.name!r}",
        where="htvm.torch",
        hint="use a quantizer of your own, or a target without accelerators",
    )


def check_numbers(quantized_for: str, target: str | Target) -> None:
    """Check that a target computes with the numbers that a network was quantized in.

    Hosts compute with any.

    Args:
        quantized_for: name of the target whose quantizer it was; empty if unknown.
        target: the target of a build.

    Raises:
        InputError: its accelerators compute with others.
    """
    resolved = resolve(target)
    if not quantized_for or not resolved.accelerators:
        return
    wanted, given = arithmetic_of(resolved), arithmetic_of(quantized_for)
    if replace(given, target=wanted.target) == wanted:
        return
    raise InputError(
        f"the network was quantized for {quantized_for}, and {resolved.name} computes with other "
        "numbers",
        where="option 'target'",
        hint=f"quantize it with htvm.torch.Quantizer({resolved.name!r}), or build for "
        f"{quantized_for}",
    )


def _widest(schemes: Sequence[NumberScheme]) -> NumberScheme:
    """Return the first scheme that is not ternary, if there is one."""
    wide = (entry for entry in schemes if not isinstance(entry, TernaryScheme))
    return next(wide, schemes[0])
