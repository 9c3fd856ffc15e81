"""`Filter`: a convolution of a graph, with the padding before it; `Rewritten`: what replaces it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from patterns.op import TensorType
from patterns.ops.convolution import Conv2d, conv2d_of
from patterns.ops.moves.pad import Pad
from patterns.reading.node import Node, node_of

if TYPE_CHECKING:
    from byoc_dory.layers import Array, Layer
    from patterns.reading.graph import Graph

Pads: TypeAlias = "tuple[int, int, int, int]"  # top, left, bottom, right


@dataclass(frozen=True, eq=False)
class Rewritten:
    """What replaces a layer.

    Attributes:
        parts: the operators, in execution order; the last one computes the layer's result.
        says: what is computed instead, for people: "10x4 at stride 2 computed as ...".
    """

    parts: tuple[Node, ...]
    says: str

    @property
    def layers(self) -> dict[str, Layer]:
        """The parts that are to be offered to accelerators, by name."""
        return {
            part.name: part.layer
            for part in self.parts
            if isinstance(part.op, Conv2d) and part.layer is not None
        }


@dataclass(frozen=True, eq=False)
class Filter:
    """A convolution, and the explicit padding before it, if there is one.

    Attributes:
        name: name of the layer.
        op: the convolution; its own padding is in ``pads``.
        source, kind: name and type of the tensor before the padding.
        pads: elements added at (top, left, bottom, right).
        value: the value of these elements.
        output: type of the result.
    """

    name: str
    op: Conv2d
    source: str
    kind: TensorType
    pads: Pads
    value: int
    output: TensorType

    @property
    def layout(self) -> str:
        """Layout of the maps."""
        return self.op.window.layout

    @property
    def kernel(self) -> tuple[int, int]:
        """Height and width of the kernel."""
        return int(self.op.weight.shape[2]), int(self.op.weight.shape[3])

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the input, without padding."""
        return _size(self.kind.shape, self.layout)

    @property
    def result(self) -> tuple[int, int]:
        """Height and width of the result."""
        return _size(self.output.shape, self.layout)

    @property
    def channels(self) -> int:
        """Number of input channels."""
        return self.kind.shape[self.op.window.channel_axis]

    def map_of(self, channels: int, y: int, x: int) -> TensorType:
        """Return the type of a map in the layout of this convolution, of its input's elements."""
        shape = (1, y, x, channels) if self.layout == "NHWC" else (1, channels, y, x)
        return TensorType(shape, self.kind.dtype)

    def padded(self, pads: Pads) -> tuple[tuple[Node, ...], str, TensorType]:
        """Return a padding of the input as a part, and name and type of its result.

        Without any padding there is no part.
        """
        if not any(pads):
            return (), self.source, self.kind
        top, left, bottom, right = pads
        y, x = self.size
        name = f"{self.name}_pad"
        kind = self.map_of(self.channels, y + top + bottom, x + left + right)
        op = Pad(value=self.value, padding=pads, layout=self.layout)
        return (node_of(name, op, [(self.source, self.kind)], kind),), name, kind

    def layer(
        self, source: str, kind: TensorType, weight: Array, pads: Pads, **window: Any
    ) -> Node:
        """Return a convolution with another weight and window as the part that ends the layer."""
        op = self.op
        changed = replace(op.window, padding=pads, **window)
        conv = conv2d_of(weight, op.bias, changed, op.requant, op.clip, op.dtype)
        return node_of(self.name, conv, [(source, kind)], self.output)

    def convolved(self, weight: Array, pads: Pads, **window: Any) -> tuple[Node, ...]:
        """Return a convolution with another weight, window and padding, and what it needs before.

        Padding with another value than zero stays an operator of its own.
        """
        if not self.value:
            return (self.layer(self.source, self.kind, weight, pads, **window),)
        before, source, kind = self.padded(pads)
        return (*before, self.layer(source, kind, weight, (0, 0, 0, 0), **window))


def filter_of(node: Node, graph: Graph, *, symmetric: bool = False) -> Filter | None:
    """Return a convolution with the padding before it; ``None`` for other operators.

    Args:
        node: the operator.
        graph: all operators.
        symmetric: whether the number zero will be 0, as after retargeting, so that paddings with it
            become part of the convolution.
    """
    op = node.op
    if not isinstance(op, Conv2d) or node.input_shapes[0][0] != 1:
        return None
    ((source, kind),) = node.read
    pads, value = op.window.padding, 0
    before = graph.made_by(source, Pad)
    if before is not None and not any(pads):
        assert isinstance(before.op, Pad)
        if before.op.layout == op.window.layout:
            source, pads = before.inputs[0], before.op.padding
            kind = TensorType(before.input_shapes[0], kind.dtype)
            value = 0 if symmetric else before.op.value
    plain = conv2d_of(
        op.weight, op.bias, replace(op.window, padding=(0, 0, 0, 0)), op.requant, op.clip, op.dtype
    )
    return Filter(node.name, plain, source, kind, pads, value, node.result)


def _size(shape: Sequence[int], layout: str) -> tuple[int, int]:
    y = layout.index("H")
    return shape[y], shape[y + 1]
