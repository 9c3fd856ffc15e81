"""Reading a model in the integer form as the network that retargeting works on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import (
    Add,
    AnalogRequant,
    Array,
    Convolution,
    Layer,
    OnnxRequant,
    TfliteRequant,
    Weighted,
)
from htvm.quantization.averages import averaged
from htvm.quantization.graph import Net
from htvm.quantization.islands import (
    KEPT,
    SOFTMAXES,
    Island,
    find_islands,
    is_foreign,
    zero_point_of,
)
from htvm.quantization.operators import (
    INT8,
    AddOperator,
    KeptOperator,
    Operator,
    SoftmaxOperator,
    from_source,
    to_source,
)
from htvm.quantization.passing import (
    AverageOperator,
    ConvertOperator,
    GatherOperator,
    MaximumOperator,
    ReshapeOperator,
)
from htvm.quantization.products import ConvolutionOperator, DenseOperator, DepthwiseOperator
from htvm.quantization.scaling import zero_point_of as zero_point_of_requant
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.base import Filling, Move
from patterns.ops.moves.pad import Pad
from patterns.ops.moves.reshape import Reshape
from patterns.ops.onnxruntime.average import OnnxAverage
from patterns.ops.onnxruntime.softmax import OnnxSoftmax
from patterns.ops.tflite.average_pool import AveragePool
from patterns.ops.tflite.softmax import TfliteSoftmax

if TYPE_CHECKING:
    from htvm.model import Model
    from patterns.reading.read import Node

__all__ = [
    "channel_last",
    "read_net",
]

_Place: TypeAlias = tuple[str, tuple[str, ...], tuple[int, ...]]
"""Name, inputs and shape of an operator."""


def read_net(model: Model) -> Net:
    """Return the network of a model.

    Args:
        model: model in the integer form.

    Raises:
        UnsupportedError: retargeting does not support an operator, or a padding has a value other
            than the number zero.
    """
    nodes, outputs = model.graph.in_order, model.graph.results
    params = [name for name, _ in model.graph.inputs]
    for info in model.inputs:
        if info.dtype != "int8":
            raise UnsupportedError(
                f"an input of type {info.dtype}",
                where=f"input '{info.name}'",
                hint="only int8 models can be retargeted",
            )
    reader = _Reader(_is_channel_first(nodes), nodes, outputs)
    for name, info in zip(params, model.inputs, strict=True):
        reader.zero[name] = info.zero_point or 0
    for node in nodes:
        reader.read(node)
    shapes = {
        name: channel_last(info.shape, reader.channel_first)
        for name, info in zip(params, model.inputs, strict=True)
    }
    zeros = {name: reader.zero[name] for name in params}
    net = Net(shapes, zeros, tuple(reader.operators), outputs, reader.channel_first)
    _check_ends(net)
    return net


def channel_last(shape: tuple[int, ...], channel_first: bool) -> tuple[int, ...]:
    """Return a tensor's shape without batch, channels last."""
    if shape[0] != 1:
        raise UnsupportedError(f"a batch of {shape[0]}", hint="only batch size 1 is supported")
    rest = tuple(shape[1:])
    if channel_first and len(rest) == 3:
        return rest[1], rest[2], rest[0]
    return rest


def _is_channel_first(nodes: tuple[Node, ...]) -> bool:
    layouts = {str(node.op.layout) for node in nodes if hasattr(node.op, "layout")}
    for node in nodes:
        if isinstance(node.layer, Convolution):
            layouts.add(str(node.layer.inputs[0].layout))
    if len(layouts) > 1:
        raise UnsupportedError(
            f"layouts {', '.join(sorted(layouts))} in one network",
            hint="retargeting needs one layout for all convolutions and pools",
        )
    return layouts == {"NCHW"}


def _check_ends(net: Net) -> None:
    for op in net.operators:
        if op.ends and net.consumers(op.name):
            raise UnsupportedError(
                "a softmax inside the network",
                where=f"operator '{op.name}', read by '{net.consumers(op.name)[0].name}'",
                hint="retargeting knows softmax as the last operator only",
            )


class _Reader:
    def __init__(
        self,
        channel_first: bool,
        nodes: tuple[Node, ...],
        outputs: tuple[str, ...],
    ) -> None:
        self.channel_first = channel_first
        self.zero: dict[str, int] = {}
        self.operators: list[Operator] = []
        # An explicit padding is merged into the convolutions after it.
        self.pads: dict[str, tuple[Pad, str]] = {}
        self.outputs = set(outputs)
        self.readers: dict[str, list[Node]] = {}
        for node in nodes:
            for name in node.inputs:
                self.readers.setdefault(name, []).append(node)
        self.nodes = {node.name: node for node in nodes}
        softmaxes = [node.name for node in nodes if isinstance(node.op, SOFTMAXES)]
        inner = [name for name in softmaxes if name in self.readers]
        self.islands, self.inside = find_islands(nodes, inner)
        for name in self.outputs & self.inside:
            raise UnsupportedError(
                "an output that is not int8 with a batch of 1", where=f"output '{name}'"
            )

    def read(self, node: Node) -> None:
        """Append the operator of one node."""
        if node.name in self.inside:
            return
        if isinstance(node.op, Pad) and self._is_absorbed(node, node.op):
            self.pads[node.name] = node.op, node.inputs[0]
            self.zero[node.name] = self.zero[node.inputs[0]]
            return
        if node.name in self.islands:
            self.operators.append(self._island(node))
            self.zero[node.name] = self.operators[-1].zero_point
            return
        inputs = tuple(self._behind_pad(name) for name in node.inputs)
        if isinstance(node.op, OnnxAverage):
            shape = channel_last(node.output_shape, self.channel_first)
            self.operators += averaged(node.name, node.op, inputs, shape, self.zero[inputs[0]])
            self.zero[node.name] = self.operators[-1].zero_point
            return
        operator = self._operator(node, inputs)
        self.zero[node.name] = operator.zero_point
        self.operators.append(operator)

    def _operator(self, node: Node, inputs: tuple[str, ...]) -> Operator:
        """Return an operator that reads ``inputs``."""
        op, first, zero = node.op, self.channel_first, self.zero[inputs[0]]
        at = node.name, inputs, channel_last(node.output_shape, first)
        if node.scaled is not None:
            return self._layer(node, node.scaled, at)
        match op:
            case AveragePool():
                return AverageOperator(*at, op=op, clip=op.clip, zero_point=zero)
            case MaxPool():
                return MaximumOperator(*at, op=op, zero_point=zero)
            case Convert():
                return self._convert(node, op, at)
            case OnnxSoftmax() | TfliteSoftmax():
                return SoftmaxOperator(*at, op=op, zero_point=op.zero_point)
            case Reshape():
                return ReshapeOperator(*at, op=op, zero_point=zero, channel_first=first)
            case Move() if not isinstance(op, Filling) or op.value == zero:
                shapes = [channel_last(shape, first) for shape in node.input_shapes]
                index = _index_of(op, shapes, first)
                return GatherOperator(*at, op=op, index=index, fill=zero, zero_point=zero)
            case Filling():  # with another value than the number zero
                return self._kept(node, at, zero)
        if isinstance(op, KEPT):
            return self._kept(node, at, op.zero_point or 0)
        raise UnsupportedError(
            f"retargeting does not know '{node.kind}'", where=f"operator '{node.name}'"
        )

    def _island(self, node: Node) -> Operator:
        """Return the island that ends in a node."""
        island = self.islands[node.name]
        zero = zero_point_of(node, self.nodes, self.zero)
        shape = channel_last(node.output_shape, self.channel_first)
        return KeptOperator(
            node.name, island.inputs, shape, island=island, zero_point=zero,
            channel_first=self.channel_first,
        )  # fmt: skip

    def _kept(self, node: Node, at: _Place, zero: int, clip: tuple[int, int] = INT8) -> Operator:
        """Return an operator that is kept alone."""
        island = Island(node.inputs, (node,), 0)
        first = self.channel_first
        return KeptOperator(*at, island=island, clip=clip, zero_point=zero, channel_first=first)

    def _is_absorbed(self, node: Node, op: Pad) -> bool:
        """Whether a padding is with the number zero, and only convolutions read it."""
        readers = self.readers.get(node.name, [])
        convolutions = all(
            isinstance(other.layer, Convolution)
            and not any(other.layer.pad)
            and not _is_grouped(other)
            and not is_foreign(other)
            for other in readers
        )
        zero = op.value == self.zero[node.inputs[0]]
        return bool(readers) and convolutions and zero and node.name not in self.outputs

    def _behind_pad(self, name: str) -> str:
        return self.pads[name][1] if name in self.pads else name

    def _layer(self, node: Node, layer: Layer, at: _Place) -> Operator:
        requant = layer.requant
        if isinstance(layer, Add):
            self._check_sum(node, layer)
            zero = zero_point_of_requant(requant)
            return AddOperator(*at, requant=requant, clip=layer.clip, zero_point=zero)
        assert isinstance(layer, Weighted)
        if isinstance(requant, AnalogRequant):
            raise UnsupportedError(
                "a layer that already is in the analog core's scheme",
                where=f"operator '{node.name}'",
                hint="retarget the model it was made from",
            )
        zero = zero_point_of_requant(requant)
        if _is_grouped(node):
            return self._kept(node, at, zero, layer.clip)
        bias = np.zeros(layer.K) if layer.bias is None else layer.bias
        common: dict[str, Any] = {
            "weight": layer.weight,
            "bias": bias.astype(np.int64),
            "requant": requant,
            "clip": layer.clip,
            "zero_point": zero,
        }
        if not isinstance(layer, Convolution):
            return DenseOperator(*at, **common)
        layout = "NCHW" if self.channel_first else "NHWC"
        padding = self._padding(node, layer)
        window = Window(layer.stride, padding, layer.dilation, layer.groups, layout)
        kind = DepthwiseOperator if layer.depthwise else ConvolutionOperator
        return kind(*at, **common, window=window, pad_value=self.zero[node.inputs[0]])

    def _padding(self, node: Node, layer: Convolution) -> tuple[int, int, int, int]:
        """Return a convolution's padding, implicit or explicit: always with the number zero."""
        source = node.inputs[0]
        padding, value = layer.pad, 0
        if source in self.pads:
            pad, _ = self.pads[source]
            padding, value = pad.padding, pad.value
        if any(padding) and value != self.zero[source]:
            raise UnsupportedError(
                f"padding with {value} where the number zero is {self.zero[source]}",
                where=f"operator '{node.name}'",
            )
        return padding

    def _check_sum(self, node: Node, layer: Add) -> None:
        plain = not isinstance(layer.requant, TfliteRequant | OnnxRequant)
        if plain and any(self.zero[name] for name in node.inputs):
            raise UnsupportedError(
                "an add of integers whose zero points are not 0",
                where=f"operator '{node.name}'",
            )

    def _convert(self, node: Node, op: Convert, at: _Place) -> Operator:
        zero = zero_point_of_requant(op.requant)
        if any(isinstance(item, tuple) and len(item) > 1 for item in vars(op.requant).values()):
            raise self._no_change_of_scale(node, "each channel has a scale of its own")
        operator = ConvertOperator(
            *at, requant=op.requant, offset=op.offset, clip=op.clip, zero_point=zero
        )
        if operator.moves_zero(self.zero[node.inputs[0]]) >= 1:
            raise self._no_change_of_scale(node, "it does not take the number zero to zero")
        return operator

    def _no_change_of_scale(self, node: Node, reason: str) -> UnsupportedError:
        return UnsupportedError(
            f"a conversion that is not a change of scale: {reason}",
            where=f"operator '{node.name}'",
            hint="retargeting chooses scales itself, and leaves only the clip of a conversion",
        )


def _is_grouped(node: Node) -> bool:
    """Whether it is a convolution with several groups of several channels, which no scheme has."""
    layer = node.layer
    return isinstance(layer, Convolution) and not layer.depthwise and layer.groups != 1


def _index_of(move: Move, shapes: Sequence[tuple[int, ...]], channel_first: bool) -> Array:
    """Return the source index of each element of the result; -1 for the filling.

    Args:
        move: an operator that only moves elements.
        shapes: shapes of its inputs, channel-last, without batch.
        channel_first: whether the module's own layout is NCHW.

    Returns:
        Flat int64 array, in the order of a channel-last result.
    """
    parts, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        numbers = np.arange(start, start + size).reshape(1, *shape)
        parts.append(to_source(numbers, channel_first))
        start += size
    return from_source(move.moved(parts, -1), channel_first).reshape(-1)
