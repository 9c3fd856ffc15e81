"""`IntegerReader`: walks a graph whose tensors hold integers, with a table of handlers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.onnx.dialects.analog import write_converted
from htvm.frontend.onnx.dialects.values import Live, PendingSum, Products, Scaled, Value, limits_of
from htvm.frontend.onnx.dialects.write import write_products, write_sum
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode
from htvm.frontend.onnx.network import Network, Options
from htvm.frontend.onnx.reads import read_whole, unknown_operator
from htvm.frontend.onnx.schema import is_standard
from htvm.frontend.operators import Activation, Applied
from patterns.op import TensorType
from patterns.ops.integer.cast import Cast
from patterns.ops.integer.combine import Combine, Function
from patterns.ops.moves.reshape import Reshape

if TYPE_CHECKING:
    from patterns.op import Op

__all__ = ["Handler", "IntegerReader"]

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
        self._values: dict[str, Value | Array] = dict(graph.constants)
        self._ranks = {node: rank for rank, node in enumerate(graph.nodes)}
        self._parts = 0
        self._sources: dict[Activation, str] = {}

    def read(self) -> Network:
        """Return the network.

        Raises:
            UnsupportedError: a node is not supported; the message names it.
            ModelError: the file contradicts itself.
        """
        inputs = []
        for item in self.graph.inputs:
            assert item.shape is not None
            dtype = self._input_type(item.name, item.dtype)
            activation = Activation(item.shape, item.name, dtype)
            inputs.append((item.name, activation))
            self._values[item.name] = self._live(activation)
        for node in self.graph.nodes:
            handler = self._handlers.get(node.op)
            # What the standard lacks is the flows' own, under whatever domain they export it.
            foreign = node.domain not in ("", "PACTOps") and is_standard(node.op)
            if handler is None or foreign:
                raise unknown_operator(node, self._handlers, f"in {self._title}", _NEAREST)
            for index in range(len(node.inputs)):
                constant = self._values.get(node.inputs[index])
                if isinstance(constant, np.ndarray):
                    self.graph.budget.spend("folded_elements", constant.size, node.where)
            value = read_whole(node, self.graph.opset, partial(handler, self, node))
            node.check_outputs(1)
            if isinstance(value, Live) and not isinstance(value.activation.origin, str):
                self._sources.setdefault(value.activation, node.outputs[0])
            self._values[node.outputs[0]] = value
        outputs = tuple(self._output(item.name) for item in self.graph.outputs)
        return Network(tuple(inputs), outputs, sources=self._sources)

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
        value = self._values[name]
        if isinstance(value, np.ndarray):
            raise UnsupportedError(
                "an output that is constant", where=f"output '{name}' of {self.graph.source}"
            )
        live = self.live_value(value)
        if declared.shape is not None and declared.shape != live.shape:
            raise ModelError(
                f"its shape is {list(live.shape)}, declared as {list(declared.shape)}",
                where=f"output '{name}' of {self.graph.source}",
            )
        dtype = live.activation.dtype
        if declared.dtype in ("int16", "int32") and dtype != declared.dtype:
            origin = live.activation.origin
            where = origin if isinstance(origin, str) else origin.where
            self._parts += 1
            position, inputs = (len(self._ranks), self._parts), (live.activation,)
            operator = Applied(position, where, inputs, Cast(declared.dtype))
            return name, Activation(live.shape, operator, declared.dtype)
        return name, live.activation

    # ------------------------------------------------------------------ for handlers

    def value(self, node: OnnxNode, index: int) -> Value:
        """Return an input that is computed.

        Raises:
            UnsupportedError: it is constant, or omitted.
        """
        value = self._values.get(node.input(index))
        if value is None or isinstance(value, np.ndarray):
            raise node.unsupported(
                f"input {index} is {'left out' if value is None else 'constant'}"
            )
        return value

    def live(self, node: OnnxNode, index: int) -> Live:
        """Return the same as a written tensor."""
        return self.live_value(self.value(node, index))

    def constant(self, node: OnnxNode, index: int) -> Array | None:
        """Return a known input, or ``None`` if it is computed or omitted."""
        value = self._values.get(node.input(index))
        return value if isinstance(value, np.ndarray) else None

    def integers(self, node: OnnxNode, index: int) -> Array:
        """Return a known input that holds integers, int64.

        Raises:
            UnsupportedError: it is computed, or does not hold integers.
        """
        value = self.constant(node, index)
        if value is None:
            raise node.unsupported(f"input {index} is not constant", "export it as an initialiser")
        if not value.size:
            raise node.damaged(f"input {index} is empty")
        return whole(node, value, f"input {index}")

    def live_value(self, value: Value) -> Live:
        """Write a pending value: products and sums without requantization, int32."""
        if isinstance(value, Live):
            return value
        if isinstance(value, Scaled):
            raise value.node.unsupported(
                "a scaled tensor that is not brought back to 8 bits",
                "end the chain with Div, Floor and Clip",
            )
        if isinstance(value, Products):
            live = write_products(self, value)
        elif isinstance(value, PendingSum):
            live = write_sum(self, value)
        else:
            live = write_converted(self, value)
        if isinstance(value, Products | PendingSum):
            self._sources.setdefault(live.activation, value.node.outputs[0])
        return live

    def apply(
        self,
        node: OnnxNode,
        op: Op,
        *inputs: Live,
        result: TensorType | None = None,
        bound: int | None = None,
        stem: str = "",
    ) -> Live:
        """Return the result of an operator applied to tensors; a node may have several.

        Args:
            node: the node that it is read from.
            op: the operator.
            inputs: the tensors it reads.
            result: type of its result; by default the operator's own.
            bound: largest magnitude of its results, if smaller than their type allows.
            stem: stem of its name, if not the usual one.

        Raises:
            IntegerFormError: the tensors do not fit the operator.
            UnsupportedError: the result could not be computed exactly.
        """
        read = tuple(item.activation for item in inputs)
        if result is None:
            result = op.result_of([TensorType(item.shape, item.dtype) for item in read])
        operator = Applied(self._position(node), node.where, read, op, stem)
        return self._live(Activation(result.shape, operator, result.dtype), bound)

    def combine(self, node: OnnxNode, function: Function, a: Live, b: Live | Array) -> Live:
        """Return the int32 sum, difference or product of two tensors, or of one and constants.

        Raises:
            UnsupportedError: their shapes do not fit together, or constants are too large.
        """
        try:
            np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            raise node.damaged(f"operands of shapes {list(a.shape)} and {list(b.shape)}") from None
        size = b.bound if isinstance(b, Live) else int(np.abs(b).max(initial=0))
        bound = min(a.bound * size if function == "multiply" else a.bound + size, 2**31)
        if isinstance(b, Live):
            return self.apply(node, Combine(function), a, b, bound=bound)
        return self.apply(node, Combine(function, np.asarray(b)), a, bound=bound)

    def reshape(self, node: OnnxNode, source: Live, shape: tuple[int, ...]) -> Live:
        """Return the same elements in another shape, reshaped once, or not at all if possible."""
        origin = source.activation.origin
        if isinstance(origin, Applied) and isinstance(origin.op, Reshape):
            source = Live(origin.inputs[0], source.bound)
        if source.shape == shape:
            return source
        return self.apply(node, Reshape(shape), source, bound=source.bound)

    def _position(self, node: OnnxNode) -> tuple[int, int]:
        # The operators of a node follow it in the order in which they are added.
        self._parts += 1
        return self._ranks[node], self._parts

    def _live(self, activation: Activation, bound: int | None = None) -> Live:
        low, high = limits_of(activation.dtype)
        return Live(activation, max(-low, high) if bound is None else bound)


Handler: TypeAlias = Callable[[IntegerReader, OnnxNode], "Value | Array"]


def whole(node: OnnxNode, value: Array, what: str) -> Array:
    """Return an array of integers as int64.

    Raises:
        UnsupportedError: it holds anything else.
    """
    wide = np.rint(value).astype(np.int64) if np.isfinite(value).all() else None
    if wide is None or (wide != value).any():
        raise node.unsupported(
            f"{what} holds numbers that are no integers",
            "this dialect keeps integers in its tensors; force another one with dialect=...",
        )
    return wide


_NEAREST = {
    "Gelu": "iGELU",
    "HardSwish": "iHardswish",
    "LayerNormalization": "iLayerNorm",
    "Softmax": "iSoftmax",
    "QuantizeLinear": "RequantShift",
    "Relu": "RequantShift with signed = 0",
}
