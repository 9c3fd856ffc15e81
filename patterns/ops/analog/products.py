"""Convolutions and fully connected layers on an in-memory array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax
from tvm.relax import op as R

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Dense as DenseLayer
from byoc_dory.layers import Tensor
from patterns.op import Operands, TensorType, operator
from patterns.ops.analog.passes import InPasses, check_alike, passes_of, read_passes
from patterns.ops.convolution import Window, image_layer, read_weight
from patterns.ops.dense import vector
from patterns.ops.requantize import read_clip
from patterns.primitive import shape_of
from patterns.relax_op import Match

if TYPE_CHECKING:
    from tvm.relax import Expr

    from byoc_dory.layers import Array, Convolution, Layout


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
        return "NHWC" if self.window.layout == "NHWC" else "NCHW"

    def operands(self, x: Array, pad: int = 0) -> Array:
        """See `WeightedOp.operands`."""
        return self.window.operands(x, self.weight, pad)

    @property
    def channel_axis(self) -> int:
        return self.window.channel_axis

    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self.window.result(shape, self.weight)

    def product(self, part: Expr, weight: Array) -> Expr:
        return self.window.call(part, weight)

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`, and `InPasses.matches_of`."""
        return cls.matches_of("relax.nn.conv2d")

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> AnalogConv2d:
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

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Convolution:
        return image_layer(
            self.window, name, inputs, output, self.weight, None, self.requant, self.clip
        )


@operator
@dataclass(frozen=True, eq=False)
class AnalogDense(InPasses):
    """A fully connected layer of int8 (1, C) in passes over an in-memory array."""

    kind = "dense"

    @property
    def channel_axis(self) -> int:
        return 1

    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-1], len(self.weight))

    def product(self, part: Expr, weight: Array) -> Expr:
        constant = np.asarray(weight[:, :, 0, 0].T, order="C")
        return R.matmul(part, relax.const(constant, "int8"), out_dtype="int32")

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`, and `InPasses.matches_of`."""
        return cls.matches_of("relax.matmul")

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> AnalogDense:
        matrices = [part.value.numpy().T for part in passes_of(slots, "weight")]
        weights = [part.reshape(*part.shape, 1, 1) for part in matrices]
        weight, requant = read_passes(slots, weights, 1)
        return cls(weight, requant, read_clip(slots))

    def layer(self, name: str, inputs: Operands, output: TensorType) -> DenseLayer:
        ((source, kind),) = inputs
        return DenseLayer(
            name=name,
            inputs=(Tensor(source, vector(kind)[1:], kind.dtype, "C"),),
            output=Tensor(name, (len(self.weight),), output.dtype, "C"),
            weight=self.filters,
            bias=None,
            requant=self.requant,
            clip=self.clip,
        )
