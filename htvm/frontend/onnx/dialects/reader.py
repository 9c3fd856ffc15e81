"""`IntegerReader`: walks a graph whose tensors hold integers, with a table of handlers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields
from functools import partial

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from htvm.frontend.onnx.dialect import Network, Options
from htvm.frontend.onnx.dialects.values import Handler, IntegerNode, Live, NetworkWriter
from htvm.frontend.onnx.dialects.write import written
from htvm.frontend.onnx.graph import OnnxGraph
from htvm.frontend.onnx.schema import is_standard, read_whole, unknown_operator
from htvm.frontend.operators import Activation
from patterns.ops.integer.rescale import Cast

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
        default_type: str = "int8",
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
        live = written(value)
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


_NEAREST = {
    "Gelu": "iGELU",
    "HardSwish": "iHardswish",
    "LayerNormalization": "iLayerNorm",
    "Softmax": "iSoftmax",
    "QuantizeLinear": "RequantShift",
    "Relu": "RequantShift with signed = 0",
}
