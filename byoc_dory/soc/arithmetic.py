"""The arithmetic of an accelerator: what form layers must have so that it computes them exactly.

Retargeting writes layers in that form; whoever judges a layer before it is retargeted asks for a
form with numbers that stand for any.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from byoc_dory.layers import Layer, Requant

__all__ = ["Arithmetic", "MulShiftArithmetic", "Scheme", "ShiftArithmetic", "TernaryArithmetic"]

Scheme: TypeAlias = Literal["shift", "ternary", "mul_shift"]
"""Name of an arithmetic, as users and reports know it."""


@dataclass(frozen=True)
class Arithmetic(ABC):
    """How an accelerator computes; there is a class for each way."""

    @property
    @abstractmethod
    def name(self) -> Scheme:
        """Its name in reports and policies."""

    def form_of(self, layer: Layer) -> Layer:
        """Return a layer as retargeting would write it, with numbers that stand for any.

        Shapes are the layer's own; types, weights, requantization and clip satisfy the arithmetic,
        so that only rules about shapes can object.  Layers for which no such form exists (an add
        has no ternary one) get that of one right shift.  Layers of matrices are not retargeted:
        their form is the one they have.
        """
        from byoc_dory.layers import INT8, Weighted

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
        """The requantization of a layer without weights."""

    def _of_weighted(self, layer: Any) -> dict[str, Any]:
        """Fields of a layer with weights that are not its own."""
        import numpy as np

        return {"bias": np.zeros(layer.K, np.int32), "requant": self._requant()}


@dataclass(frozen=True)
class ShiftArithmetic(Arithmetic):
    """int8 weights and one right shift (`Shift`)."""

    @property
    def name(self) -> Scheme:
        """``shift``."""
        return "shift"

    def _requant(self) -> Requant:
        from byoc_dory.layers import Shift

        return Shift(0)


@dataclass(frozen=True)
class MulShiftArithmetic(Arithmetic):
    """int8 weights, and a multiplier before the right shift (`MulShift`, and so `Shift`).

    Attributes:
        per_channel: whether multipliers may differ from output channel to channel.
        multiplier_bits: of the multipliers that retargeting writes, unsigned; with 8, most products
            with a sum stay within 32 bits.
    """

    per_channel: bool = False
    multiplier_bits: int = 8

    @property
    def name(self) -> Scheme:
        """``mul_shift``."""
        return "mul_shift"

    def _requant(self) -> Requant:
        from byoc_dory.layers import MulShift

        return MulShift((1,), (0,))


@dataclass(frozen=True)
class TernaryArithmetic(Arithmetic):
    """Weights -1, 0, 1 in an array with converters behind its columns (`AnalogRequant`).

    Attributes:
        rows: of the array; a pass takes as many whole input channels as they hold.
        activation_bits: of the signed inputs.
        adc_bits: of the converters, signed.
        max_gain: largest right shift before the converter.
        max_shift: largest right shift of the requantization.
    """

    rows: int
    activation_bits: int
    adc_bits: int
    max_gain: int
    max_shift: int

    @property
    def name(self) -> Scheme:
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
        from byoc_dory.layers import Shift

        return Shift(0)

    def _of_weighted(self, layer: Any) -> dict[str, Any]:
        import numpy as np

        from byoc_dory.layers import AnalogRequant

        return {
            "weight": np.zeros(layer.weight.shape, np.int8),
            "bias": None,
            "requant": AnalogRequant(1, (1,), (0,), 0, self.rows),
            "input_range": self.activation_range,
        }


def _signed(bits: int) -> tuple[int, int]:
    half = 1 << (bits - 1)
    return -half, half - 1
