"""Merging conversions into adjacent tables: one look-up instead of two passes over a tensor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byoc_dory.layers import MulShift, Shift
from htvm.quantization.graph import Net
from htvm.quantization.operators import KeptOperator, Operator
from htvm.quantization.passing import ConvertOperator
from patterns.ops.table_map import TableLookup

__all__ = ["fold_tables"]

_EVERY = np.arange(-128, 128).astype(np.int8).reshape(-1, 1)


def fold_tables(net: Net) -> Net:
    """Merge every conversion that only a table reads, or that is a table's only reader, into it.

    The table keeps its name.
    """
    while (folded := _fold_one(net)) is not None:
        net = folded
    return net


def _fold_one(net: Net) -> Net | None:
    for op in net.operators:
        source = net.producer(op.inputs[0])
        if source is None or source.name in net.outputs or len(net.consumers(source.name)) > 1:
            continue
        if (_is_table(op) and _is_conversion(source)) or (_is_conversion(op) and _is_table(source)):
            table = op if _is_table(op) else source
            assert isinstance(table, KeptOperator), table
            values = op.run([source.run([_EVERY])]).reshape(-1)
            (node,) = table.island.nodes
            node = replace(node, op=TableLookup(values, zero_point=op.zero_point))
            joined = replace(
                table, inputs=source.inputs, clip=op.clip, zero_point=op.zero_point, home=op.home,
                island=replace(table.island, nodes=(node,)),
            )  # fmt: skip
            return _with(net, source, op, joined)
    return None


def _is_table(op: Operator) -> bool:
    if not isinstance(op, KeptOperator) or len(op.island.nodes) != 1:
        return False
    table = op.island.nodes[0].op
    return isinstance(table, TableLookup) and table.rows == 1


def _is_conversion(op: Operator) -> bool:
    return isinstance(op, ConvertOperator) and isinstance(op.requant, Shift | MulShift)


def _with(net: Net, first: Operator, last: Operator, joined: Operator) -> Net:
    """Return the network with two operators replaced by one, at the place of the last."""

    def renamed(name: str) -> str:
        return joined.name if name == last.name else name

    operators = []
    for op in net.operators:
        if op is last:
            operators.append(joined)
        elif op is not first:
            operators.append(replace(op, inputs=tuple(renamed(name) for name in op.inputs)))
    outputs = tuple(renamed(name) for name in net.outputs)
    return Net(net.inputs, net.zero_points, tuple(operators), outputs, net.channel_first)
