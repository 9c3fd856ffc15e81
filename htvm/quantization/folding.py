"""Merging conversions into adjacent tables: one look-up instead of two passes over a tensor."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import MulShift, Shift
from htvm.quantization.islands import Island
from patterns.ops.convert import Convert
from patterns.ops.table_map import TableLookup
from patterns.reading.building import GraphBuilder

if TYPE_CHECKING:
    from htvm.quantization.annotated import Annotated
    from patterns.op import Op

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
            joined = _joined(units[inputs[0]][0], op, zeros[name])
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


def _joined(first: Op, second: Op, zero_point: int) -> Island | None:
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
