"""Functions of one float tensor, composed of the real operators in `patterns`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.affine.pointwise import combined
from htvm.frontend.onnx.affine.reader import Reader
from htvm.frontend.onnx.affine.unary import celu_width
from htvm.frontend.operators import Activation
from patterns.ops.float32.combine import Function
from patterns.ops.float32.exp import RealExp
from patterns.ops.float32.log import RealLog
from patterns.ops.float32.map import Map, RealMap
from patterns.ops.float32.reduce import RealReduce, Reduction
from patterns.ops.float32.round import RealRound
from patterns.ops.float32.sqrt import RealSqrt
from patterns.ops.moves.reshape import Reshape

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode
    from patterns.op import Op

__all__ = ["FORMS", "Form", "RealWriter"]


class RealWriter:
    """Writes the float operators for a node."""

    def __init__(self, reader: Reader, node: OnnxNode) -> None:
        self._reader = reader
        self.node = node

    def combine(
        self, function: Function, a: Activation | Array, b: Activation | Array | float
    ) -> Activation:
        """Return a function of two tensors, at least one of which is computed.

        Raises:
            ModelError: their shapes do not fit together.
        """
        other = np.asarray(b, "float32") if isinstance(b, int | float) else b
        try:
            shape = np.broadcast_shapes(a.shape, other.shape)
        except ValueError as error:
            raise self.node.damaged(
                f"operands of shapes {list(a.shape)} and {list(other.shape)}"
            ) from error
        return combined(self._reader, self.node, function, (a, other), shape)

    def divided(self, number: float, x: Activation) -> Activation:
        """Return a number divided by a tensor."""
        return self.combine("divide", np.asarray(number, "float32"), x)

    def map(self, function: Map, x: Activation) -> Activation:
        """Return a function of every element."""
        return self._written(RealMap(function), x, x.shape)

    def exp(self, x: Activation) -> Activation:
        """Return the exponential of every element."""
        return self._written(RealExp(), x, x.shape)

    def log(self, x: Activation) -> Activation:
        """Return the natural logarithm of every element."""
        return self._written(RealLog(), x, x.shape)

    def round(self, x: Activation) -> Activation:
        """Return every element rounded to an integer, ties to even."""
        return self._written(RealRound(), x, x.shape)

    def bounded(self, x: Activation, low: float, high: float) -> Activation:
        """Return every element within bounds; infinite ones do not bound."""
        if low > -math.inf:
            x = self.combine("maximum", x, low)
        return self.combine("minimum", x, high) if high < math.inf else x

    def scaled(self, x: Activation, factor: float) -> Activation:
        """Return every element times a number."""
        return x if factor == 1 else self.combine("multiply", x, factor)

    def sqrt(self, x: Activation) -> Activation:
        """Return the square root of every element."""
        return self._written(RealSqrt(), x, x.shape)

    def reduce(self, function: Reduction, x: Activation, axes: Sequence[int]) -> Activation:
        """Return the sum or the maximum over some axes, which keep size 1."""
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
        return self._written(RealReduce(function, tuple(axes)), x, shape)

    def _written(self, op: Op, x: Activation, shape: tuple[int, ...]) -> Activation:
        return self._reader.write(self.node, op, (x,), shape, dtype="float32")

    def mean(self, x: Activation, axes: Sequence[int]) -> Activation:
        """Return the mean over some axes, which keep size 1."""
        count = math.prod(x.shape[axis] for axis in axes)
        return self.combine("divide", self.reduce("add", x, axes), float(count))

    def reshape(self, x: Activation, shape: tuple[int, ...]) -> Activation:
        """Return the same elements in another shape."""
        if x.shape == shape:
            return x
        return self._written(Reshape(shape), x, shape)


Form: TypeAlias = Callable[[RealWriter, Activation], Activation]


def _sigmoid(out: RealWriter, x: Activation) -> Activation:
    return out.divided(1.0, out.combine("add", out.exp(out.combine("multiply", x, -1.0)), 1.0))


def _gelu(out: RealWriter, x: Activation) -> Activation:
    half = out.combine("multiply", x, 0.5)
    if out.node.text("approximate", "none") == "tanh":
        cube = out.combine("multiply", out.combine("multiply", x, x), x)
        inner = out.combine("add", x, out.combine("multiply", cube, 0.044715))
        flat = out.map("tanh", out.combine("multiply", inner, math.sqrt(2 / math.pi)))
    else:
        flat = out.map("erf", out.combine("multiply", x, math.sqrt(0.5)))
    return out.combine("multiply", half, out.combine("add", flat, 1.0))


def _elu(alpha: float, gamma: float = 1.0, width: float = 1.0) -> Form:
    """``gamma * (max(x, 0) + alpha * (exp(min(x, 0) / width) - 1))``."""

    def form(out: RealWriter, x: Activation) -> Activation:
        below = out.exp(out.scaled(out.combine("minimum", x, 0.0), 1 / width))
        low = out.scaled(out.combine("subtract", below, 1.0), alpha)
        return out.scaled(out.combine("add", out.combine("maximum", x, 0.0), low), gamma)

    return form


def _hard_sigmoid(out: RealWriter, x: Activation, alpha: float, beta: float) -> Activation:
    return out.bounded(out.combine("add", out.scaled(x, alpha), beta), 0.0, 1.0)


def _softplus(out: RealWriter, x: Activation) -> Activation:
    # max(x, 0) + log(1 + exp(-|x|)), which neither overflows nor cancels.
    size = out.combine("maximum", x, out.combine("multiply", x, -1.0))
    low = out.log(out.combine("add", out.exp(out.combine("multiply", size, -1.0)), 1.0))
    return out.combine("add", out.combine("maximum", x, 0.0), low)


def _sign(out: RealWriter, x: Activation) -> Activation:
    # Twice times the largest power of two, so that the smallest numbers reach 1, too.
    large = out.scaled(out.scaled(x, 2.0**126), 2.0**126)
    return out.bounded(large, -1.0, 1.0)


def _ceil(out: RealWriter, x: Activation) -> Activation:
    near = out.round(x)
    # One more where rounding went down: the sign of a positive difference.
    below = out.bounded(_sign(out, out.combine("subtract", x, near)), 0.0, math.inf)
    return out.combine("add", near, below)


def _floor(out: RealWriter, x: Activation) -> Activation:
    near = out.round(x)
    above = out.bounded(_sign(out, out.combine("subtract", near, x)), 0.0, math.inf)
    return out.combine("subtract", near, above)


def _thresholded(out: RealWriter, x: Activation) -> Activation:
    threshold = out.node.number("alpha", 1.0)
    kept = out.bounded(_sign(out, out.combine("subtract", x, threshold)), 0.0, 1.0)
    return out.combine("multiply", x, kept)


def _softsign(out: RealWriter, x: Activation) -> Activation:
    size = out.combine("maximum", x, out.combine("multiply", x, -1.0))
    return out.combine("divide", x, out.combine("add", size, 1.0))


def _selu(out: RealWriter, x: Activation) -> Activation:
    alpha = out.node.number("alpha", 1.67326319217681884765625)
    return _elu(alpha, out.node.number("gamma", 1.05070102214813232421875))(out, x)


def _celu(out: RealWriter, x: Activation) -> Activation:
    alpha = celu_width(out.node)
    return _elu(alpha, width=alpha)(out, x)


def _swish(out: RealWriter, x: Activation) -> Activation:
    return out.combine("multiply", x, _sigmoid(out, out.scaled(x, out.node.number("alpha", 1.0))))


def _leaky(out: RealWriter, x: Activation) -> Activation:
    slope = out.node.number("alpha", 0.01)
    below = out.combine("multiply", out.combine("minimum", x, 0.0), slope)
    return out.combine("add", out.combine("maximum", x, 0.0), below)


FORMS: Mapping[str, Form] = {
    "Celu": _celu,
    "Ceil": _ceil,
    "Elu": lambda out, x: _elu(out.node.number("alpha", 1.0))(out, x),
    "Floor": _floor,
    "HardSigmoid": lambda out, x: _hard_sigmoid(
        out, x, out.node.number("alpha", 0.2), out.node.number("beta", 0.5)
    ),
    "HardSwish": lambda out, x: out.combine("multiply", x, _hard_sigmoid(out, x, 1 / 6, 0.5)),
    "Log": lambda out, x: out.log(x),
    "Mish": lambda out, x: out.combine("multiply", x, out.map("tanh", _softplus(out, x))),
    "Round": lambda out, x: out.round(x),
    "Selu": _selu,
    "Sign": _sign,
    "Softplus": _softplus,
    "Softsign": _softsign,
    "Swish": _swish,
    "ThresholdedRelu": _thresholded,
    "Abs": lambda out, x: out.combine("maximum", x, out.combine("multiply", x, -1.0)),
    "Erf": lambda out, x: out.map("erf", x),
    "Exp": lambda out, x: out.exp(x),
    "Gelu": _gelu,
    "LeakyRelu": _leaky,
    "Neg": lambda out, x: out.combine("multiply", x, -1.0),
    "Reciprocal": lambda out, x: out.divided(1.0, x),
    "Sigmoid": _sigmoid,
    "Sqrt": lambda out, x: out.sqrt(x),
    "Tanh": lambda out, x: out.map("tanh", x),
}
"""Functions by operator."""
