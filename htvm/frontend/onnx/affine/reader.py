"""The walk over a graph with scales and zero points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.onnx.affine.sessions import Session
from htvm.frontend.onnx.affine.values import (
    Constant,
    Pending,
    Quantized,
    Real,
    Sums,
    Value,
    View,
)
from htvm.frontend.onnx.forms import Given
from htvm.frontend.onnx.network import Network
from htvm.frontend.onnx.reads import read_whole, unknown_operator
from htvm.frontend.onnx.windows import CHANNELS_LAST
from htvm.frontend.operators import Activation, Applied, Quantization
from patterns.ops.float32.dequantize import Dequantize
from patterns.ops.integer.rescale import Rescale

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode, OnnxTensor
    from htvm.frontend.products import Rounding
    from patterns.op import Op

__all__ = ["Handler", "Reader", "offset_of"]


def offset_of(dtype: str) -> int:
    """Return the offset by which the file's integers are shifted to int8."""
    return 128 if dtype == "uint8" else 0


class Reader:
    """Walks a graph once, and keeps the value that each tensor stands for.

    Args:
        graph: checked graph with ordered nodes.
        handlers: function for each operator that returns the value of a node, or one for each
            output.
        title: where the operators are, for messages.
        rounding: whose arithmetic to follow.  TFLite's has no reals, but maps with channels last.
    """

    def __init__(
        self,
        graph: OnnxGraph,
        handlers: Mapping[str, Handler],
        title: str = "between quantized tensors",
        rounding: Rounding = "onnx",
    ) -> None:
        self.graph = graph
        self.rounding = rounding
        self._title = title
        self._domains = ("", "com.microsoft" if rounding == "onnx" else CHANNELS_LAST)
        self._handlers = handlers
        self._values: dict[str, Value] = {}
        self.steps: dict[Activation, Quantization] = {}
        self.sources: dict[Activation, str] = {}
        self._wide: set[Activation] = set()
        self._count = 0
        self.session = Session(graph)
        self._realised: dict[Pending | tuple[Activation, Quantization], Activation] = {}

    # ------------------------------------------------------------------ the whole

    def read(self) -> Network:
        """Read all nodes.

        Raises:
            UnsupportedError: a node is not supported; the message names it.
            ModelError: the file contradicts itself.
        """
        inputs = [(item.name, self._enter(item)) for item in self.graph.inputs]
        for node in self.graph.nodes:
            handler = self._handlers.get(node.op)
            if handler is None or node.domain not in self._domains:
                raise unknown_operator(node, self._handlers, self._title, {})
            self._spend_constants(node)
            result = read_whole(node, self.graph.opset, partial(handler, self, node))
            values = result if isinstance(result, list) else [result]
            node.check_outputs(len(values))
            for name, value in zip(node.outputs, values, strict=False):
                self._values[name] = value
                if isinstance(value, Quantized | Real | Sums):
                    self.sources.setdefault(value.activation, name)
        outputs = [(item.name, self._leave(item)) for item in self.graph.outputs]
        return Network(tuple(inputs), tuple(outputs), self.steps, self.sources, self._wide)

    def _spend_constants(self, node: OnnxNode) -> None:
        """Count the constants of a node, from each of which its handler makes one of its own."""
        constants = self.graph.constants
        for name in node.inputs:
            value = self._values.get(name, constants.get(name))
            if isinstance(value, Constant):
                value = value.data
            if isinstance(value, np.ndarray):
                self.graph.budget.spend("folded_elements", value.size, node.where)

    def _enter(self, item: OnnxTensor) -> Activation:
        assert item.shape is not None
        activation = Activation(item.shape, item.name, item.dtype)
        where = f"input '{item.name}' of {self.graph.source}"
        if item.dtype == "float32":
            self._values[item.name] = Real(activation)
        elif item.dtype == "int8":
            self._values[item.name] = Quantized(activation, "int8")
        elif item.dtype == "uint8":
            inner = self._moved(activation, -128, "int8", where)
            self._values[item.name] = Quantized(inner, "uint8")
        elif item.dtype == "int16":
            self._values[item.name] = Sums(self._moved(activation, 0, "int32", where), "int16")
        elif item.dtype in ("int32", "int64"):
            activation = Activation(item.shape, item.name, "int32")
            self._values[item.name] = Sums(activation, item.dtype)
        else:
            raise UnsupportedError(
                f"an input of type {item.dtype}",
                where=where,
                hint="float32, int8 or uint8; int16, int32 or int64 for indices",
            )
        return activation

    def _leave(self, item: OnnxTensor) -> Activation:
        where = f"output '{item.name}' of {self.graph.source}"
        value = self._values.get(item.name)
        if value is None and item.name in self.graph.constants:
            raise UnsupportedError("an output that is constant", where=where, hint="leave it out")
        assert value is not None
        if isinstance(value, Quantized) and value.dtype == "uint8":
            outer = self._moved(value.activation, 128, "uint8", where)
            step = self.steps.get(value.activation)
            if step is not None:
                self.steps[outer] = Quantization(step.scale, step.zero_point + 128)
            return outer
        if isinstance(value, Sums) and value.dtype == "int64":
            self._wide.add(value.activation)
        if isinstance(value, Quantized | Sums):
            return value.activation
        return self.realised(value, where)

    def _moved(self, source: Activation, by: int, dtype: str, where: str) -> Activation:
        limits = np.iinfo(dtype)
        op = Rescale.moving(by, (int(limits.min), int(limits.max)), dtype)
        applied = Applied(self.position(), where, (source,), op, stem="offset")
        return Activation(source.shape, applied, dtype)

    # ------------------------------------------------------------------ values

    def position(self) -> tuple[int, int]:
        """Return the position of a new operator: they are written in the order of creation."""
        self._count += 1
        return (self._count, 0)

    def value(self, node: OnnxNode, index: int) -> Value:
        """Return the value that an input stands for.

        Raises:
            ModelError: it is omitted.
        """
        name = node.input(index)
        if not name:
            raise node.damaged(f"input {index} is missing")
        if name in self._values:
            return self._values[name]
        return Constant(self.graph.constants[name])

    def array(self, node: OnnxNode, index: int, role: str) -> Array:
        """Return the elements of an input that must be a plain constant."""
        value = self.value(node, index)
        if not isinstance(value, Constant) or value.scale is not None:
            raise node.unsupported(f"{role} computed at run time", "make it constant")
        return value.data

    def given(self, node: OnnxNode) -> Given:
        """Return the same as integers, for `htvm.frontend.onnx.forms`."""

        def integers(index: int, role: str) -> tuple[int, ...]:
            found = self.array(node, index, role).reshape(-1)
            self.graph.budget.spend_places(found.size, node.where)
            if not np.isfinite(found).all():
                raise node.damaged(f"{role} that are no numbers")
            return tuple(int(number) for number in found)

        return integers

    def optional(self, node: OnnxNode, index: int, role: str) -> Array | None:
        """Return the same, or ``None`` if the input is omitted."""
        return self.array(node, index, role) if node.input(index) else None

    def view(self, node: OnnxNode, index: int, role: str) -> View:
        """Return an input that must be a dequantized 8-bit tensor."""
        value = self.value(node, index)
        if not isinstance(value, View):
            raise node.unsupported(
                f"its {role} is no dequantized 8-bit tensor",
                "quantize and dequantize all tensors between operators",
            )
        return value

    # ------------------------------------------------------------------ writing

    def write(
        self,
        node: OnnxNode,
        op: Op,
        inputs: Sequence[Activation],
        shape: tuple[int, ...],
        *,
        stem: str = "",
        dtype: str = "int8",
        step: Quantization | None = None,
    ) -> Activation:
        """Return the result of an operator.

        Args:
            node: the node that it comes from.
            op: the operator.
            inputs: the tensors it reads.
            shape: shape of the result.
            stem: stem of its name; the operator's own if empty.
            dtype: type of the result.
            step: quantization of the result, if it has one.
        """
        applied = Applied(self.position(), node.where, tuple(inputs), op, stem)
        return self.result(applied, shape, step, dtype)

    def result(
        self,
        operator: Applied,
        shape: tuple[int, ...],
        step: Quantization | None = None,
        dtype: str = "int8",
    ) -> Activation:
        """Return the result of an operator, and record its quantization if it has one."""
        activation = Activation(shape, operator, dtype)
        if step is not None:
            self.steps[activation] = step
        return activation

    def realised(self, value: Value, where: str) -> Activation:
        """Return the float32 tensor that a value stands for.

        Raises:
            UnsupportedError: it has no float form here.
        """
        if self.rounding == "tflite":
            raise UnsupportedError(
                "a value that is not int8",
                where=where,
                hint="quantize and dequantize between all operators; inputs and outputs are int8",
            )
        if isinstance(value, Real):
            return value.activation
        if isinstance(value, View):
            key = (value.activation, value.step)
            if key not in self._realised:
                self._realised[key] = self._dequantized(value, where)
            return self._realised[key]
        if isinstance(value, Pending) and value.real is not None:
            if value not in self._realised:
                self._realised[value] = value.real(value.bound, value.bias)
            return self._realised[value]
        kind = "a result" if isinstance(value, Pending) else f"a {type(value).__name__.lower()}"
        raise UnsupportedError(
            f"{kind} that is not quantized is used as a real",
            where=where,
            hint="let a QuantizeLinear follow the operator",
        )

    def _dequantized(self, view: View, where: str) -> Activation:
        op = Dequantize(view.step.scale, view.step.zero_point)
        applied = Applied(self.position(), where, (view.activation,), op)
        return Activation(view.shape, applied, "float32")


Handler: TypeAlias = "Callable[[Reader, OnnxNode], Value | list[Value]]"
