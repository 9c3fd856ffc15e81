"""The operators of a quantized network as a `Graph`, in the source's order, and their scheme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from byoc_dory.layers import (
    AnalogRequant,
    MulShift,
    OnnxRequant,
    OnnxSum,
    Shift,
    TfliteRequant,
    TorchRequant,
)
from htvm.frontend.check import check_graph
from htvm.frontend.limits import check_sizes
from htvm.frontend.operators import Activation, Applied
from patterns.names import NameCounter
from patterns.reading.building import GraphBuilder
from patterns.reading.graph import Graph

if TYPE_CHECKING:
    from patterns.reading.node import Node


def integer_graph(
    inputs: Sequence[tuple[str, Activation]],
    outputs: Sequence[Activation],
    labels: Mapping[Activation, str] | None = None,
) -> tuple[Graph, dict[Activation, str]]:
    """Return the operators that the outputs need, and the name of each tensor.

    Args:
        inputs: name and tensor of each input.
        outputs: tensors that the network returns.
        labels: names for the operators that compute some of the tensors; others are numbered, as
            those are that have the name of another one.

    Raises:
        UnsupportedError: a constant, an accumulator or a number of elements does not fit int32, a
            bound is exceeded (`htvm.frontend.limits`), or an operator could not be computed
            exactly.
        IntegerFormError: an operator does not fit its tensors.
        ModelError: a tensor is empty.
    """
    operators = _in_order(outputs)
    check_sizes(operators)
    names = {activation: name for name, activation in inputs}
    counter = NameCounter(tuple(names.values()))
    builder = GraphBuilder((name, activation.type) for name, activation in inputs)
    for operator, activation in operators:
        label = (labels or {}).get(activation)
        name = label if label is not None and counter.take(label) else ""
        name = name or counter.fresh(label or operator.stem or operator.op.stem)
        inputs_of = [names[each] for each in operator.inputs]
        names[activation] = builder.apply(operator.op, inputs_of, name, operator.result)
    graph = builder.graph([names[activation] for activation in outputs])
    check_graph(graph)
    return graph, names


def _in_order(outputs: Sequence[Activation]) -> list[tuple[Applied, Activation]]:
    """Return each operator that the outputs need, with its result, by position."""
    found: dict[Activation, Applied] = {}
    waiting = list(outputs)
    while waiting:
        activation = waiting.pop()
        if activation in found or isinstance(activation.origin, str):
            continue
        found[activation] = activation.origin
        waiting.extend(activation.origin.inputs)
    return [(found[item], item) for item in sorted(found, key=lambda item: found[item].position)]


def scheme_of(nodes: Sequence[Node]) -> str:
    """The requantization that the layers use: one of the schemes of `Model`, or ``"mixed"``."""
    names = {
        Shift: "shift",
        MulShift: "mul_shift",
        TfliteRequant: "tflite",
        OnnxRequant: "onnx",
        OnnxSum: "onnx",
        TorchRequant: "torch",
        AnalogRequant: "ternary",
    }
    found = {names[type(node.scaled.requant)] for node in nodes if node.scaled is not None}
    if len(found) > 1:
        return "mixed"
    return found.pop() if found else "tflite"
