"""The walk over a graph with scales and zero points, and a node as its handler sees it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

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
    integers_of,
)
from htvm.frontend.onnx.dialect import Network
from htvm.frontend.onnx.forms import ReadNode
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode, OnnxTensor
from htvm.frontend.onnx.schema import read_whole, unknown_operator
from htvm.frontend.onnx.windows import CHANNELS_LAST
from htvm.frontend.operators import Activation, Applied, Quantization
from patterns.op import Op
from patterns.ops.float32.combine import Function, RealCombine, RealReduce, Reduction
from patterns.ops.float32.elementary import RealExp
from patterns.ops.float32.quantize import Dequantize
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.reshape import Reshape

if TYPE_CHECKING:
    from htvm.frontend.scales import Rounding


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
        self._domains = ("", CHANNELS_LAST if rounding == "tflite" else "com.microsoft")
        self._handlers = handlers
        self.values: dict[str, Value] = {}
        self.steps: dict[Activation, Quantization] = {}
        self.sources: dict[Activation, str] = {}
        self.unsigned: dict[Activation, Activation] = {}
        """Moved int8 tensor -> the same moved as uint8, which has larger numbers by 128."""
        self._wide: set[Activation] = set()
        self._count = 0
        self.session = Session(graph, fuses=rounding == "onnx")
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
            own = {item.name: getattr(node, item.name) for item in fields(node)}
            read = partial(handler, NodeReader(**own, reader=self))
            result = read_whole(node, self.graph.opset, read)
            values = result if isinstance(result, list) else [result]
            node.check_outputs(len(values))
            for name, value in zip(node.outputs, values, strict=False):
                self.values[name] = value
                if isinstance(value, Quantized | Real | Sums):
                    self.sources.setdefault(value.activation, name)
        outputs = [(item.name, self._leave(item)) for item in self.graph.outputs]
        return Network(tuple(inputs), tuple(outputs), self.steps, self.sources, self._wide)

    def _spend_constants(self, node: OnnxNode) -> None:
        """Count the constants of a node, from each of which its handler makes one of its own."""
        constants = self.graph.constants
        for name in node.inputs:
            value = self.values.get(name, constants.get(name))
            if isinstance(value, Constant):
                value = value.data
            if isinstance(value, np.ndarray):
                self.graph.budget.spend("folded_elements", value.size, node.where)

    def _enter(self, item: OnnxTensor) -> Activation:
        assert item.shape is not None
        activation = Activation(item.shape, item.name, item.dtype)
        where = f"input '{item.name}' of {self.graph.source}"
        if item.dtype == "float32":
            self.values[item.name] = Real(activation)
        elif item.dtype == "int8":
            self.values[item.name] = Quantized(activation, "int8")
        elif item.dtype == "uint8":
            inner = self._moved(activation, -128, "int8", where)
            self.values[item.name] = Quantized(inner, "uint8")
        elif item.dtype == "int16" and self.rounding == "torch":
            self.values[item.name] = Quantized(activation, "int16")
        elif item.dtype == "int16":
            self.values[item.name] = Sums(self._moved(activation, 0, "int32", where), "int16")
        elif item.dtype in ("int32", "int64"):
            activation = Activation(item.shape, item.name, "int32")
            self.values[item.name] = Sums(activation, item.dtype)
        else:
            raise UnsupportedError(
                f"an input of type {item.dtype}",
                where=where,
                hint="float32, int8 or uint8; int16, int32 or int64 for indices",
            )
        return activation

    def _leave(self, item: OnnxTensor) -> Activation:
        where = f"output '{item.name}' of {self.graph.source}"
        value = self.values.get(item.name)
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
        if isinstance(value, View):
            return self._dequantized(value, where)
        return self.realised(value, where)

    def _moved(self, source: Activation, by: int, dtype: str, where: str) -> Activation:
        limits = np.iinfo(dtype)
        op = Rescale.moving(by, (int(limits.min), int(limits.max)), dtype)
        return self.apply(where, op, source, stem="offset")

    # ------------------------------------------------------------------ writing

    def position(self) -> tuple[int, int]:
        """Return the position of a new operator: they are written in the order of creation."""
        self._count += 1
        return (self._count, 0)

    def apply(self, where: str, op: Op, *inputs: Activation, stem: str = "") -> Activation:
        """Return the result of an operator; arguments as of `Applied`."""
        return Activation.of(Applied(self.position(), where, inputs, op, stem))

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
            return self._dequantized(value, where)
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

    def _dequantized(self, value: View, where: str) -> Activation:
        key = (value.activation, value.step)
        if key not in self._realised:
            op = Dequantize(value.step.scale, value.step.zero_point)
            self._realised[key] = self.apply(where, op, value.activation)
        return self._realised[key]


@dataclass(frozen=True, eq=False)
class NodeReader(ReadNode):
    """A node while it is read: the values of its inputs, and the operators that it becomes.

    Attributes:
        reader: the walk that it belongs to.
    """

    reader: Reader = field(kw_only=True)

    # ------------------------------------------------------------------ inputs

    def value(self, index: int) -> Value:
        """Return the value that an input stands for.

        Raises:
            ModelError: it is omitted.
        """
        name = self.input(index)
        if not name:
            raise self.damaged(f"input {index} is missing")
        if name in self.reader.values:
            return self.reader.values[name]
        return Constant(self.reader.graph.constants[name])

    def array(self, index: int, role: str) -> Array:
        """Return the elements of an input that must be a plain constant."""
        value = self.value(index)
        if not isinstance(value, Constant) or value.scale is not None:
            raise self.unsupported(f"{role} computed at run time", "make it constant")
        return value.data

    def given(self, index: int, role: str) -> tuple[int, ...]:
        """See `ReadNode.given`."""
        found = self.array(index, role).reshape(-1)
        self.reader.graph.budget.spend_places(found.size, self.where)
        if not np.isfinite(found).all():
            raise self.damaged(f"{role} that are no numbers")
        return tuple(int(number) for number in found)

    def optional(self, index: int, role: str) -> Array | None:
        """Return the same, or ``None`` if the input is omitted."""
        return self.array(index, role) if self.input(index) else None

    def in_integers(self, index: int) -> Value:
        """Return the value that an input stands for; dequantized int16 as its integers."""
        value = self.value(index)
        return integers_of(value) or value

    def view(self, index: int, role: str) -> View:
        """Return an input that must be a dequantized tensor of 8 bits, or of int16."""
        value = self.in_integers(index)
        if not isinstance(value, View):
            raise self.unsupported(
                f"its {role} is no dequantized 8-bit tensor",
                "quantize and dequantize all tensors between operators",
            )
        return value

    def operand(self, index: int, *, infinite: bool = False) -> Activation | Array:
        """Return an input as float32: a tensor, or a constant.

        Args:
            index: number of the input.
            infinite: whether a constant may hold infinities, as masks for a softmax do.

        Raises:
            ModelError: a constant holds integers without a scale, which no runtime takes for reals.
            UnsupportedError: it is not finite, or no number.
        """
        value = self.value(index)
        if isinstance(value, Constant):
            if value.scale is None and value.data.dtype.kind != "f":
                raise self.damaged(
                    f"constant input {index} of {value.data.dtype} beside reals",
                    "store it as float32",
                )
            if not infinite and not np.isfinite(value.real).all():
                raise self.unsupported(f"constant input {index} is not finite everywhere")
            if np.isnan(value.real).any():
                raise self.unsupported(f"constant input {index} holds NaN", "a number")
            return value.real.astype("float32")
        return self.realised(value)

    def tensor(self, index: int = 0) -> Activation:
        """Return an input that must be computed, as float32."""
        found = self.operand(index)
        if not isinstance(found, Activation):
            raise self.unsupported(f"input {index} is constant", "fold constants when exporting")
        return found

    def constant(self, index: int, role: str) -> Array:
        """Return an input that must be constant, as float32."""
        found = self.operand(index)
        if isinstance(found, Activation):
            raise self.unsupported(f"its {role} is computed at run time", "make it constant")
        return found

    def vector(self, index: int, size: int, role: str) -> Array:
        """Return the same with one number for each channel, float32 ``[size]``."""
        values = self.constant(index, role).reshape(-1)
        if values.size != size:
            raise self.damaged(f"{values.size} values of {role} for {size} channels")
        return values

    def realised(self, value: Value) -> Activation:
        """Return the float32 tensor that a value stands for; errors as of `Reader.realised`."""
        return self.reader.realised(value, self.where)

    # ------------------------------------------------------------------ operators

    def write(
        self, op: Op, *inputs: Activation, stem: str = "", step: Quantization | None = None
    ) -> Activation:
        """Return the result of an operator.

        Args:
            op: the operator.
            inputs: the tensors it reads.
            stem: stem of its name; the operator's own if empty.
            step: quantization of the result, if it has one.
        """
        return self.result(Applied(self.reader.position(), self.where, inputs, op, stem), step)

    def result(self, operator: Applied, step: Quantization | None = None) -> Activation:
        """Return the result of an operator, and record its quantization if it has one."""
        made = Activation.of(operator)
        if step is not None:
            self.reader.steps[made] = step
        return made

    def reshape(
        self, x: Activation, shape: tuple[int, ...], step: Quantization | None = None
    ) -> Activation:
        """Return the same elements in another shape."""
        return x if x.shape == shape else self.write(Reshape(shape), x, step=step)

    def combine(
        self, function: Function, a: Activation | Array | float, b: Activation | Array | float
    ) -> Activation:
        """Return a function of two float tensors, at least one of which is computed."""
        tensors, (first, second) = split((a, b))
        return self.write(RealCombine(function, a=first, b=second), *tensors)

    def exp(self, x: Activation) -> Activation:
        """Return the exponential of every element."""
        return self.write(RealExp(), x)

    def bounded(self, x: Activation, low: float, high: float) -> Activation:
        """Return every element within bounds; infinite ones do not bound."""
        if low > -math.inf:
            x = self.combine("maximum", x, low)
        return self.combine("minimum", x, high) if high < math.inf else x

    def scaled(self, x: Activation, factor: float) -> Activation:
        """Return every element times a number."""
        return x if factor == 1 else self.combine("multiply", x, factor)

    def reduce(self, function: Reduction, x: Activation, axes: Sequence[int]) -> Activation:
        """Return the sum or the maximum over some axes, which keep size 1."""
        return self.write(RealReduce(function, tuple(axes)), x)

    def mean(self, x: Activation, axes: Sequence[int]) -> Activation:
        """Return the mean over some axes, which keep size 1."""
        count = math.prod(x.shape[axis] for axis in axes)
        return self.combine("divide", self.reduce("add", x, axes), float(count))


Handler: TypeAlias = Callable[[NodeReader], "Value | list[Value]"]


def split(operands: Sequence[Activation | Array | float]) -> tuple[list[Activation], list[Any]]:
    """Return the tensors among the operands of a function of reals, and the constants.

    The constants are float32, one entry per operand, ``None`` if it is a tensor.
    """
    tensors = [item for item in operands if isinstance(item, Activation)]
    constants = [
        None if isinstance(item, Activation) else np.asarray(item, "float32", order="C")
        for item in operands
    ]
    return tensors, constants
