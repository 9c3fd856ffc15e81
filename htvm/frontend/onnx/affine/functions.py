"""Functions of one tensor, element by element: in numpy, and composed of real operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from htvm.frontend.onnx.affine.reader import NodeReader
from htvm.frontend.operators import Activation
from patterns.ops.float32.elementary import RealExp, RealLog, RealMap, RealRound, RealSqrt

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from htvm.frontend.onnx.graph import OnnxNode
    from patterns.op import Op

Function: TypeAlias = "Callable[[Array], Array]"
"""A function of float32 arrays."""

Form: TypeAlias = Callable[[NodeReader, Activation], Activation]
"""Writes a function of a float tensor."""


@dataclass(frozen=True)
class Unary:
    """A function of one tensor, element by element.

    Attributes:
        compute: computes it, given float32 arrays and the attributes' values.
        write: writes it, given a node, a float tensor and the attributes' values.
        attributes: names of the node's attributes, and their defaults.
        divides: whether it divides by its attribute, which must then not be 0.
    """

    compute: Callable[..., Any]
    write: Callable[..., Activation]
    attributes: Mapping[str, float | str] = field(default_factory=dict)
    divides: bool = False

    def function(self, node: OnnxNode) -> Function:
        """Return the function that a node stands for, computed in float32."""
        values = [item if isinstance(item, str) else np.float32(item) for item in self._read(node)]
        return lambda x: self.compute(x, *values)

    def form(self, node: OnnxNode) -> Form:
        """Return what writes the function that a node stands for."""
        values = self._read(node)
        return lambda reader, x: self.write(reader, x, *values)

    def _read(self, node: OnnxNode) -> list[float | str]:
        values: list[float | str] = []
        for name, default in self.attributes.items():
            value: float | str
            if isinstance(default, str):
                value = node.text(name, default)
            else:
                value = node.number(name, default)
            if self.divides and np.float32(value) == 0:
                raise node.damaged(f"attribute '{name}' is {value}", "give another number than 0")
            values.append(value)
        return values


def _table_form(op: Op) -> Form:
    return lambda node, x: node.write(op, x)


def magnitude(node: NodeReader, x: Activation) -> Activation:
    """Write the absolute value of every element."""
    return node.combine("maximum", x, node.combine("multiply", x, -1.0))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)), "float32")


def _real_sigmoid(node: NodeReader, x: Activation) -> Activation:
    return node.combine(
        "divide", 1.0, node.combine("add", node.exp(node.combine("multiply", x, -1.0)), 1.0)
    )


def _erf(x: Array) -> Array:
    return np.asarray([math.erf(float(value)) for value in x], "float32")


def _gelu(x: Array, approximate: str) -> Array:
    if approximate == "tanh":
        root = np.float32(math.sqrt(2 / math.pi))
        return x * 0.5 * (1 + np.tanh(root * (x + np.float32(0.044715) * x**3)))
    return x * 0.5 * (1 + _erf(x * np.float32(math.sqrt(0.5))))


def _real_gelu(node: NodeReader, x: Activation, approximate: str) -> Activation:
    half = node.combine("multiply", x, 0.5)
    if approximate == "tanh":
        cube = node.combine("multiply", node.combine("multiply", x, x), x)
        inner = node.combine("add", x, node.combine("multiply", cube, 0.044715))
        flat = node.write(RealMap("tanh"), node.combine("multiply", inner, math.sqrt(2 / math.pi)))
    else:
        flat = node.write(RealMap("erf"), node.combine("multiply", x, math.sqrt(0.5)))
    return node.combine("multiply", half, node.combine("add", flat, 1.0))


def _elu(x: Array, alpha: float, gamma: float = 1) -> Array:
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _real_elu(
    node: NodeReader, x: Activation, alpha: float, gamma: float = 1.0, width: float = 1.0
) -> Activation:
    """Write ``gamma * (max(x, 0) + alpha * (exp(min(x, 0) / width) - 1))``."""
    below = node.exp(node.scaled(node.combine("minimum", x, 0.0), 1 / width))
    low = node.scaled(node.combine("subtract", below, 1.0), alpha)
    return node.scaled(node.combine("add", node.combine("maximum", x, 0.0), low), gamma)


def _real_hard_sigmoid(node: NodeReader, x: Activation, alpha: float, beta: float) -> Activation:
    return node.bounded(node.combine("add", node.scaled(x, alpha), beta), 0.0, 1.0)


def _real_softplus(node: NodeReader, x: Activation) -> Activation:
    # max(x, 0) + log(1 + exp(-|x|)), which neither overflows nor cancels.
    below = node.exp(node.combine("multiply", magnitude(node, x), -1.0))
    low = node.write(RealLog(), node.combine("add", below, 1.0))
    return node.combine("add", node.combine("maximum", x, 0.0), low)


def _real_sign(node: NodeReader, x: Activation) -> Activation:
    # Twice times the largest power of two, so that the smallest numbers reach 1, too.
    large = node.scaled(node.scaled(x, 2.0**126), 2.0**126)
    return node.bounded(large, -1.0, 1.0)


def _real_rounded(node: NodeReader, x: Activation, *, up: bool) -> Activation:
    near = node.write(RealRound(), x)
    # One more or less where rounding went the other way: the sign of a positive difference.
    first, second = (x, near) if up else (near, x)
    away = node.bounded(_real_sign(node, node.combine("subtract", first, second)), 0.0, math.inf)
    return node.combine("add" if up else "subtract", near, away)


def _real_thresholded(node: NodeReader, x: Activation, threshold: float) -> Activation:
    kept = node.bounded(_real_sign(node, node.combine("subtract", x, threshold)), 0.0, 1.0)
    return node.combine("multiply", x, kept)


def _real_leaky(node: NodeReader, x: Activation, slope: float) -> Activation:
    below = node.combine("multiply", node.combine("minimum", x, 0.0), slope)
    return node.combine("add", node.combine("maximum", x, 0.0), below)


FUNCTIONS: Mapping[str, Unary] = {
    "Abs": Unary(np.abs, magnitude),
    "Ceil": Unary(np.ceil, partial(_real_rounded, up=True)),
    "Celu": Unary(
        lambda x, alpha: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)),
        lambda node, x, alpha: _real_elu(node, x, alpha, width=alpha),
        {"alpha": 1.0},
        divides=True,
    ),
    "Elu": Unary(_elu, _real_elu, {"alpha": 1.0}),
    "Erf": Unary(_erf, _table_form(RealMap("erf"))),
    "Exp": Unary(np.exp, _table_form(RealExp())),
    "Floor": Unary(np.floor, partial(_real_rounded, up=False)),
    "Gelu": Unary(_gelu, _real_gelu, {"approximate": "none"}),
    "HardSigmoid": Unary(
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        _real_hard_sigmoid,
        {"alpha": 0.2, "beta": 0.5},
    ),
    "HardSwish": Unary(
        lambda x: x * np.clip(x / np.float32(6) + np.float32(0.5), 0, 1),
        lambda node, x: node.combine("multiply", x, _real_hard_sigmoid(node, x, 1 / 6, 0.5)),
    ),
    "LeakyRelu": Unary(
        lambda x, alpha: np.where(x >= 0, x, alpha * x), _real_leaky, {"alpha": 0.01}
    ),
    "Log": Unary(np.log, _table_form(RealLog())),
    "Mish": Unary(
        lambda x: x * np.tanh(np.logaddexp(x, np.float32(0))),
        lambda node, x: node.combine(
            "multiply", x, node.write(RealMap("tanh"), _real_softplus(node, x))
        ),
    ),
    "Neg": Unary(np.negative, lambda node, x: node.combine("multiply", x, -1.0)),
    "Reciprocal": Unary(
        lambda x: np.float32(1) / x, lambda node, x: node.combine("divide", 1.0, x)
    ),
    "Round": Unary(np.rint, _table_form(RealRound())),
    "Selu": Unary(
        _elu, _real_elu, {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}
    ),
    "Sigmoid": Unary(_sigmoid, _real_sigmoid),
    "Sign": Unary(np.sign, _real_sign),
    "Softplus": Unary(lambda x: np.logaddexp(x, np.float32(0)), _real_softplus),
    "Softsign": Unary(
        lambda x: x / (1 + np.abs(x)),
        lambda node, x: node.combine("divide", x, node.combine("add", magnitude(node, x), 1.0)),
    ),
    "Sqrt": Unary(np.sqrt, _table_form(RealSqrt())),
    "Swish": Unary(
        lambda x, alpha: x * _sigmoid(alpha * x),
        lambda node, x, alpha: node.combine(
            "multiply", x, _real_sigmoid(node, node.scaled(x, alpha))
        ),
        {"alpha": 1.0},
    ),
    "Tanh": Unary(np.tanh, _table_form(RealMap("tanh"))),
    "ThresholdedRelu": Unary(
        lambda x, alpha: np.where(x > alpha, x, np.float32(0)), _real_thresholded, {"alpha": 1.0}
    ),
}
"""Functions by operator."""
