"""The walk over a quantize/dequantize module, and the values that its variables stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm import relax
from tvm.ir import GenericConst

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.operators import Activation, Applied, Pads, Pair, Quantization
from patterns.op import Scale
from patterns.ops.convert import Convert
from patterns.primitive import shape_of
from patterns.reading.read import bindings_of, dtype_of, main_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Call, Expr, Var

__all__ = [
    "INT8",
    "Constant",
    "Handler",
    "Network",
    "Pending",
    "Reader",
    "Real",
    "Value",
    "Wide",
    "pads",
    "pair",
]

INT8 = (-128, 127)


@dataclass(frozen=True, eq=False)
class Network:
    """The contents of a QDQ module.

    Attributes:
        inputs: name and tensor of each parameter.
        outputs: tensors returned.
        steps: quantization of the tensors, if the module has it.
    """

    inputs: tuple[tuple[str, Activation], ...]
    outputs: tuple[Activation, ...]
    steps: Mapping[Activation, Quantization]


# ------------------------------------------------------------------------ what a variable can be


@dataclass(frozen=True, eq=False)
class Real:
    """A dequantized activation."""

    activation: Activation
    step: Quantization


@dataclass(frozen=True, eq=False)
class Constant:
    """A constant; ``scale`` (with the same shape) is given if it was dequantized from integers."""

    data: Array
    scale: Array | None = None


@dataclass(frozen=True, eq=False)
class Pending:
    """A float result that is yet to be quantized.

    ``finish`` makes the operator, given the output's quantization, the clip and the bias.
    """

    finish: Callable[[Quantization, Pair, Constant | None], Applied]
    shape: tuple[int, ...]
    takes_bias: bool
    bias: Constant | None = None
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True, eq=False)
class Wide:
    """An int8 activation cast to int32, or its average."""

    activation: Activation
    pool: Applied | None = None


Value: TypeAlias = Activation | Real | Constant | Pending | Wide


class Reader:
    """Walks ``main`` once, and keeps the value that each variable stands for.

    Args:
        module: the QDQ module.
        handlers: function for each operator that returns the value of a call.
    """

    def __init__(self, module: IRModule, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._main = main_of(module)
        self._values: dict[Var, Value] = {}
        self.steps: dict[Activation, Quantization] = {}
        self._index = 0
        self.where = ""

    def read(self) -> Network:
        """Read all bindings."""
        inputs = []
        for param in self._main.params:
            self.where = f"input '{param.name}'"
            if dtype_of(param) != "int8":
                raise self.unsupported(
                    f"its type is {param.ty}", "give the model int8 inputs and outputs"
                )
            activation = Activation(shape_of(param), str(param.name))
            self._values[param] = activation
            inputs.append((str(param.name), activation))
        for index, (var, value) in enumerate(bindings_of(self._main)):
            self._index = index
            self._values[var] = self._evaluate(var, value)
        self.where = "the outputs of 'main'"
        body = self._main.body.body
        return Network(tuple(inputs), tuple(self._outputs(body)), self.steps)

    def _outputs(self, expr: Expr) -> list[Activation]:
        values = self.value_of(expr)
        values = values if isinstance(values, tuple) else (values,)
        if not all(isinstance(value, Activation) for value in values):
            raise self.unsupported(
                "an output that is not int8", "give the model int8 inputs and outputs"
            )
        return list(values)

    def unsupported(self, what: str, hint: str = "") -> UnsupportedError:
        """Return an error about the current binding."""
        return UnsupportedError(what, where=self.where, hint=hint)

    def value_of(self, expr: Expr) -> Any:
        """Return the value that an argument stands for."""
        if isinstance(expr, GenericConst):
            return Constant(expr.value.numpy())
        if isinstance(expr, relax.Var) and expr in self._values:
            return self._values[expr]
        if isinstance(expr, relax.Tuple):
            return tuple(self.value_of(field) for field in expr.fields)
        raise self.unsupported(f"an argument of kind {type(expr).__name__}")

    def constant(self, expr: Expr, role: str) -> Array:
        """Return the elements of an argument that must be a plain constant."""
        value = self.value_of(expr)
        if not isinstance(value, Constant) or value.scale is not None:
            raise self.unsupported(f"its {role} is computed at run time", "make it constant")
        return value.data

    def number(self, expr: Expr, role: str) -> float:
        """Return an argument that must be a number."""
        value = getattr(expr, "value", None)
        if not isinstance(value, int | float):
            raise self.unsupported(f"its {role} is computed at run time", "make it constant")
        return float(value)

    def position(self, sub: int = 0) -> Pair:
        """Return the position of an operator made from the current binding."""
        return (self._index, sub)

    def _evaluate(self, var: Var, value: Expr) -> Any:
        self.where = f"variable '{var.name}'"
        if isinstance(value, relax.Var | relax.Tuple | GenericConst):
            return self.value_of(value)
        name = str(getattr(getattr(value, "op", None), "name", type(value).__name__))
        self.where = f"operator '{name}' bound to variable '{var.name}'"
        handler = self._handlers.get(name)
        if handler is None:
            raise self.unsupported(
                f"operator '{name}' is not supported",
                f"supported are {', '.join(sorted(self._handlers))}",
            )
        return handler(self, value)

    def activation(
        self, operator: Applied, shape: tuple[int, ...], step: Quantization | None
    ) -> Activation:
        """Return the result of an operator, and record its quantization if known."""
        result = Activation(shape, operator)
        if step is not None:
            self.steps[result] = step
        return result

    def pass_on(self, source: Any, make: Callable[[Activation], Applied], call: Call) -> Value:
        """Read an operator that keeps the quantization, on an int8 tensor or its float view."""
        shape = shape_of(call)
        if isinstance(source, Real):
            operator = make(source.activation)
            return Real(self.activation(operator, shape, source.step), source.step)
        if isinstance(source, Activation):
            return self.activation(make(source), shape, self.steps.get(source))
        raise self.unsupported("its operand has not been quantized")

    def real(self, value: Any, role: str) -> Real:
        """Return a value that must be a dequantized activation."""
        if not isinstance(value, Real):
            raise self.unsupported(
                f"its {role} is not a dequantized int8 tensor",
                "quantize and dequantize between all operators",
            )
        return value

    def learn(self, activation: Activation, step: Quantization) -> None:
        """Record a quantization, also of the tensors whose values the activation has."""
        while activation not in self.steps:
            self.steps[activation] = step
            origin = activation.origin
            if isinstance(origin, str) or not _passes(origin):
                break
            activation = origin.inputs[0]


def _passes(operator: Applied) -> bool:
    """Whether its result has the same quantization as its input."""
    return operator.op.scale is Scale.PASSES and not isinstance(operator.op, Convert)


Handler: TypeAlias = Callable[[Reader, "Call"], Value]


def pair(values: Any) -> Pair:
    """Return two integers of an attribute."""
    first, second = (int(value) for value in values)
    return first, second


def pads(values: Any) -> Pads:
    """Return four integers of an attribute: top, left, bottom, right."""
    top, left, bottom, right = (int(value) for value in values)
    return top, left, bottom, right
