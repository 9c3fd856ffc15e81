"""What a tensor is while an integer network is read.

Layers and their requantization are several nodes in the file and one operator in the integer form.
So products, sums of two tensors and half-finished chains of scaling stay open until it is known
what follows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.graph import Node
from htvm.frontend.operators import Activation

if TYPE_CHECKING:
    from patterns.op import Op, TensorType
    from patterns.ops.convolution import Window

__all__ = [
    "Converted",
    "Live",
    "Products",
    "Scaled",
    "Sum",
    "Value",
    "Writer",
    "limits_of",
]


@dataclass(frozen=True, eq=False)
class Live:
    """A tensor that has been written.

    Attributes:
        activation: the tensor.
        bound: largest magnitude it can have.
    """

    activation: Activation
    bound: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch included."""
        return self.activation.shape


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of products of an 8-bit tensor with known weights, not requantized yet.

    Attributes:
        node: the convolution or product, for messages.
        source: NCHW for a convolution, (rows, C) otherwise.
        weight: int8 ``[K, C / groups, fy, fx]``, or ``[K, C]``.
        bias: int64 ``[K]``.
        window: of a convolution, ``None`` for a product of matrices.
        shape: of the result in the file; the integer form's may have fewer or more axes.
    """

    node: Node
    source: Live
    weight: Array
    bias: Array
    window: Window | None
    shape: tuple[int, ...]

    @property
    def channel_axis(self) -> int:
        """Axis of ``shape`` that output channels follow."""
        return len(self.shape) - 1 if self.window is None else 1

    @property
    def written_shape(self) -> tuple[int, ...]:
        """The shape in the integer form, where maps have two axes and rows one."""
        channels = self.weight.shape[0]
        if self.window is None:
            return self.source.shape[0], channels
        maps = (1, *self.shape[2:])[-2:]
        return self.source.shape[0], channels, *maps


@dataclass(frozen=True, eq=False)
class Converted:
    """``clip(products >> shift)`` to the range of an analog core's converter, not scaled yet."""

    products: Products
    shift: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch included."""
        return self.products.shape


@dataclass(frozen=True, eq=False)
class Sum:
    """The sum of two 8-bit tensors of one shape, not requantized yet."""

    node: Node
    operands: tuple[Live, Live]

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch included."""
        return self.operands[0].shape


@dataclass(frozen=True, eq=False)
class Scaled:
    """``(base * mul + add) / divisor``, floored or not yet; mul and add broadcast."""

    node: Node
    base: Live | Products | Converted | Sum
    mul: Array
    add: Array
    divisor: int = 1
    floored: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch included."""
        return self.base.shape


Value: TypeAlias = Live | Products | Converted | Sum | Scaled


def limits_of(dtype: str) -> tuple[int, int]:
    """Smallest and largest integer of a type."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


class Writer(Protocol):
    """Adds operators to the network that is read: the graph's reader, seen by what it calls."""

    def live_value(self, value: Value) -> Live:
        """Return the tensor, written if it was still open."""

    def apply(
        self,
        node: Node,
        op: Op,
        *inputs: Live,
        result: TensorType | None = None,
        bound: int | None = None,
        stem: str = "",
    ) -> Live:
        """Return the result of an operator applied to tensors."""

    def reshape(self, node: Node, source: Live, shape: tuple[int, ...]) -> Live:
        """Return the same elements in another shape."""
