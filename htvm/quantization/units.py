"""Networks as retargeting sees them: each operator one unit, and back.

An explicit padding becomes part of the convolutions after it, an average that changes the scale
becomes an average and a conversion, and what is kept as it is becomes an `Island`.  Behind it,
conversions beside tables are merged into these: one look-up instead of two passes over a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import (
    Add,
    AnalogRequant,
    Convolution,
    MulShift,
    OnnxRequant,
    Shift,
    TfliteRequant,
    TorchRequant,
)
from htvm.quantization.annotated import Annotated, is_kept
from htvm.quantization.islands import (
    KEPT,
    SOFTMAXES,
    Island,
    find_islands,
    is_foreign,
    zero_point_of,
)
from patterns.op import INT8
from patterns.ops.convert import Convert, TableLookup
from patterns.ops.convolution import Conv2d
from patterns.ops.moves.base import Filling
from patterns.ops.moves.pad import Pad
from patterns.ops.onnxruntime.average import OnnxAverage
from patterns.ops.onnxruntime.rounding import float_scale
from patterns.ops.scaling import factors_of, offset_of
from patterns.ops.tflite.averages import AveragePool
from patterns.reading.building import GraphBuilder

if TYPE_CHECKING:
    from htvm.model import Model
    from htvm.quantization.annotated import Annotated
    from patterns.op import Op
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


def annotated(model: Model) -> Annotated:
    """Return the network of a model.

    Args:
        model: model in the integer form.

    Raises:
        UnsupportedError: retargeting does not support an operator, or a padding has a value other
            than the number zero.
    """
    graph = model.graph
    for info in model.inputs:
        if info.dtype != "int8":
            raise UnsupportedError(
                f"an input of type {info.dtype}",
                where=f"input '{info.name}'",
                hint="only int8 models can be retargeted",
            )
    channel_first = _is_channel_first(graph)
    softmaxes = [node.name for node in graph.in_order if isinstance(node.op, SOFTMAXES)]
    inner = [name for name in softmaxes if graph.read_by(name)]
    islands, inside = find_islands(graph.in_order, inner)
    for name in set(graph.results) & inside:
        raise UnsupportedError(
            "an output that is not int8 with a batch of 1", where=f"output '{name}'"
        )
    builder, pads = GraphBuilder(graph.inputs), dict[str, tuple[Pad, str]]()
    given = zip(graph.inputs, model.inputs, strict=True)
    zeros = {name: info.zero_point or 0 for (name, _), info in given}
    for node in (each for each in graph.in_order if each.name not in inside):
        op, inputs = node.op, node.inputs
        zeros[node.name] = zero_point_of(node, graph.nodes, zeros)
        if node.name in islands:
            builder.apply(islands[node.name], islands[node.name].inputs, node.name)
            continue
        if isinstance(op, Pad) and _is_absorbed(op, node, graph, zeros):
            pads[node.name] = op, inputs[0]
            continue
        if isinstance(op, OnnxAverage):
            zeros[f"{node.name}_mean"] = zeros[inputs[0]]
            _average(builder, node, op, zeros[inputs[0]])
            continue
        filled = isinstance(op, Filling) and op.value != zeros[inputs[0]]
        if filled or isinstance(op, KEPT) or _is_grouped(node):
            op = Island(inputs, (node,), clip=INT8 if node.scaled is None else node.scaled.clip)
        else:
            _check(node, zeros)
        if isinstance(op, Conv2d) and inputs[0] in pads:
            pad, source = pads[inputs[0]]
            op, inputs = replace(op, window=replace(op.window, padding=pad.padding)), (source,)
        builder.apply(op, inputs, node.name)
    for info in model.inputs:
        if info.shape[0] != 1:
            raise UnsupportedError(
                f"a batch of {info.shape[0]}", hint="only batch size 1 is supported"
            )
    return Annotated(builder.graph(graph.results), zeros, channel_first)


def without_islands(net: Annotated) -> Graph:
    """Return the graph without islands, and without what outputs do not depend on.

    Conversions for kept operators may be useless.
    """
    wanted, needed = set(net.graph.results), []
    for node in reversed(net.nodes):
        if node.name in wanted:
            needed.append(node)
            wanted.update(node.inputs)
    if len(needed) == len(net.nodes) and not any(map(is_kept, needed)):
        return net.graph
    builder = GraphBuilder(net.graph.inputs)
    for node in reversed(needed):
        if isinstance(node.op, Island):
            node.op.add_to(builder, node.inputs)
        else:
            builder.apply(node.op, node.inputs, node.name)
    return builder.graph(net.graph.results)


def _is_channel_first(graph: Graph) -> bool:
    layouts = {str(node.op.layout) for node in graph.in_order if hasattr(node.op, "layout")}
    for node in graph.in_order:
        if isinstance(node.layer, Convolution):
            layouts.add(str(node.layer.inputs[0].layout))
    if len(layouts) > 1:
        raise UnsupportedError(
            f"layouts {', '.join(sorted(layouts))} in one network",
            hint="retargeting needs one layout for all convolutions and pools",
        )
    return layouts == {"NCHW"}


def _is_absorbed(pad: Pad, node: Node, graph: Graph, zeros: Mapping[str, int]) -> bool:
    """Whether a padding is with the number zero, and only convolutions read it."""
    readers = graph.read_by(node.name)
    convolutions = all(
        isinstance(other.layer, Convolution)
        and not any(other.layer.pad)
        and not _is_grouped(other)
        and not is_foreign(other)
        for other in readers
    )
    zero = pad.value == zeros[node.inputs[0]]
    return bool(readers) and convolutions and zero and not graph.is_result(node.name)


def _is_grouped(node: Node) -> bool:
    """Whether it is a convolution with several groups of several channels, which no scheme has."""
    layer = node.layer
    return isinstance(layer, Convolution) and not layer.depthwise and layer.groups != 1


def _average(builder: GraphBuilder, node: Node, op: OnnxAverage, zero_point: int) -> None:
    """Add an average and a conversion, which has the name of the whole.

    The conversion is left out if scales are free.  On integers, the two round once each, where the
    original rounds only once: at most one step of difference.

    Args:
        builder: to add them to.
        node: the average.
        op: its operator.
        zero_point: zero point of its input.

    Raises:
        UnsupportedError: it is padded.
    """
    if any(op.padding):
        raise UnsupportedError(
            "an average that counts its padding",
            where=f"operator '{node.name}'",
            hint="leave the padding out",
        )
    scale = math.ldexp(op.requant.multiplier[0], -op.requant.shift[0]) * math.prod(op.kernel)
    multiplier, shift = float_scale(scale)
    pool = AveragePool(op.kernel, op.strides, layout=op.layout)
    builder.apply(pool, node.inputs, mean := f"{node.name}_mean")
    requant = OnnxRequant((multiplier,), (shift,), op.zero_point)
    builder.apply(Convert(requant, op.clip, -zero_point), [mean], node.name)


def _check(node: Node, zeros: Mapping[str, int]) -> None:
    """Check that an operator fits what retargeting assumes.

    Raises:
        UnsupportedError: it does not.
    """
    where, zero = f"operator '{node.name}'", zeros[node.inputs[0]]
    if isinstance(node.op, Convert):
        _check_conversion(node.op, where, zero)
    if node.scaled is None:
        return
    requant, padding = node.scaled.requant, node.scaled.pad
    plain = not isinstance(requant, TfliteRequant | OnnxRequant | TorchRequant)
    if isinstance(node.scaled, Add) and plain and any(zeros[name] for name in node.inputs):
        raise UnsupportedError("an add of integers whose zero points are not 0", where=where)
    if isinstance(requant, AnalogRequant):
        raise UnsupportedError(
            "a layer that already is in the analog core's scheme",
            where=where,
            hint="retarget the model it was made from",
        )
    if any(padding) and zero:
        raise UnsupportedError(f"padding with 0 where the number zero is {zero}", where=where)


def _check_conversion(op: Convert, where: str, zero: int) -> None:
    reason = ""
    if any(isinstance(item, tuple) and len(item) > 1 for item in vars(op.requant).values()):
        reason = "each channel has a scale of its own"
    else:
        # What is left of rounding is below one step.
        moved = (op.offset + zero) * factors_of(op.requant) + offset_of(op.requant)
        if float(np.max(np.abs(moved))) >= 1:
            reason = "it does not take the number zero to zero"
    if reason:
        raise UnsupportedError(
            f"a conversion that is not a change of scale: {reason}",
            where=where,
            hint="retargeting chooses scales itself, and leaves only the clip of a conversion",
        )


_EVERY = np.arange(-128, 128).astype(np.int8)


def fold_tables(net: Annotated) -> Annotated:
    """Merge every conversion that only a table reads, or that is a table's only reader, into it.

    The table keeps its name.
    """
    graph, zeros = net.graph, dict(net.zeros)
    units: dict[str, tuple[Op, tuple[str, ...]]] = {}
    known: dict[str, str] = {}  # a conversion -> the table that it is part of
    for node in graph.in_order:
        op, name = node.op, node.name
        inputs = tuple(known.get(each, each) for each in node.inputs)
        read = node.inputs[0]
        if inputs[0] in units and not graph.is_result(read) and len(graph.read_by(read)) == 1:
            joined = _joined_table(units[inputs[0]][0], op, zeros[name])
            if joined is not None:
                (_, inputs), op = units.pop(inputs[0]), joined
                name = known[node.name] = joined.nodes[0].name
                zeros[name] = zeros[node.name]
        units[name] = op, inputs
    if not known:
        return net
    builder = GraphBuilder(graph.inputs)
    for name, (op, inputs) in units.items():
        builder.apply(op, inputs, name)
    results = [known.get(name, name) for name in graph.results]
    return replace(net, graph=builder.graph(results), zeros=zeros)


def _joined_table(first: Op, second: Op, zero_point: int) -> Island | None:
    """Return one table instead of a table and a conversion, in any order; ``None`` for others."""
    before, after = _table(first) or _conversion(first), _table(second) or _conversion(second)
    kept = first if isinstance(first, Island) else second
    if before is None or after is None or type(before) is type(after):
        return None
    assert isinstance(kept, Island), kept
    values = after.compute([before.compute([_EVERY])])
    table = replace(kept.nodes[0], op=TableLookup(values, zero_point=zero_point))
    clip = after.clip if isinstance(after, Convert) else kept.clip
    return replace(kept, nodes=(table,), clip=clip)


def _table(op: Op) -> TableLookup | None:
    inside = op.nodes[0].op if isinstance(op, Island) and len(op.nodes) == 1 else None
    return inside if isinstance(inside, TableLookup) and inside.rows == 1 else None


def _conversion(op: Op) -> Convert | None:
    return op if isinstance(op, Convert) and isinstance(op.requant, Shift | MulShift) else None
