"""`GraphBuilder`: a `Graph` made operator by operator; `finished`: of operators that are there.

Layouts and ranges are what all operators together tell.  A sum does not tell whether its four axes
are NHWC or NCHW, and need not know.  Inside a region it must agree with the convolutions it is
connected to, because tensors there have channels.  A padding of only the third axis pads columns in
NHWC and rows in NCHW.

A core with fewer than eight bits takes a layer only if its inputs provably fit.  A clip bounds its
result; the sums of a layer with one right shift are also bounded by its weights, often more tightly
than by its clip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from byoc_dory.layers import Add, Layout, Tensor
from patterns.names import located
from patterns.op import INT8, Range, union
from patterns.ops.moves.base import Move
from patterns.reading.graph import Graph
from patterns.reading.node import Node, node_of

if TYPE_CHECKING:
    from patterns.op import Op, TensorType


def layouts_of(nodes: Sequence[Node]) -> Mapping[str, Layout]:
    """Return the layout of each tensor whose four axes an operator gives a meaning.

    It is carried on by operators that compute element by element, and by those that do not depend
    on it.  Where operators contradict each other, none is known.

    Args:
        nodes: operators in execution order.
    """
    return {
        tensor: next(iter(layouts))
        for tensor, layouts in _layouts(nodes, _keeps_axes).items()
        if len(layouts) == 1
    }


def _keeps_axes(node: Node) -> bool:
    same = node.input_shapes == (node.output_shape,) and not isinstance(node.op, Move)
    return node.op.neutral or same


def with_layouts(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The operators, with sums and paddings in the layout of the convolutions and pools around.

    Operators connected to none of these, or to both layouts, keep NHWC.

    Args:
        nodes: operators in execution order, with all sums and ambiguous paddings read as NHWC.
    """
    channels_first = _channels_first_tensors(nodes)
    return tuple(_turned(node) if node.output in channels_first else node for node in nodes)


def _channels_first_tensors(nodes: Sequence[Node]) -> set[str]:
    """Return the tensors computed by neutral operators that are certainly NCHW."""
    layouts = _layouts(nodes, lambda node: node.op.neutral)
    neutral = [node.output for node in nodes if node.op.neutral]
    return {tensor for tensor in neutral if layouts.get(tensor) == {"NCHW"}}


def _layouts(nodes: Sequence[Node], keeps: Callable[[Node], bool]) -> dict[str, set[Layout]]:
    """Return what is prescribed for each tensor, directly or through operators that ``keeps``."""
    homes: dict[str, str] = {}

    def home(tensor: str) -> str:
        while tensor in homes:
            # Halves the way for the next one: chains have thousands of operators.
            homes[tensor] = homes.get(homes[tensor], homes[tensor])
            tensor = homes[tensor]
        return tensor

    for node in nodes:
        for name in node.inputs if keeps(node) else ():
            if home(name) != home(node.output):
                homes[home(name)] = home(node.output)
    found: dict[str, set[Layout]] = {}
    for node in nodes:
        for tensor, layout in _prescribed(node):
            found.setdefault(home(tensor), set()).add(layout)
    tensors = {name for node in nodes for name in (*node.inputs, node.output)}
    return {tensor: found[home(tensor)] for tensor in tensors if home(tensor) in found}


def _prescribed(node: Node) -> Iterator[tuple[str, Layout]]:
    """Yield the tensors of an operator with the layout it prescribes."""
    layout = node.op.prescribed
    if layout is not None:
        for tensor in (*node.inputs, node.output):
            yield tensor, layout


def _turned(node: Node) -> Node:
    """Return a neutral operator that was read as NHWC as NCHW instead."""
    if isinstance(node.layer, Add):
        return replace(node, layer=_turned_sum(node.layer))
    return replace(node, op=node.op.in_channels_first())


def _turned_sum(layer: Add) -> Add:
    if layer.output.layout != "NHWC":
        return layer
    # (C, y, x) of NHWC are the axes 3, 1, 2; of NCHW they are 1, 2, 3.
    channels, y, x = layer.oy, layer.ox, layer.K

    def turned(tensor: Tensor) -> Tensor:
        layout: Layout = "NCHW"
        return replace(tensor, shape=(channels, y, x), layout=layout)

    a, b = layer.inputs
    return replace(
        layer,
        inputs=(turned(a), turned(b)),
        output=turned(layer.output),
    )


class GraphBuilder:
    """Takes operators in execution order; tensors are known by their names.

    Args:
        inputs: name and type of each tensor that the network is given.
    """

    def __init__(self, inputs: Iterable[tuple[str, TensorType]]) -> None:
        self._inputs = tuple(inputs)
        self._nodes: list[Node] = []
        self._types = dict(self._inputs)

    @property
    def types(self) -> Mapping[str, TensorType]:
        """The type of each tensor so far."""
        return self._types

    @property
    def last(self) -> Node:
        """The operator that was applied last."""
        return self._nodes[-1]

    def apply(
        self, op: Op, inputs: Sequence[str], name: str, result: TensorType | None = None
    ) -> str:
        """Apply an operator to tensors; return the name of the result, which is the operator's.

        Args:
            op: the operator.
            inputs: names of the tensors that it reads.
            name: name of the operator.
            result: type of its result, if it is known.

        Raises:
            IntegerFormError: the tensors do not fit the operator.
            UnsupportedError: the result could not be computed exactly.
        """
        read = [(each, self._types[each]) for each in inputs]
        with located(name):
            result = result or op.result_of([kind for _, kind in read])
        self._nodes.append(node_of(name, op, read, result))
        self._types[name] = result
        return name

    def graph(self, results: Sequence[str]) -> Graph:
        """Return the graph of what was applied, with layouts and ranges as its operators tell."""
        return finished(self._nodes, results, self._inputs)


def finished(
    nodes: Sequence[Node], results: Sequence[str], inputs: Sequence[tuple[str, TensorType]]
) -> Graph:
    """Return the graph of operators in execution order, with layouts and ranges as they tell.

    Args:
        nodes: the operators.
        results: names of the tensors that it returns.
        inputs: name and type of each tensor that it is given.
    """
    return Graph(_with_ranges(with_layouts(nodes)), tuple(results), tuple(inputs))


def _with_ranges(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the operators, with the ranges of their inputs in their layers."""
    known: dict[str, Range] = {}
    result = []
    for node in nodes:
        inputs = [known.get(name, INT8) for name in node.inputs]
        known[node.output] = _range_of(node, inputs)
        if node.layer is not None:
            node = replace(node, layer=replace(node.layer, input_range=union(inputs)))
        result.append(node)
    return tuple(result)


def _range_of(node: Node, inputs: Sequence[Range]) -> Range:
    """Return the range of an operator's result."""
    if node.scaled is not None and set(node.input_dtypes) != {"int8"}:
        return node.scaled.clip
    return node.op.range(inputs)
