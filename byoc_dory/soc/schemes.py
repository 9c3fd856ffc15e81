"""Number schemes: the form that layers must have for an accelerator to compute them exactly.

Retargeting writes layers in this form; to check a layer before it is retargeted, use a form with
placeholder numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from byoc_dory.errors import InputError
from byoc_dory.layers import INT8, AnalogRequant, Layer, MulShift, Pool, Requant, Shift, Weighted

SchemeName: TypeAlias = Literal["shift", "ternary", "mul_shift", "source"]
"""Name of a number scheme, for users and reports."""

_MOST_BITS = 31  # multipliers are written as int32


@dataclass(frozen=True)
class NumberScheme(ABC):
    """The arithmetic of an accelerator; each kind has its own class."""

    @property
    @abstractmethod
    def name(self) -> SchemeName:
        """Name of the scheme in reports and policies."""

    @property
    def keeps(self) -> bool:
        """Whether layers are executed in the source's numbers, without retargeting."""
        return False

    def takes_kept(self, layer: Layer) -> bool:
        """Whether a layer that retargeting leaves in the source's numbers is offered."""
        return self.keeps

    def form_of(self, layer: Layer) -> Layer:
        """Return a layer as retargeting would write it, with placeholder values for its numbers.

        Shapes are the layer's own; types, weights, requantization and clip satisfy the arithmetic,
        so that only rules about shapes can object.  Layers without such a form (there is no ternary
        add) get that of a single right shift.  Layers of matrices are not retargeted: their form
        does not change.
        """
        if layer.of_matrices:
            return layer
        common: dict[str, Any] = {
            "inputs": tuple(replace(tensor, dtype="int8") for tensor in layer.inputs),
            "output": replace(layer.output, dtype="int8"),
            "clip": (0, 127) if layer.relu else INT8,
        }
        if isinstance(layer, Weighted):
            return replace(layer, **common, **self._of_weighted(layer))
        return replace(layer, **common, requant=self._requant())

    @abstractmethod
    def _requant(self) -> Requant:
        """Return the requantization of a layer without weights."""

    def _of_weighted(self, layer: Any) -> dict[str, Any]:
        """Return the fields that change for a layer with weights."""

        weight = layer.weight
        if weight.dtype != np.int8:  # scaled to bytes, with a larger step
            weight = np.zeros(weight.shape, np.int8)
        return {
            "weight": weight,
            "bias": np.zeros(layer.K, np.int32),
            "requant": self._requant(),
        }


@dataclass(frozen=True)
class ShiftScheme(NumberScheme):
    """int8 weights and one right shift (`Shift`)."""

    @property
    def name(self) -> SchemeName:
        """``shift``."""
        return "shift"

    def _requant(self) -> Requant:
        return Shift(0)


@dataclass(frozen=True)
class MulShiftScheme(NumberScheme):
    """int8 weights, and a multiplier before the right shift (`MulShift`, which includes `Shift`).

    Weights are symmetric; zero points and rounding are part of the biases.

    Attributes:
        per_channel: whether there is one multiplier per output channel of a layer with weights;
            otherwise one per tensor.
        multiplier_bits: number of bits of the unsigned multipliers that retargeting writes, 1 to
            31; with 8, most products plus a sum stay within 32 bits.
        unsigned: whether layers with weights also read and write uint8.
        averages: whether averages of windows, which have the scale of their input, are offered.

    Raises:
        InputError: the number of bits is out of range.
    """

    per_channel: bool = False
    multiplier_bits: int = 8
    unsigned: bool = False
    averages: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.multiplier_bits <= _MOST_BITS:
            raise InputError(
                f"multipliers of {self.multiplier_bits} bits",
                where="option 'multiplier_bits'",
                hint=f"give 1 to {_MOST_BITS}",
            )

    @property
    def name(self) -> SchemeName:
        """``mul_shift``."""
        return "mul_shift"

    def takes_kept(self, layer: Layer) -> bool:
        """See `NumberScheme.takes_kept`: averages, on cores that compute them."""
        return self.averages and isinstance(layer, Pool) and layer.function == "average"

    def _requant(self) -> Requant:
        return MulShift((1,), (0,))


@dataclass(frozen=True)
class TernaryScheme(NumberScheme):
    """Weights -1, 0, 1 in an array with converters behind its columns (`AnalogRequant`).

    Attributes:
        rows: number of rows of the array; a pass takes as many whole input channels as they hold.
        activation_bits: number of bits of the signed inputs.
        adc_bits: number of bits of the converters, signed.
        max_gain: largest right shift before the converter.
        max_shift: largest right shift of the requantization.
    """

    rows: int
    activation_bits: int
    adc_bits: int
    max_gain: int
    max_shift: int

    @property
    def name(self) -> SchemeName:
        """``ternary``."""
        return "ternary"

    @property
    def activation_range(self) -> tuple[int, int]:
        """Inclusive range of the inputs."""
        return _signed(self.activation_bits)

    @property
    def adc_range(self) -> tuple[int, int]:
        """Inclusive range of the converters."""
        return _signed(self.adc_bits)

    def _requant(self) -> Requant:
        return Shift(0)

    def _of_weighted(self, layer: Any) -> dict[str, Any]:

        return {
            "weight": np.zeros(layer.weight.shape, np.int8),
            "bias": None,
            "requant": AnalogRequant(1, (1,), (0,), 0, self.rows),
            "input_range": self.activation_range,
        }


@dataclass(frozen=True)
class SourceScheme(NumberScheme):
    """The source's own numbers: the accelerator requantizes as the source says."""

    @property
    def name(self) -> SchemeName:
        """``source``."""
        return "source"

    @property
    def keeps(self) -> bool:
        """True."""
        return True

    def form_of(self, layer: Layer) -> Layer:
        """Return the layer as it is."""
        return layer

    def _requant(self) -> Requant:
        return Shift(0)


def all_keep(schemes: Iterable[NumberScheme]) -> bool:
    """Whether there are schemes and all of them are the source's own."""
    kinds = [scheme.keeps for scheme in schemes]
    return bool(kinds) and all(kinds)


def all_multiply(schemes: Iterable[NumberScheme]) -> bool:
    """Whether there are schemes and all of them multiply before they shift."""
    kinds = [isinstance(scheme, MulShiftScheme) for scheme in schemes]
    return bool(kinds) and all(kinds)


def _signed(bits: int) -> tuple[int, int]:
    half = 1 << (bits - 1)
    return -half, half - 1
