"""`IntegerReader` walks a graph whose tensors hold integers; what tells that they do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from functools import partial

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from htvm.frontend.onnx.dialect import DialectReader, Network, Options
from htvm.frontend.onnx.dialects.values import Handler, IntegerNode, Live, NetworkWriter
from htvm.frontend.onnx.dialects.write import written_value
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode
from htvm.frontend.onnx.schema import is_standard, read_whole, unknown_operator
from htvm.frontend.operators import Activation
from patterns.ops.integer.rescale import Cast

_LAYERS = ("Conv", "Gemm", "MatMul", "RequantShift")


def has_only(graph: OnnxGraph, operators: Collection[str]) -> bool:
    """Whether all nodes are among these standard operators."""
    return all(node.op in operators and not node.domain for node in graph.nodes)


def holds_integers(graph: OnnxGraph, options: Options) -> bool:
    """Whether tensors declared as reals hold integers, judging by the file and the user's options.

    No constant has a fraction, except between a division and its floor, and a layer's weights are
    integers, or all inputs are known to be.
    """
    weights, rounding = 0, {node for chain in _floored_divisions(graph) for node in chain[2:]}
    integers: set[str] = set()  # constants that many nodes may name
    for node in graph.nodes:
        if node in rounding:
            continue
        for name in node.inputs:
            value = graph.constants.get(name)
            if value is None or value.dtype.kind not in "iuf":
                continue
            if name not in integers and value.dtype.kind == "f" and (value != np.rint(value)).any():
                return False
            integers.add(name)
            weights += node.op in _LAYERS
    kinds = [
        options.input_types.get(item.name, item.dtype if item.dtype != "float32" else "")
        for item in graph.inputs
    ]
    return weights > 0 or all(kinds)


def _makers(graph: OnnxGraph) -> dict[str, OnnxNode]:
    return {name: node for node in graph.nodes for name in node.outputs}


def _floored_divisions(graph: OnnxGraph) -> list[tuple[OnnxNode, ...]]:
    """Return each floor after a division, the division, and what is added between, if anything."""
    makers = _makers(graph)
    divisions = []
    for node in graph.nodes:
        chain = [node, *_makers_of(makers, node)]
        if node.op == "Floor" and chain[-1].op == "Add":
            constants = [name in graph.constants for name in chain[-1].inputs]
            chain[1:1] = _makers_of(makers, chain[-1]) if any(constants) else []
        if node.op == "Floor" and len(chain) > 1 and chain[1].op == "Div":
            divisions.append(tuple(chain))
    return divisions


def _makers_of(makers: Mapping[str, OnnxNode], node: OnnxNode) -> list[OnnxNode]:
    return [makers[name] for name in node.inputs if name in makers]


def floor_chains(graph: OnnxGraph) -> tuple[OnnxNode, ...]:
    """Return the floors after a division of a value that was multiplied or added to."""
    makers, chains = _makers(graph), []
    for floor, division, *_ in _floored_divisions(graph):
        before = makers.get(division.input(0))
        if before is not None and before.op in ("Mul", "Add"):
            operands = [graph.constants.get(name) for name in before.inputs]
            scaled = before.op == "Mul" or any(
                getattr(makers.get(name), "op", "") == "Mul" for name in before.inputs
            )
            if scaled and any(operand is not None for operand in operands):
                chains.append(floor)
    return tuple(chains)


def bare_chains(graph: OnnxGraph) -> tuple[OnnxNode, ...]:
    """Return the floors after a division of plain sums of products, possibly with a bias."""
    scaled = floor_chains(graph)
    return tuple(floor for floor, *_ in _floored_divisions(graph) if floor not in scaled)


_log = logging.getLogger(__name__)


class IntegerReader:
    """Reads one graph.

    Args:
        graph: the file.
        options: the user's information about its inputs.
        handlers: handlers by operator.
        title: name of the dialect, for messages.
        default_type: type of inputs that are declared as reals, if nothing else tells it.
    """

    def __init__(
        self,
        graph: OnnxGraph,
        options: Options,
        handlers: Mapping[str, Handler],
        title: str,
        default_type: str,
    ) -> None:
        self.graph = graph
        self._options = options
        self._handlers = handlers
        self._title = title
        self._default_type = default_type
        self._network = NetworkWriter(graph)

    def read(self) -> Network:
        """Return the network.

        Raises:
            UnsupportedError: a node is not supported; the message names it.
            ModelError: the file contradicts itself.
        """
        inputs, network = [], self._network
        for item in self.graph.inputs:
            assert item.shape is not None
            dtype = self._input_type(item.name, item.dtype)
            activation = Activation(item.shape, item.name, dtype)
            inputs.append((item.name, activation))
            network.values[item.name] = Live.of(activation)
        for rank, node in enumerate(self.graph.nodes):
            handler = self._handlers.get(node.op)
            # What the standard lacks is the flows' own, under whatever domain they export it.
            foreign = node.domain not in ("", "PACTOps") and is_standard(node.op)
            if handler is None or foreign:
                raise unknown_operator(node, self._handlers, f"in {self._title}", _NEAREST)
            for index in range(len(node.inputs)):
                constant = network.values.get(node.inputs[index])
                if isinstance(constant, np.ndarray):
                    self.graph.budget.spend("folded_elements", constant.size, node.where)
            own = {item.name: getattr(node, item.name) for item in fields(node)}
            read = partial(handler, IntegerNode(**own, network=network, rank=rank))
            value = read_whole(node, self.graph.opset, read)
            node.check_outputs(1)
            if isinstance(value, Live) and not isinstance(value.activation.origin, str):
                network.sources.setdefault(value.activation, node.outputs[0])
            network.values[node.outputs[0]] = value
        outputs = tuple(self._output(item.name) for item in self.graph.outputs)
        return Network(tuple(inputs), outputs, sources=network.sources)

    def _input_type(self, name: str, declared: str) -> str:
        if declared in ("int8", "uint8", "int16", "int32"):
            return declared
        if declared != "float32":
            raise UnsupportedError(
                f"an input of type {declared}",
                where=f"input '{name}' of {self.graph.source}",
                hint="int8, uint8, int16 or int32, or FLOAT that holds integers",
            )
        if name not in self._options.input_types:
            _log.warning(
                "%s: input '%s' is taken to hold %s; say otherwise with input_types",
                self.graph.source, name, self._default_type,
            )  # fmt: skip
        return self._options.input_types.get(name, self._default_type)

    def _output(self, name: str) -> tuple[str, Activation]:
        declared = {item.name: item for item in self.graph.outputs}[name]
        value = self._network.values[name]
        if isinstance(value, np.ndarray):
            raise UnsupportedError(
                "an output that is constant", where=f"output '{name}' of {self.graph.source}"
            )
        live = written_value(value)
        if declared.shape is not None and declared.shape != live.shape:
            raise ModelError(
                f"its shape is {list(live.shape)}, declared as {list(declared.shape)}",
                where=f"output '{name}' of {self.graph.source}",
            )
        dtype = live.activation.dtype
        if declared.dtype in ("int16", "int32") and dtype != declared.dtype:
            origin = live.activation.origin
            where = origin if isinstance(origin, str) else origin.where
            rank, cast = len(self.graph.nodes), Cast(declared.dtype)
            return name, self._network.apply(rank, where, cast, (live.activation,))
        return name, live.activation


def integer_reader(
    handlers: Mapping[str, Handler],
    marks: Callable[[OnnxGraph, Options], tuple[OnnxNode, ...]],
    title: str,
    default_type: str = "int8",
) -> DialectReader:
    """Return the reader of a dialect; arguments as of `DialectReader` and `IntegerReader`."""

    def read(graph: OnnxGraph, options: Options) -> Network:
        return IntegerReader(graph, options, handlers, title, default_type).read()

    return DialectReader(handlers, marks, read)


_NEAREST = {
    "Gelu": "iGELU",
    "HardSwish": "iHardswish",
    "LayerNormalization": "iLayerNorm",
    "Softmax": "iSoftmax",
    "QuantizeLinear": "RequantShift",
    "Relu": "RequantShift with signed = 0",
}
