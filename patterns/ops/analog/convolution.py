"""Convolutions on an in-memory array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from byoc_dory.errors import IntegerFormError
from patterns.match import Match
from patterns.op import TensorType, operator
from patterns.ops.analog.passes import InPasses, check_alike, passes_of, read_passes
from patterns.ops.convolution import Window, image_layer, read_weight
from patterns.ops.requantize import read_clip
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import Expr

    from byoc_dory.layers import Array, Convolution, Layout

__all__ = ["AnalogConv2d"]


@operator
@dataclass(frozen=True, eq=False)
class AnalogConv2d(InPasses):
    """A convolution of int8 maps in passes over an in-memory array.

    Attributes:
        window: strides, padding and layout, with one group.
    """

    kind = "conv2d"

    window: Window = field(default_factory=Window)

    @property
    def prescribed(self) -> Layout:
        """See `Op.prescribed`."""
        return "NHWC" if self.window.layout == "NHWC" else "NCHW"

    def operands(self, x: Array, pad: int = 0) -> Array:
        """See `WeightedOp.operands`."""
        return self.window.operands(x, self.weight, pad)

    @property
    def channel_axis(self) -> int:
        """See `InPasses.channel_axis`."""
        return self.window.channel_axis

    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """See `InPasses.result_shape`."""
        return self.window.result(shape, self.weight)

    def product(self, part: Expr, weight: Array) -> Expr:
        """See `InPasses.product`."""
        return self.window.call(part, weight)

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`, and `InPasses.matches_of`."""
        return cls.matches_of("relax.nn.conv2d")

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> AnalogConv2d:
        """See `ComposedOp.read`."""
        products = passes_of(slots, "product")
        window = Window.read(products[0])
        if window.groups != 1:
            raise IntegerFormError(f"{window.groups} groups", hint="passes have one group")
        check_alike([(str(call.attrs), shape_of(call)) for call in products], "sizes")
        weights = [
            read_weight(call, constant)
            for call, constant in zip(products, passes_of(slots, "weight"), strict=True)
        ]
        weight, requant = read_passes(slots, weights, window.channel_axis)
        return cls(weight, requant, read_clip(slots), window)

    def layer(
        self, name: str, inputs: Sequence[tuple[str, TensorType]], output: TensorType
    ) -> Convolution:
        """See `Op.layer`."""
        return image_layer(
            self.window, name, inputs, output, self.weight, None, self.requant, self.clip
        )
