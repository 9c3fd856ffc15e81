"""From a model in the integer form to the network that retargeting works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import (
    Add,
    AnalogRequant,
    Convolution,
    Layer,
    MulShift,
    OnnxRequant,
    Shift,
    TfliteRequant,
    Weighted,
)
from htvm.quantization.averages import averaged
from htvm.quantization.graph import (
    Array,
    FloatAdd,
    FloatScale,
    Net,
    Operator,
    Origin,
    Requantization,
    TfliteAdd,
    TfliteScale,
)
from htvm.quantization.islands import SOFTMAXES, find_islands, is_foreign, zero_point_of
from htvm.quantization.kept import KEPT
from htvm.quantization.moves import index_of
from patterns.ops.convert import Convert
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.base import Filling, Move
from patterns.ops.moves.pad import Pad
from patterns.ops.moves.reshape import Reshape
from patterns.ops.onnxruntime.average import OnnxAverage
from patterns.ops.tflite.average_pool import AveragePool

if TYPE_CHECKING:
    from tvm.ir import IRModule

    from htvm.model import Model
    from patterns.reading.read import Node

__all__ = [
    "channel_last",
    "read_net",
]


def read_net(model: Model) -> Net:
    """The network of a model.

    Args:
        model: in the integer form.

    Raises:
        UnsupportedError: if retargeting does not know an operator, or a padding stands for
            something else than the number zero.
    """
    from patterns.reading.read import main_of

    nodes, outputs = model.graph.in_order, model.graph.results
    params = [str(var.name) for var in main_of(model.module).params]
    for info in model.inputs:
        if info.dtype != "int8":
            raise UnsupportedError(
                f"an input of type {info.dtype}",
                where=f"input '{info.name}'",
                hint="only int8 models can be retargeted",
            )
    reader = _Reader(model.module, _is_channel_first(nodes), nodes, outputs)
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
    """A tensor's shape without batch, channels last."""
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
        if op.kind == "softmax" and net.consumers(op.name):
            raise UnsupportedError(
                "a softmax inside the network",
                where=f"operator '{op.name}', read by '{net.consumers(op.name)[0].name}'",
                hint="retargeting knows softmax as the last operator only",
            )


class _Reader:
    def __init__(
        self,
        module: IRModule,
        channel_first: bool,
        nodes: tuple[Node, ...],
        outputs: tuple[str, ...],
    ) -> None:
        self.module = module
        self.channel_first = channel_first
        self.zero: dict[str, int] = {}
        self.operators: list[Operator] = []
        # An explicit padding is taken into the convolutions behind it.
        self.pads: dict[str, tuple[Pad, str]] = {}
        self.outputs = set(outputs)
        self.readers: dict[str, list[Node]] = {}
        for node in nodes:
            for name in node.inputs:
                self.readers.setdefault(name, []).append(node)
        self.nodes = {node.name: node for node in nodes}
        softmaxes = [node.name for node in nodes if isinstance(node.op, SOFTMAXES)]
        inner = [name for name in softmaxes if name in self.readers]
        self.islands, self.inside = find_islands(module, nodes, inner)
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
        common: dict[str, Any] = {
            "name": node.name,
            "kind": node.kind,
            "inputs": inputs,
            "shape": channel_last(node.output_shape, self.channel_first),
        }
        if node.scaled is not None:
            fields = self._layer(node, node.scaled)
        elif isinstance(node.op, AveragePool | MaxPool):
            fields = {
                "pool": node.op.kernel,
                "stride": node.op.strides,
                "pad": node.op.padding,
                "clip": node.op.clip if isinstance(node.op, AveragePool) else (-128, 127),
                "zero_point": self.zero[inputs[0]],
            }
        elif isinstance(node.op, Convert):
            fields = self._convert(node, node.op)
        elif isinstance(node.op, SOFTMAXES):
            origin = Origin(node.kind, op=node.op)
            fields = {"kind": "softmax", "origin": origin, "zero_point": node.op.zero_point}
        elif isinstance(node.op, Reshape):
            fields = {"zero_point": self.zero[inputs[0]]}
        elif isinstance(node.op, (Move, *KEPT)):
            fields = self._moved_or_kept(node, inputs)
        else:
            raise UnsupportedError(
                f"retargeting does not know '{node.kind}'", where=f"operator '{node.name}'"
            )
        operator = Operator(**{**common, **fields})
        self.zero[node.name] = operator.zero_point
        self.operators.append(operator)

    def _island(self, node: Node) -> Operator:
        """What ends in a node."""
        island = self.islands[node.name]
        zero = zero_point_of(node, self.nodes, self.zero)
        shape = channel_last(node.output_shape, self.channel_first)
        origin = Origin("island", {"island": island})
        return Operator(node.name, "kept", island.inputs, shape, zero_point=zero, origin=origin)

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

    def _moved_or_kept(self, node: Node, inputs: tuple[str, ...]) -> dict[str, Any]:
        """A move lets scales through, unless what it fills with is not the number zero."""
        source = self.zero[inputs[0]]
        origin = Origin(node.kind, op=node.op)
        if not isinstance(node.op, Move):
            zero = node.op.zero_point or 0
            return {"kind": "kept", "origin": origin, "zero_point": zero}
        if isinstance(node.op, Filling) and node.op.value != source:
            return {"kind": "kept", "origin": origin, "zero_point": source}
        shapes = [channel_last(shape, self.channel_first) for shape in node.input_shapes]
        index = index_of(node.op, shapes, self.channel_first)
        return {
            "kind": "gather", "origin": origin, "index": index, "zero_point": source,
            "pad_value": source,
        }  # fmt: skip

    def _layer(self, node: Node, layer: Layer) -> dict[str, Any]:
        zero_point = _output_zero_point(layer.requant)
        fields: dict[str, Any] = {"clip": layer.clip, "zero_point": zero_point}
        if isinstance(layer, Add):
            fields["requant"] = self._add_requant(node, layer)
            return fields
        assert isinstance(layer, Weighted)
        if isinstance(layer.requant, AnalogRequant):
            raise UnsupportedError(
                "a layer that already is in the analog core's scheme",
                where=f"operator '{node.name}'",
                hint="retarget the model it was made from",
            )
        bias = np.zeros(layer.K) if layer.bias is None else layer.bias
        fields.update(
            weight=layer.weight,
            bias=bias.astype(np.int64),
            requant=_requantization(layer.requant, layer.K),
            stride=layer.stride,
            dilation=layer.dilation,
            groups=layer.groups,
        )
        if _is_grouped(node):
            return {
                **fields,
                "kind": "kept",
                "origin": Origin("conv2d", op=node.op),
                "pad": layer.pad,
            }
        padding, zero = self._padding(node, layer), self.zero[node.inputs[0]]
        return {**fields, "pad": padding, "pad_value": zero}

    def _padding(self, node: Node, layer: Layer) -> tuple[int, int, int, int]:
        """The padding of a convolution, implicit or explicit: always with the number zero."""
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

    def _add_requant(self, node: Node, layer: Layer) -> Requantization:
        if isinstance(layer.requant, TfliteRequant):
            first, second, out = layer.requant.multiplier
            left, right, down = layer.requant.shift
            a, b = layer.requant.input_zero_points
            zero = layer.requant.output_zero_point
            return TfliteAdd((first, second, out), (left, right, down), (a, b, zero))
        if isinstance(layer.requant, OnnxRequant):
            return FloatAdd.from_requant(layer.requant)
        if any(self.zero[name] for name in node.inputs):
            raise UnsupportedError(
                "an add of integers whose zero points are not 0",
                where=f"operator '{node.name}'",
            )
        assert not isinstance(layer.requant, AnalogRequant)
        return layer.requant

    def _convert(self, node: Node, op: Convert) -> dict[str, Any]:
        requant, offset, clip = op.requant, op.offset, op.clip
        zero = _output_zero_point(requant)
        if any(isinstance(item, tuple) and len(item) > 1 for item in vars(requant).values()):
            raise self._no_change_of_scale(node, "each channel has a scale of its own")
        fields: dict[str, Any] = {
            "requant": _requantization(requant, 1),
            "offset": offset,
            "clip": clip,
            "zero_point": zero,
        }
        operator = Operator(node.name, "convert", (), (), **fields)
        # In steps of the result; what is left of rounding is below one.
        moved = (offset + self.zero[node.inputs[0]]) * operator.factors()[0]
        if np.max(np.abs(moved + operator.real_offset())) >= 1:
            raise self._no_change_of_scale(node, "it does not take the number zero to zero")
        if clip not in ((-128, 127), (zero, 127)):
            raise self._no_change_of_scale(node, f"it clips to [{clip[0]}, {clip[1]}]")
        return fields

    def _no_change_of_scale(self, node: Node, reason: str) -> UnsupportedError:
        return UnsupportedError(
            f"a conversion that is no change of scale: {reason}",
            where=f"operator '{node.name}'",
            hint="retargeting chooses scales itself, and leaves only a rectifier of a conversion",
        )


def _output_zero_point(requant: object) -> int:
    if isinstance(requant, TfliteRequant | OnnxRequant):
        return requant.output_zero_point
    return 0


def _is_grouped(node: Node) -> bool:
    """Whether it is a convolution of several groups of several channels, which no scheme has."""
    layer = node.layer
    return isinstance(layer, Convolution) and not layer.depthwise and layer.groups != 1


def _requantization(
    requant: Shift | MulShift | TfliteRequant | OnnxRequant, channels: int
) -> Requantization:
    if isinstance(requant, Shift | MulShift):
        return requant

    def spread(values: tuple[int, ...]) -> Array:
        return np.broadcast_to(np.array(values, np.int64), (channels,))

    multiplier, shift = spread(requant.multiplier), spread(requant.shift)
    if isinstance(requant, OnnxRequant):
        return FloatScale(multiplier, shift, requant.output_zero_point)
    return TfliteScale(multiplier, shift, requant.output_zero_point)
