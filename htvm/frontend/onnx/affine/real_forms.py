"""Functions of one float tensor, composed of the real operators in `patterns`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from htvm.frontend.onnx.affine.reader import NodeReader
from htvm.frontend.onnx.affine.unary import celu_width
from htvm.frontend.operators import Activation
from patterns.ops.float32.elementary import RealExp, RealLog, RealMap, RealRound, RealSqrt

if TYPE_CHECKING:
    from patterns.op import Op

Form: TypeAlias = Callable[[NodeReader, Activation], Activation]


def _written(op: Op) -> Form:
    return lambda node, x: node.write(op, x)


def magnitude(node: NodeReader, x: Activation) -> Activation:
    """Return the absolute value of every element."""
    return node.combine("maximum", x, node.combine("multiply", x, -1.0))


def _sigmoid(node: NodeReader, x: Activation) -> Activation:
    return node.combine(
        "divide", 1.0, node.combine("add", node.exp(node.combine("multiply", x, -1.0)), 1.0)
    )


def _gelu(node: NodeReader, x: Activation) -> Activation:
    half = node.combine("multiply", x, 0.5)
    if node.text("approximate", "none") == "tanh":
        cube = node.combine("multiply", node.combine("multiply", x, x), x)
        inner = node.combine("add", x, node.combine("multiply", cube, 0.044715))
        flat = node.write(RealMap("tanh"), node.combine("multiply", inner, math.sqrt(2 / math.pi)))
    else:
        flat = node.write(RealMap("erf"), node.combine("multiply", x, math.sqrt(0.5)))
    return node.combine("multiply", half, node.combine("add", flat, 1.0))


def _elu(alpha: float, gamma: float = 1.0, width: float = 1.0) -> Form:
    """``gamma * (max(x, 0) + alpha * (exp(min(x, 0) / width) - 1))``."""

    def form(node: NodeReader, x: Activation) -> Activation:
        below = node.exp(node.scaled(node.combine("minimum", x, 0.0), 1 / width))
        low = node.scaled(node.combine("subtract", below, 1.0), alpha)
        return node.scaled(node.combine("add", node.combine("maximum", x, 0.0), low), gamma)

    return form


def _hard_sigmoid(node: NodeReader, x: Activation, alpha: float, beta: float) -> Activation:
    return node.bounded(node.combine("add", node.scaled(x, alpha), beta), 0.0, 1.0)


def _softplus(node: NodeReader, x: Activation) -> Activation:
    # max(x, 0) + log(1 + exp(-|x|)), which neither overflows nor cancels.
    below = node.exp(node.combine("multiply", magnitude(node, x), -1.0))
    low = node.write(RealLog(), node.combine("add", below, 1.0))
    return node.combine("add", node.combine("maximum", x, 0.0), low)


def _sign(node: NodeReader, x: Activation) -> Activation:
    # Twice times the largest power of two, so that the smallest numbers reach 1, too.
    large = node.scaled(node.scaled(x, 2.0**126), 2.0**126)
    return node.bounded(large, -1.0, 1.0)


def _ceil(node: NodeReader, x: Activation) -> Activation:
    near = node.write(RealRound(), x)
    # One more where rounding went down: the sign of a positive difference.
    below = node.bounded(_sign(node, node.combine("subtract", x, near)), 0.0, math.inf)
    return node.combine("add", near, below)


def _floor(node: NodeReader, x: Activation) -> Activation:
    near = node.write(RealRound(), x)
    above = node.bounded(_sign(node, node.combine("subtract", near, x)), 0.0, math.inf)
    return node.combine("subtract", near, above)


def _thresholded(node: NodeReader, x: Activation) -> Activation:
    threshold = node.number("alpha", 1.0)
    kept = node.bounded(_sign(node, node.combine("subtract", x, threshold)), 0.0, 1.0)
    return node.combine("multiply", x, kept)


def _softsign(node: NodeReader, x: Activation) -> Activation:
    return node.combine("divide", x, node.combine("add", magnitude(node, x), 1.0))


def _selu(node: NodeReader, x: Activation) -> Activation:
    alpha = node.number("alpha", 1.67326319217681884765625)
    return _elu(alpha, node.number("gamma", 1.05070102214813232421875))(node, x)


def _celu(node: NodeReader, x: Activation) -> Activation:
    alpha = celu_width(node)
    return _elu(alpha, width=alpha)(node, x)


def _swish(node: NodeReader, x: Activation) -> Activation:
    return node.combine("multiply", x, _sigmoid(node, node.scaled(x, node.number("alpha", 1.0))))


def _leaky(node: NodeReader, x: Activation) -> Activation:
    slope = node.number("alpha", 0.01)
    below = node.combine("multiply", node.combine("minimum", x, 0.0), slope)
    return node.combine("add", node.combine("maximum", x, 0.0), below)


FORMS: Mapping[str, Form] = {
    "Celu": _celu,
    "Ceil": _ceil,
    "Elu": lambda node, x: _elu(node.number("alpha", 1.0))(node, x),
    "Floor": _floor,
    "HardSigmoid": lambda node, x: _hard_sigmoid(
        node, x, node.number("alpha", 0.2), node.number("beta", 0.5)
    ),
    "HardSwish": lambda node, x: node.combine("multiply", x, _hard_sigmoid(node, x, 1 / 6, 0.5)),
    "Log": _written(RealLog()),
    "Mish": lambda node, x: node.combine(
        "multiply", x, node.write(RealMap("tanh"), _softplus(node, x))
    ),
    "Round": _written(RealRound()),
    "Selu": _selu,
    "Sign": _sign,
    "Softplus": _softplus,
    "Softsign": _softsign,
    "Swish": _swish,
    "ThresholdedRelu": _thresholded,
    "Abs": magnitude,
    "Erf": _written(RealMap("erf")),
    "Exp": _written(RealExp()),
    "Gelu": _gelu,
    "LeakyRelu": _leaky,
    "Neg": lambda node, x: node.combine("multiply", x, -1.0),
    "Reciprocal": lambda node, x: node.combine("divide", 1.0, x),
    "Sigmoid": _sigmoid,
    "Sqrt": _written(RealSqrt()),
    "Tanh": _written(RealMap("tanh")),
}
"""Functions by operator."""
