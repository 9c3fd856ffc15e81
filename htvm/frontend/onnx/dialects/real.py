"""Standard operators on reals, computed in float32 as the file says; constants are folded.

For networks that quantize and dequantize with plain arithmetic.  Everything runs on the host, in
software floating point.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.dialects import real_maps
from htvm.frontend.onnx.dialects.evidence import has_only, holds_integers
from htvm.frontend.onnx.dialects.reader import unknown_operator
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode
from htvm.frontend.onnx.network import Network, Options
from htvm.frontend.onnx.reads import read_whole
from htvm.frontend.operators import Activation, Applied
from htvm.frontend.registration import registered
from patterns.ops.float32.combine import Function, RealCombine
from patterns.ops.float32.matmul import RealMatmul
from patterns.ops.float32.round import RealRound
from patterns.ops.moves.reshape import Reshape
from patterns.ops.moves.transpose import Transpose

if TYPE_CHECKING:
    from patterns.op import Op

__all__ = ["HANDLERS", "marks", "read"]

_log = logging.getLogger(__name__)

Value: TypeAlias = Activation | Array
_REAL = 1  # ONNX's number of FLOAT


class _Reader:
    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self._values: dict[str, Value] = dict(graph.constants)
        self._rank = 0
        self._parts = 0

    def read(self) -> Network:
        inputs = []
        for item in self.graph.inputs:
            if item.dtype != "float32" or item.shape is None:
                raise UnsupportedError(
                    f"an input of type {item.dtype}",
                    where=f"input '{item.name}' of {self.graph.source}",
                    hint="networks of reals take FLOAT",
                )
            activation = Activation(item.shape, item.name, "float32")
            inputs.append((item.name, activation))
            self._values[item.name] = activation
        for rank, node in enumerate(self.graph.nodes):
            self._rank, self._parts = rank, 0
            handler = HANDLERS.get(node.op)
            if handler is None or node.domain:
                raise unknown_operator(node, HANDLERS, "networks of reals")
            value = read_whole(node, self.graph.opset, partial(handler, self, node))
            node.check_outputs(1)
            self._values[node.outputs[0]] = value
        outputs = []
        for item in self.graph.outputs:
            value = self._values[item.name]
            where = f"output '{item.name}' of {self.graph.source}"
            if not isinstance(value, Activation):
                raise UnsupportedError("an output that is constant", where=where)
            if item.shape is not None and item.shape != value.shape:
                raise ModelError(
                    f"its shape is {list(value.shape)}, declared as {list(item.shape)}", where=where
                )
            outputs.append((item.name, value))
        return Network(tuple(inputs), tuple(outputs))

    # ------------------------------------------------------------------ for handlers

    def value(self, node: OnnxNode, index: int) -> Value:
        name = node.input(index)
        if not name:
            raise node.damaged(f"input {index} is missing")
        return self._values[name]

    def constant(self, node: OnnxNode, index: int) -> Array:
        value = self.value(node, index)
        if isinstance(value, Activation):
            raise node.unsupported(f"input {index} is computed", "it must be constant")
        return value

    def combine(self, node: OnnxNode, function: Function, a: Value, b: Value) -> Value:
        try:
            shape = np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            raise node.damaged(f"operands of shapes {a.shape} and {b.shape}") from None
        first, second = (_known(node, value) for value in (a, b))
        op = RealCombine(function, a=first, b=second)
        return self.write(node, op, (a, b), shape, stem=op.kind)

    def matmul(self, node: OnnxNode, a: Value, b: Value, shape: tuple[int, ...]) -> Activation:
        first, second = (_known(node, value) for value in (a, b))
        return self.write(node, RealMatmul(a=first, b=second), (a, b), shape)

    def write(
        self,
        node: OnnxNode,
        op: Op,
        values: Sequence[Value],
        shape: tuple[int, ...],
        *,
        stem: str = "",
    ) -> Activation:
        """Return the result of an operator, applied to those values that are computed."""
        self._parts += 1
        position = (self._rank, self._parts)
        inputs = tuple(value for value in values if isinstance(value, Activation))
        return Activation(shape, Applied(position, node.where, inputs, op, stem), "float32")


_Handler: TypeAlias = Callable[[_Reader, OnnxNode], Value]


def _known(node: OnnxNode, value: Value) -> Array | None:
    """Return the elements of a constant operand, with at least one axis."""
    if isinstance(value, Activation):
        return None
    if not np.isfinite(value).all():
        raise node.unsupported("a constant that is not finite")
    array = value.astype(np.float32)
    return array.reshape(1) if array.ndim == 0 else array


def _binary(function: Function, fold: Callable[[Array, Array], Array]) -> _Handler:
    def handle(reader: _Reader, node: OnnxNode) -> Value:
        result = reader.value(node, 0)
        for index in range(1, len(node.inputs)):
            other = reader.value(node, index)
            if isinstance(result, Activation) or isinstance(other, Activation):
                result = reader.combine(node, function, result, other)
                continue
            with np.errstate(all="ignore"):
                result = fold(result, other).astype(np.result_type(result, other))
        return result

    return handle


def _round(reader: _Reader, node: OnnxNode) -> Value:
    value = reader.value(node, 0)
    if not isinstance(value, Activation):
        rounded: Array = np.rint(value)
        return rounded
    return reader.write(node, RealRound(), (value,), value.shape)


def _clip(reader: _Reader, node: OnnxNode) -> Value:
    value = reader.value(node, 0)
    bounds = {
        key: reader.constant(node, index)
        if node.input(index)
        else np.asarray(node.number(key), np.float32)
        for index, key in ((1, "min"), (2, "max"))
        if node.input(index) or key in node.attributes
    }
    if not isinstance(value, Activation):
        return np.clip(value, bounds.get("min"), bounds.get("max"))
    result: Value = value
    if "min" in bounds:
        result = reader.combine(node, "maximum", result, bounds["min"])
    if "max" in bounds:
        result = reader.combine(node, "minimum", result, bounds["max"])
    return result


def _relu(reader: _Reader, node: OnnxNode) -> Value:
    value = reader.value(node, 0)
    return reader.combine(node, "maximum", value, np.zeros(1, np.float32))


def _cast(reader: _Reader, node: OnnxNode) -> Value:
    value, to = reader.value(node, 0), node.integer("to")
    if to != _REAL:
        raise node.unsupported(f"a cast to type {to}", "networks of reals keep FLOAT")
    return value if isinstance(value, Activation) else value.astype(np.float32)


def _identity(reader: _Reader, node: OnnxNode) -> Value:
    return reader.value(node, 0)


def _transpose(reader: _Reader, node: OnnxNode) -> Value:
    value = reader.value(node, 0)
    perm, _ = forms.permuted(node, value.shape)
    if not isinstance(value, Activation):
        return value.transpose(perm)
    shape = tuple(value.shape[axis] for axis in perm)
    return reader.write(node, Transpose(perm), (value,), shape)


def _matmul(reader: _Reader, node: OnnxNode) -> Value:
    a, b = reader.value(node, 0), reader.value(node, 1)
    if min(len(a.shape), len(b.shape)) < 2 or a.shape[-1] != b.shape[-2]:
        raise node.damaged(f"a product of shapes {a.shape} and {b.shape}")
    if not isinstance(a, Activation) and not isinstance(b, Activation):
        product: Array = a @ b
        return product
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    return reader.matmul(node, a, b, shape)


def _reshape(reader: _Reader, node: OnnxNode) -> Value:
    value = reader.value(node, 0)
    shape = forms.reshaped(
        node,
        value.shape,
        lambda index, _: tuple(int(n) for n in reader.constant(node, index).reshape(-1)),
    )
    if not isinstance(value, Activation):
        return value.reshape(shape)
    return reader.write(node, Reshape(shape), (value,), shape)


_HANDLERS: Mapping[str, _Handler] = {
    **real_maps.HANDLERS,
    "Add": _binary("add", np.add),
    "Cast": _cast,
    "Clip": _clip,
    "Div": _binary("divide", np.divide),
    "Identity": _identity,
    "MatMul": _matmul,
    "Max": _binary("maximum", np.maximum),
    "Min": _binary("minimum", np.minimum),
    "Mul": _binary("multiply", np.multiply),
    "Relu": _relu,
    "Reshape": _reshape,
    "Round": _round,
    "Sub": _binary("subtract", np.subtract),
    "Transpose": _transpose,
}

HANDLERS = registered("ONNX, reals", _HANDLERS, Value)


def marks(graph: OnnxGraph, options: Options) -> tuple[OnnxNode, ...]:
    """Return the first node if all are standard operators and nothing says they hold integers."""
    plain = has_only(graph, HANDLERS) and not holds_integers(graph, options)
    return graph.nodes[:1] if plain else ()


def read(graph: OnnxGraph, options: Options) -> Network:
    """Return the network; errors as in `htvm.frontend.onnx.dialect.Reader`."""
    del options
    network = _Reader(graph).read()
    _log.warning(
        "%s computes in float32, which only the host can; htvm.quantize makes int8 models of float "
        "networks", graph.source,
    )  # fmt: skip
    return network
