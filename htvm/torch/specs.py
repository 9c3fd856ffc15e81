"""How tensors are quantized in torchao's terms: a specification for each kind of tensor."""

from __future__ import annotations

from typing import Any

import torch
from torchao.quantization.pt2e import FakeQuantize
from torchao.quantization.pt2e.observer import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    PerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import (
    FixedQParamsQuantizationSpec,
    QuantizationSpec,
)

from htvm.arithmetic import Arithmetic
from htvm.torch.observers import (
    ActivationObserver,
    ConverterObserver,
    NoisyFakeQuantize,
    WeightObserver,
)

_AVERAGING = 0.01
"""Share of the newest batch in the ranges of activations, in training: as torch's own observers."""


class Specs:
    """The specifications of one arithmetic: observers, or fake quantizers for training."""

    def __init__(self, arithmetic: Arithmetic, training: bool, noise: float = 0.0) -> None:
        """Make them; ``noise``: of an array's converters in training, in their steps."""
        self.arithmetic = arithmetic
        self._training = training
        self._noise = noise
        self.activation = self._activation(torch.int8, arithmetic.activation)
        self.rectified = (
            self._activation(torch.uint8, (0, 255)) if arithmetic.unsigned else self.activation
        )
        self.weight = self._weight(arithmetic.per_channel)

    @property
    def ternary(self) -> Any:
        """Of an array's weights, which are scaled before: -1, 0 and 1 themselves."""
        return FixedQParamsQuantizationSpec(torch.int8, 1.0, 0, -1, 1, torch.per_tensor_symmetric)

    @property
    def factor(self) -> Any:
        """Of the factors behind an array's converters."""
        observer = WeightObserver.with_args()
        return QuantizationSpec(
            torch.int8, self._made(observer), -127, 127, torch.per_tensor_symmetric
        )

    @property
    def converter(self) -> Any:
        """Of what an array's converters read."""
        assert self.arithmetic.array is not None
        low, high = self.arithmetic.array.adc_range
        averaging = _AVERAGING if self._training else None
        observer = ConverterObserver.with_args(averaging=averaging)
        made = observer
        if self._training:
            made = NoisyFakeQuantize.with_args(observer=observer, deviation=self._noise)
        return QuantizationSpec(torch.int8, made, low, high, torch.per_tensor_symmetric)

    def _activation(self, dtype: Any, numbers: tuple[int, int]) -> Any:
        if self.arithmetic.scales == "free":
            kind = MovingAverageMinMaxObserver if self._training else MinMaxObserver
            observer = kind.with_args(eps=2.0**-24)
        else:
            averaging = _AVERAGING if self._training else None
            observer = ActivationObserver.with_args(averaging=averaging)
        return QuantizationSpec(
            dtype=dtype,
            observer_or_fake_quant_ctr=self._made(observer),
            quant_min=numbers[0],
            quant_max=numbers[1],
            qscheme=torch.per_tensor_symmetric,
        )

    def _weight(self, per_channel: bool) -> Any:
        low, high = self.arithmetic.weight
        if self.arithmetic.scales == "power_of_two":
            observer = WeightObserver.with_args(ch_axis=0)
        elif per_channel:
            observer = PerChannelMinMaxObserver.with_args(ch_axis=0, eps=2.0**-24)
        else:
            observer = MinMaxObserver.with_args(eps=2.0**-24)
        return QuantizationSpec(
            dtype=torch.int8,
            observer_or_fake_quant_ctr=self._made(observer),
            quant_min=low,
            quant_max=high,
            qscheme=torch.per_channel_symmetric if per_channel else torch.per_tensor_symmetric,
            ch_axis=0 if per_channel else None,
        )

    def _made(self, observer: Any) -> Any:
        """Return what makes the observer, or a fake quantizer with it."""
        return FakeQuantize.with_args(observer=observer) if self._training else observer
