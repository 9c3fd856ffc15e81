"""Sums, activation functions and softmax."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import UnsupportedError
from htvm.frontend.operators import Activation, Applied, Pair, Quantization
from htvm.frontend.qdq.quantization import identity
from htvm.frontend.qdq.reader import INT8, Constant, Pending, Real, Value
from htvm.frontend.scales import summed
from patterns.ops.convert import Convert
from patterns.ops.convolution import Conv2d
from patterns.ops.dense import Dense
from patterns.ops.tflite.add import TfliteAdd
from patterns.ops.tflite.average_pool import AveragePool
from patterns.ops.tflite.softmax import TfliteSoftmax
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import Call

    from htvm.frontend.qdq.reader import Reader

__all__ = ["add", "clip", "relu", "softmax"]

SOFTMAX_STEP = Quantization(1 / 256, -128)
_CLIPPING = (AveragePool, Conv2d, Convert, Dense, TfliteAdd)


def add(reader: Reader, call: Call) -> Value:
    """Read a bias, or the sum of two activations."""
    first, second = (reader.value_of(arg) for arg in call.args)
    if isinstance(first, Constant) and not isinstance(second, Constant):
        first, second = second, first
    if isinstance(first, Pending) and isinstance(second, Constant):
        return _with_bias(reader, first, second)
    a, b = reader.real(first, "first operand"), reader.real(second, "second operand")
    if a.activation.shape != b.activation.shape:
        raise reader.unsupported(
            f"operands of shapes {a.activation.shape} and {b.activation.shape}",
            "broadcasting is not supported",
        )
    position, where = reader.position(), reader.where

    def finish(step: Quantization, clip: Pair, _: Constant | None) -> Applied:
        operands = (a.activation, b.activation)
        return Applied(position, where, operands, summed(a.step, b.step, step, clip))

    return Pending(finish, shape_of(call), takes_bias=False)


def _with_bias(reader: Reader, pending: Pending, bias: Constant) -> Pending:
    if not pending.takes_bias or pending.bias is not None or pending.low > -math.inf:
        raise reader.unsupported("a constant added to something that is no bare product")
    return replace(pending, bias=bias)


def relu(reader: Reader, call: Call) -> Value:
    """Apply a lower bound of zero to a pending result."""
    return bounded(reader, reader.value_of(call.args[0]), 0.0, math.inf)


def clip(reader: Reader, call: Call) -> Value:
    """Apply bounds to a float result, or to an int8 tensor that was just computed."""
    value = reader.value_of(call.args[0])
    low, high = reader.number(call.args[1], "bound"), reader.number(call.args[2], "bound")
    if not isinstance(value, Activation):
        return bounded(reader, value, low, high)
    origin = value.origin
    clipped = _clipped_by(origin)
    if clipped is None or isinstance(origin, str):
        if low <= INT8[0] and high >= INT8[1]:
            return value
        raise reader.unsupported("an int8 clip that does not follow an operator with one")
    clip = (max(clipped[0], math.ceil(low)), min(clipped[1], math.floor(high)))
    if clip[0] > clip[1]:
        raise reader.unsupported(f"a clip to [{low}, {high}] leaves nothing")
    made = replace(origin, op=replace(origin.op, clip=clip))  # type: ignore[call-arg]
    return reader.activation(made, value.shape, reader.steps.get(value))


def _clipped_by(origin: Applied | str) -> Pair | None:
    """Return the range to which an operator clips its result, if it has one."""
    if isinstance(origin, str) or not isinstance(origin.op, _CLIPPING):
        return None
    return origin.op.clip


def bounded(reader: Reader, value: Any, low: float, high: float) -> Pending:
    if isinstance(value, Real):
        value = identity(reader, value)
    if not isinstance(value, Pending):
        raise reader.unsupported("its operand has not been quantized")
    return replace(value, low=max(value.low, low), high=min(value.high, high))


def softmax(reader: Reader, call: Call) -> Value:
    """Read a softmax over the last axis."""
    source = reader.real(reader.value_of(call.args[0]), "input")
    rank = len(source.activation.shape)
    if int(call.attrs.axis) % rank != rank - 1:
        raise reader.unsupported(f"softmax over axis {call.attrs.axis}", "use the last axis")
    position, where = reader.position(), reader.where

    def finish(step: Quantization, clip: Pair, _: Constant | None) -> Applied:
        if step != SOFTMAX_STEP or clip != INT8:
            raise UnsupportedError(
                f"a softmax quantized to {step} and clipped to {clip}",
                where=where,
                hint="int8 softmax has scale 1/256 and zero point -128",
            )
        softmax = TfliteSoftmax.of_scale(source.step.scale)
        return Applied(position, where, (source.activation,), softmax)

    return Pending(finish, source.activation.shape, takes_bias=False)
