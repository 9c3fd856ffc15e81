"""The values that a tensor can stand for while an integer network is read.

Layers and their requantization are several nodes in the file and one operator in the integer form.
So products, sums of two tensors and unfinished chains of scaling stay pending until it is known
what follows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.graph import OnnxNode
from htvm.frontend.operators import Activation

if TYPE_CHECKING:
    from patterns.op import Op, TensorType
    from patterns.ops.convolution import Window

__all__ = [
    "Converted",
    "Live",
    "Products",
    "Scaled",
    "PendingSum",
    "Value",
    "NetworkWriter",
    "limits_of",
]


@dataclass(frozen=True, eq=False)
class Live:
    """A tensor that has been written.

    Attributes:
        activation: the tensor.
        bound: largest magnitude of its elements.
    """

    activation: Activation
    bound: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, including the batch."""
        return self.activation.shape


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of products of an 8-bit tensor with known weights, not yet requantized.

    Attributes:
        node: the convolution or product, for messages.
        source: input, NCHW for a convolution, (rows, C) otherwise.
        weight: int8 ``[K, C / groups, fy, fx]``, or ``[K, C]``.
        bias: int64 ``[K]``.
        window: window of a convolution, ``None`` for a product of matrices.
        shape: shape of the result in the file; the integer form's may have fewer or more axes.
    """

    node: OnnxNode
    source: Live
    weight: Array
    bias: Array
    window: Window | None
    shape: tuple[int, ...]

    @property
    def channel_axis(self) -> int:
        """Axis of ``shape`` with the output channels."""
        return len(self.shape) - 1 if self.window is None else 1

    @property
    def written_shape(self) -> tuple[int, ...]:
        """The shape in the integer form, in which maps have two axes and rows one."""
        channels = self.weight.shape[0]
        if self.window is None:
            return self.source.shape[0], channels
        maps = (1, *self.shape[2:])[-2:]
        return self.source.shape[0], channels, *maps


@dataclass(frozen=True, eq=False)
class Converted:
    """``clip(products >> shift)`` to the range of an analog core's converter, not yet scaled."""

    products: Products
    shift: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, including the batch."""
        return self.products.shape


@dataclass(frozen=True, eq=False)
class PendingSum:
    """The sum of two 8-bit tensors of the same shape, not yet requantized."""

    node: OnnxNode
    operands: tuple[Live, Live]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, including the batch."""
        return self.operands[0].shape


@dataclass(frozen=True, eq=False)
class Scaled:
    """``(base * mul + add) / divisor``, possibly floored; mul and add broadcast."""

    node: OnnxNode
    base: Live | Products | Converted | PendingSum
    mul: Array
    add: Array
    divisor: int = 1
    floored: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, including the batch."""
        return self.base.shape


Value: TypeAlias = Live | Products | Converted | PendingSum | Scaled


def limits_of(dtype: str) -> tuple[int, int]:
    """Return the smallest and largest integer of a type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


class NetworkWriter(Protocol):
    """The part of the graph's reader that adds operators to the network."""

    def live_value(self, value: Value) -> Live:
        """Return the tensor, writing it if it is still pending."""

    def apply(
        self,
        node: OnnxNode,
        op: Op,
        *inputs: Live,
        result: TensorType | None = None,
        bound: int | None = None,
        stem: str = "",
    ) -> Live:
        """Return the result of an operator applied to tensors."""

    def reshape(self, node: OnnxNode, source: Live, shape: tuple[int, ...]) -> Live:
        """Return the same elements in another shape."""
