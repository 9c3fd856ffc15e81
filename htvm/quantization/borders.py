"""Conversions at the inputs and outputs of networks with real or unsigned interfaces.

`without_borders` removes the conversions at the inputs and outputs; `with_borders` puts them around
the retargeted network again, so that its interface stays the source's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import UnsupportedError
from htvm.model import Model, TensorInfo
from patterns.ops.float32.quantize import Dequantize, Quantize
from patterns.ops.integer.reduction import ArgExtreme
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.concat import Gather
from patterns.ops.moves.reshape import Reshape
from patterns.reading.building import GraphBuilder

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


@dataclass(frozen=True, eq=False)
class Borders:
    """The conversions around a network.

    Attributes:
        source: the model including them.
        inputs: for each input, the operator that converts it, or ``None``.
        outputs: for each output, likewise.
        moves: names of the reshapes and casts between an input and its conversion, by the latter.
    """

    source: Model
    inputs: tuple[Node | None, ...]
    outputs: tuple[Node | None, ...]
    moves: Mapping[str, tuple[str, ...]]

    def converted(self, data: Mapping[str, Array]) -> dict[str, Array]:
        """Convert samples ``[N, *shape]`` in the source's numbers, by input, to int8 ones."""
        result = {}
        for info, node in zip(self.source.inputs, self.inputs, strict=True):
            array = data[info.name]
            if node is None:
                result[info.name] = array
                continue
            places = array.reshape(len(array), *node.input_shapes[0])
            op = node.op
            if isinstance(op, Quantize):
                wide = np.rint(places.astype("float32") / np.float32(op.step)) + op.zero_point
                result[node.name] = np.clip(wide, -128, 127).astype("int8")
            elif isinstance(op, Gather):
                result[node.name] = np.stack([op.looked_up(item) for item in places])
            else:
                assert isinstance(op, Rescale)
                wide = (places.astype("int64") * op.mul + op.add) >> op.shift
                result[node.name] = np.clip(wide, *op.clip).astype("int8")
        return result


def without_borders(model: Model, *, lookups: bool = True) -> tuple[Model, Borders | None]:
    """Return the network between the conversions, and the conversions (``None`` without any).

    Args:
        model: model in the integer form.
        lookups: whether the lookup of an input's indices in a table counts as its conversion.

    Raises:
        UnsupportedError: an input is neither int8 nor immediately converted to it.
    """
    graph = model.graph
    firsts = [
        _input_conversion(name, info, graph.in_order, lookups)
        for (name, _), info in zip(graph.inputs, model.inputs, strict=True)
    ]
    inputs = tuple(node for node, _ in firsts)
    moves = {node.name: names for node, names in firsts if node is not None}
    outputs = tuple(
        _output_conversion(graph.nodes.get(name), info)
        for name, info in zip(graph.results, model.outputs, strict=True)
    )
    for name in set(graph.results) & {n for names in moves.values() for n in names}:
        raise UnsupportedError(
            "an output that is an input in another shape",
            where=f"operator '{name}'",
            hint="only networks that are int8 inside can be retargeted",
        )
    if not any(inputs) and not any(outputs):
        return model, None
    inner = replace(
        model,
        graph=_stripped(graph, inputs, outputs, moves),
        inputs=tuple(
            info
            if node is None
            else TensorInfo(node.name, node.output_shape, "int8", *_scale_and_zero_point(node))
            for info, node in zip(model.inputs, inputs, strict=True)
        ),
        outputs=tuple(
            info if node is None else TensorInfo(info.name, info.shape, "int8")
            for info, node in zip(model.outputs, outputs, strict=True)
        ),
    )
    return inner, Borders(model, inputs, outputs, moves)


def _input_conversion(
    name: str, info: TensorInfo, nodes: tuple[Node, ...], lookups: bool
) -> tuple[Node | None, tuple[str, ...]]:
    """Return the conversion of an input, and the names of the reshapes and casts before it."""
    if info.dtype == "int8":
        return None, ()
    moves: tuple[str, ...] = ()
    readers = [node for node in nodes if name in node.inputs]
    while len(readers) == 1 and _is_reshape_or_cast(readers[0]):
        name = readers[0].name
        moves = (*moves, name)
        readers = [node for node in nodes if name in node.inputs]
    if not lookups and readers and all(isinstance(node.op, Gather) for node in readers):
        return None, ()
    if len(readers) != 1 or not _is_inward(readers[0]):
        raise UnsupportedError(
            f"an input of type {info.dtype} that is not quantized at once",
            where=f"input '{info.name}'",
            hint="only networks that are int8 inside can be retargeted",
        )
    return readers[0], moves


def _is_reshape_or_cast(node: Node) -> bool:
    if isinstance(node.op, Rescale):
        return node.op.offset == 0 and node.output_dtype == "int32"
    return isinstance(node.op, Reshape)


def _is_inward(node: Node) -> bool:
    """Whether it converts an input to the type used for computing."""
    if isinstance(node.op, Gather) and node.op.table is None:
        return False
    return isinstance(node.op, Quantize | Rescale | Gather) and node.output_dtype == "int8"


def _output_conversion(node: Node | None, info: TensorInfo) -> Node | None:
    if info.dtype == "int8" or node is None:
        return None
    if not isinstance(node.op, ArgExtreme | Dequantize | Rescale) or node.input_dtypes != ("int8",):
        raise UnsupportedError(
            f"an output of type {info.dtype} computed by '{node.kind}'",
            where=f"output '{info.name}'",
            hint="only networks that are int8 inside can be retargeted",
        )
    return node


def _scale_and_zero_point(node: Node) -> tuple[float | None, int | None]:
    """Return scale and zero point of a conversion's result, as far as known."""
    if isinstance(node.op, Gather):
        return None, node.op.zero_point
    if not isinstance(node.op, Quantize):
        return None, None
    return float(np.float32(node.op.step)), node.op.zero_point


# ------------------------------------------------------------------------------ graphs


def _stripped(
    graph: Graph,
    inputs: tuple[Node | None, ...],
    outputs: tuple[Node | None, ...],
    moves: Mapping[str, tuple[str, ...]],
) -> Graph:
    conversions = [node.name for node in (*inputs, *outputs) if node is not None]
    left_out = {*conversions, *(name for names in moves.values() for name in names)}
    builder = GraphBuilder(
        given if node is None else (node.name, node.result)
        for given, node in zip(graph.inputs, inputs, strict=True)
    )
    for node in graph.in_order:
        if node.name not in left_out:
            builder.apply(node.op, node.inputs, node.name)
    ends = zip(graph.results, outputs, strict=True)
    return builder.graph([name if end is None else end.inputs[0] for name, end in ends])


def with_borders(model: Model, borders: Borders) -> Model:
    """Return the network with the conversions around it again, and the source's interface."""
    source, inner = borders.source.graph, model.graph
    builder = GraphBuilder(source.inputs)
    known = {}
    for (name, _), (inside_name, _), first in zip(
        source.inputs, inner.inputs, borders.inputs, strict=True
    ):
        known[inside_name] = name if first is None else first.name
        for each in () if first is None else (*borders.moves[first.name], first.name):
            builder.apply(source.nodes[each].op, source.nodes[each].inputs, each)
    for node in inner.in_order:
        inputs = [known.get(name, name) for name in node.inputs]
        known[node.name] = builder.apply(node.op, inputs, node.name)
    results = []
    for name, last in zip(inner.results, borders.outputs, strict=True):
        if last is not None and last.name not in builder.types:
            builder.apply(last.op, [known[name]], last.name)
        results.append(known[name] if last is None else last.name)
    return replace(
        model,
        graph=builder.graph(results),
        inputs=borders.source.inputs,
        outputs=borders.source.outputs,
    )
