"""Observers whose scales are powers of two, and the grid that biases lie on.

With power-of-two scales and no offsets, every product and partial sum of a layer is a multiple of
one power of two, and float32 holds it exactly while it is below 2**24 of these.  A layer's result
``(sum + bias) / step`` is then rounded as in integers, but for ties: torch rounds these to the even
neighbour, and a shift that floors does not.  So a bias lies halfway between two multiples of the
product of scales: then no result is ever a tie, and both round alike.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any

import torch
from torchao.quantization.pt2e import FakeQuantize, FakeQuantizeBase
from torchao.quantization.pt2e.observer import ObserverBase

from byoc_dory.errors import InputError

_LEAST = 2.0**-40  # of what is all zeros
_FINER = 5  # powers of two below that of the largest weight, which are tried


def power_of_two_above(scale: Any) -> Any:
    """Return the least powers of two that are not below the scales."""
    return torch.exp2(torch.ceil(torch.log2(scale.clamp(min=_LEAST))))


class ActivationObserver(ObserverBase):  # type: ignore[misc]
    """Sees the range of a tensor, and gives the power of two that covers it, without an offset.

    Attributes:
        products: for each layer that computes the tensor, the observers of its input and weights:
            a result has at least twice the step of the layer's products, because the chip's only
            scaling is a right shift.
    """

    def __init__(
        self,
        dtype: Any,
        quant_min: int,
        quant_max: int,
        qscheme: Any = torch.per_tensor_symmetric,
        averaging: float | None = None,
        is_dynamic: bool = False,
        **_: Any,
    ) -> None:
        """Make an observer.

        Args:
            dtype: of the integers.
            quant_min, quant_max: their inclusive range.
            qscheme: symmetric, per tensor.
            averaging: share of the newest batch in the ranges; None for the extremes of all.
            is_dynamic: as torchao gives it: False.
        """
        super().__init__(dtype, is_dynamic)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.averaging = averaging
        self.eps = _LEAST  # torchao writes it beside the scale
        self.products: list[tuple[ActivationObserver, WeightObserver]] = []
        self.finest = _LEAST
        self.register_buffer("least", torch.tensor(float("inf")))
        self.register_buffer("most", torch.tensor(float("-inf")))

    def forward(self, x: Any) -> Any:
        """Widen the range by that of a batch."""
        least, most = torch.aminmax(x.detach())
        if self.averaging is not None and torch.isfinite(self.least):
            least = self.least + self.averaging * (least - self.least)
            most = self.most + self.averaging * (most - self.most)
        elif self.averaging is None:
            least, most = torch.minimum(least, self.least), torch.maximum(most, self.most)
        self.least.copy_(least)
        self.most.copy_(most)
        return x

    @property
    def has_seen(self) -> bool:
        """Whether data went through it."""
        return bool(torch.isfinite(self.most))

    @property
    def own_scale(self) -> Any:
        """The power of two that covers what was seen.

        Raises:
            InputError: nothing was.
        """
        if not self.has_seen:
            raise InputError(
                "no data went through the module",
                where="htvm.torch.convert",
                hint="call the prepared module with inputs, as many and as varied as in use",
            )
        scale = self.most.clamp(min=0) / self.quant_max
        if self.quant_min < 0:
            scale = torch.maximum(scale, self.least.clamp(max=0) / self.quant_min)
        return power_of_two_above(scale).clamp(min=self.finest).reshape(1)

    def calculate_qparams(self) -> Any:
        """Return scale and zero point."""
        scale = self.own_scale
        for read, weight in self.products:
            # The coarsest channel's: a shift to the right remains for all of them.  In the first
            # pass, a layer further on has not seen its operands.
            if read.has_seen:
                scale = torch.maximum(scale, 2 * read.own_scale * weight.scale.max())
        return scale, torch.zeros_like(scale, dtype=torch.int32)


class ConverterObserver(ActivationObserver):
    """Gives the step of an array's converters: a power of two for three deviations of their sums.

    What lies beyond is cut off; a range for all sums would leave most of them a few steps.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Make one; see `ActivationObserver`."""
        super().__init__(*arguments, **options)
        self.register_buffer("square", torch.zeros(()))
        self.register_buffer("batches", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        """Average the squares of the sums."""
        super().forward(x)
        self.batches += 1
        share = 1 / self.batches if self.averaging is None else self.averaging
        share = 1.0 if self.batches == 1 else share
        self.square += share * ((x.detach() ** 2).mean() - self.square)
        return x

    @property
    def own_scale(self) -> Any:
        """The step, at least that of the products: the gain is 1 then."""
        spread = 3 * torch.sqrt(self.square) / self.quant_max
        scale = torch.exp2(torch.round(torch.log2(spread.clamp(min=_LEAST)))).reshape(1)
        for read, weight in self.products:
            if read.has_seen:
                scale = torch.maximum(scale, read.own_scale * weight.scale.max())
        return scale

    def calculate_qparams(self) -> Any:
        """Return scale and zero point."""
        scale = self.own_scale
        return scale, torch.zeros_like(scale, dtype=torch.int32)


class NoisyFakeQuantize(FakeQuantize):  # type: ignore[misc]
    """Adds noise before the converters while a module is trained.

    Attributes:
        deviation: standard deviation in steps of the converters.
    """

    def __init__(self, deviation: float, **options: Any) -> None:
        """Make one; the options are those of torchao's."""
        super().__init__(**options)
        self.deviation = deviation

    def forward(self, x: Any) -> Any:
        """Quantize, in training with noise."""
        if self.training and self.deviation and self.activation_post_process.has_seen:
            x = x + self.deviation * self.scale * torch.randn_like(x)
        return super().forward(x)


class WeightObserver(ObserverBase):  # type: ignore[misc]
    """Gives the powers of two with the least squared error of the weights that it saw last."""

    def __init__(
        self,
        dtype: Any,
        quant_min: int,
        quant_max: int,
        qscheme: Any = torch.per_tensor_symmetric,
        ch_axis: int = 0,
        is_dynamic: bool = False,
        **_: Any,
    ) -> None:
        """Make an observer; see `ActivationObserver`, and ``ch_axis``: the axis of channels."""
        super().__init__(dtype, is_dynamic)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.ch_axis = ch_axis
        self.eps = _LEAST
        self.register_buffer("scale", torch.zeros(1))  # nothing was seen

    def forward(self, x: Any) -> Any:
        """Choose the scales for these weights, ``[K, ...]``."""
        per_channel = self.qscheme == torch.per_channel_symmetric
        rows = x.detach().flatten(1) if per_channel else x.detach().reshape(1, -1)
        coarsest = power_of_two_above(rows.abs().amax(1) / self.quant_max)
        candidates = torch.stack([coarsest * 2.0**-finer for finer in range(_FINER)])
        scale = candidates[..., None]
        rounded = torch.round(rows / scale).clamp(self.quant_min, self.quant_max) * scale
        best = ((rounded - rows) ** 2).sum(-1).argmin(0, keepdim=True)
        chosen = candidates.gather(0, best)[0]
        self.scale = chosen.clamp(min=_LEAST)
        return x

    def calculate_qparams(self) -> Any:
        """Return scales and zero points, one or one for each channel."""
        return self.scale, torch.zeros_like(self.scale, dtype=torch.int32)


def observer_of(module: Any) -> Any:
    """Return the observer of a fake quantizer, or the observer itself."""
    return module.activation_post_process if isinstance(module, FakeQuantizeBase) else module


class Derived(ObserverBase):  # type: ignore[misc]
    """A constant that follows from the scales around it; straight through in training.

    It takes the place of the observer that torchao makes for the constant, which stays as it is
    until the module is converted.

    Attributes:
        around: observers, and parameters, that the value depends on.
    """

    def __init__(self, around: tuple[Any, ...], *, training: bool) -> None:
        """Make one.

        Args:
            around: see the class.
            training: whether the constant has its value while the prepared module runs.
        """
        super().__init__(torch.float32)
        self.around = around  # in a tuple, as a module would register them as its own parts
        self._training = training

    @property
    def is_known(self) -> bool:
        """Whether data went through all that it depends on."""
        observers = (each for each in self.around if isinstance(each, ActivationObserver))
        return all(each.has_seen for each in observers)

    @property
    def steps(self) -> list[float]:
        """The scales of the observers around."""
        observers = (each for each in self.around if isinstance(each, ActivationObserver))
        return [float(each.calculate_qparams()[0]) for each in observers]

    @abstractmethod
    def value(self, constant: Any) -> Any:
        """Return what the constant is replaced by."""

    def calculate_qparams(self) -> Any:
        """Return scale and zero point, for torchao: it is not quantized."""
        return torch.ones(1), torch.zeros(1, dtype=torch.int32)

    def forward(self, constant: Any) -> Any:
        """Return the value, with the gradient of the constant itself."""
        if not self._training or not self.is_known:
            return constant
        return constant + (self.value(constant) - constant).detach()

    def convert(self, model: Any, node: Any) -> None:
        """Write the value in place of the constant; torchao calls this instead of quantizing it."""
        source = node.args[0]
        *path, own = source.target.split(".")
        owner = getattr(model.get_submodule(".".join(path)), own)
        name = f"{source.name}_on_grid"
        model.register_buffer(name, self.value(owner.detach()))
        with model.graph.inserting_before(node):
            written = model.graph.get_attr(name)
        written.meta = copy(source.meta)
        node.replace_all_uses_with(written)
        model.graph.erase_node(node)


class GridBias(Derived):
    """A bias on the grid that the scales around it leave.

    It stays a float parameter: its value on the grid replaces the trained one when the module is
    converted.

    Attributes:
        limit: inclusive range of the biases in steps of the products, half a result included, that
            the chip adds; None for 32 bits, which none exceeds.
    """

    def __init__(
        self,
        read: Any,
        weight: Any,
        result: ActivationObserver,
        *,
        training: bool,
        limit: tuple[int, int] | None = None,
    ) -> None:
        """Make one.

        Args:
            read, weight, result: observers of the layer's input, weights and results.
            training: whether biases are on the grid while the prepared module runs.
            limit: see the class.
        """
        super().__init__((read, weight, result), training=training)
        self.limit = limit

    @property
    def is_known(self) -> bool:
        """Whether data went through the layer's input: a coarse grid is known then."""
        return bool(self.around[0].has_seen)

    def calculate_qparams(self) -> Any:
        """Return the step of the layer's products, one or one for each channel, and zero points."""
        read, weight, _ = self.around
        step = read.calculate_qparams()[0] * weight.calculate_qparams()[0]
        return step, torch.zeros_like(step, dtype=torch.int32)

    def value(self, constant: Any) -> Any:
        """Return the bias on its grid."""
        result = self.around[2]
        step, _ = self.calculate_qparams()
        if not result.has_seen:
            return (torch.floor(constant / step) + 0.5) * step
        half = result.calculate_qparams()[0] / step / 2
        whole = torch.floor(constant / step)
        if self.limit is not None:
            low, high = self.limit
            whole = torch.minimum(whole.clamp(min=low), high - half)
        # Results in the products' own step are exact, and halves would all be ties.
        value = torch.where(half >= 1, whole + 0.5, torch.round(constant / step))
        return value * step


class ConverterOffset(GridBias):
    """What is added to an array's sums, so that rounding to steps of the converters is a floor."""

    def value(self, constant: Any) -> Any:
        """Return the offset of each column, whatever the bias is."""
        step, _ = self.calculate_qparams()
        gain = self.around[2].calculate_qparams()[0] / step
        offset = torch.where(gain > 1, (1 - gain) / 2, torch.zeros_like(gain)) * step
        return offset.expand_as(constant).clone()
