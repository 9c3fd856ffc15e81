"""Operators that retargeting keeps: they compute on as the source has them, on the host.

Their inputs come out in the source's own quantization, as outputs of the network do, and what they
compute enters the network as an input of it does.  What lies between is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from htvm.quantization.copied import COPIED, run_copied, write_copied
from htvm.quantization.forward import accumulate, requantize, tflite_scale
from htvm.quantization.graph import Array, Operator
from htvm.quantization.moves import MOVES, from_source, moved, to_source, write_move

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Var

__all__ = ["KEPT", "kept_zero_point", "run_kept", "write_kept"]

KEPT = ("table", "tflite_binary", "tflite_mean", *COPIED)
"""Kinds of nodes that are kept, beside convolutions of several groups, moves that fill with
something else than the number zero, and islands (`htvm.quantization.islands`)."""


def kept_zero_point(kind: str, attrs: Mapping[str, Any], source: int) -> int:
    """Zero point of what a kept operator computes, given that of its first input."""
    if kind == "table":
        return int(attrs["zero_point"])
    return source if kind in MOVES else int(attrs["zero_points"][-1])


def run_kept(op: Operator, inputs: Sequence[Array], channel_first: bool) -> Array:
    """The int8 output of a kept operator for a batch of its inputs, ``[N, ...]``."""
    assert op.origin is not None
    kind, attrs = op.origin.kind, op.origin.attrs
    if kind == "conv2d":
        return _grouped(op, inputs[0])
    parts = [to_source(x, channel_first) for x in inputs]
    if kind == "island":
        out = attrs["island"].run(parts)
    elif kind == "copied":
        out = run_copied(op.origin, parts)
    elif kind == "table":
        out = _table(attrs, parts[0])
    elif kind == "tflite_binary":
        out = _binary(attrs, parts)
    elif kind == "tflite_mean":
        out = _mean(attrs, parts[0])
    else:
        out = moved(kind, attrs, parts, int(attrs["value"]))
    return from_source(out, channel_first)


def _grouped(op: Operator, x: Array) -> Array:
    """A convolution of several groups, one after the other."""
    weight, channels, parts = op.weights(), op.weights().shape[1], []
    each = len(weight) // op.groups
    for group in range(op.groups):
        rows = weight[group * each : (group + 1) * each]
        shape = (*op.shape[:-1], each)
        part = replace(op, kind="conv2d", weight=rows, shape=shape, groups=1, origin=None)
        parts.append(accumulate(x[..., group * channels : (group + 1) * channels], part))
    return requantize(np.concatenate(parts, axis=-1).astype(np.int64) + op.biases(), op)


def _table(attrs: Mapping[str, Any], x: Array) -> Array:
    table = np.array(attrs["table"], np.int8).reshape(-1, 256)
    place = x.astype(np.int64) + 128
    if len(table) == 1:
        return np.asarray(table[0][place])
    shape = [1] * x.ndim
    shape[attrs["axis"]] = -1
    return np.asarray(table[np.arange(len(table)).reshape(shape), place])


def _binary(attrs: Mapping[str, Any], parts: Sequence[Array]) -> Array:
    given, operands = iter(parts), []
    for key in "ab":
        if key in attrs:
            operands.append(np.array(attrs[key], np.int64).reshape(attrs[f"{key}_shape"]))
        else:
            operands.append(next(given).astype(np.int64))
    rank = max(operand.ndim for operand in operands)
    # Axes of size 1 behind the batch, so that batches of samples meet each other.
    first, second = (
        operand.reshape(*operand.shape[:1], *(1,) * (rank - operand.ndim), *operand.shape[1:])
        if operand.ndim and len(operand) == len(parts[0])
        else operand
        for operand in operands
    )
    zeros, multipliers, shifts = (attrs[key] for key in ("zero_points", "multipliers", "shifts"))
    first, second = first - zeros[0], second - zeros[1]
    if attrs["function"] == "multiply":
        total = tflite_scale(first * second, multipliers[0], shifts[0])
    else:
        first = tflite_scale(first << 20, multipliers[0], shifts[0])
        second = tflite_scale(second << 20, multipliers[1], shifts[1])
        total = first - second if attrs["function"] == "subtract" else first + second
        total = tflite_scale(total, multipliers[2], shifts[2])
    return np.clip(total + zeros[2], *attrs["clip"]).astype(np.int8)


def _mean(attrs: Mapping[str, Any], x: Array) -> Array:
    axes, zeros = tuple(attrs["axes"]), attrs["zero_points"]
    total = (x.astype(np.int64) - zeros[0]).sum(axis=axes, keepdims=bool(attrs["keep_dims"]))
    out = tflite_scale(total, attrs["multiplier"], attrs["shift"]) + zeros[1]
    return np.clip(out, -128, 127).astype(np.int8)


def write_kept(builder: BlockBuilder, op: Operator, inputs: Sequence[Var], layout: str) -> Var:
    """The operator with the builder it came from; ``layout`` is NHWC or NCHW."""
    from patterns.ops.conv import conv2d
    from patterns.ops.elementwise import TfliteAdd
    from patterns.ops.table_map import table_map
    from patterns.ops.tflite import arithmetic

    assert op.origin is not None
    kind, attrs, name = op.origin.kind, op.origin.attrs, op.name
    if kind == "copied":
        return write_copied(builder, op.origin, inputs, name)
    if kind == "conv2d":
        return conv2d(
            builder, inputs[0], op.weights(), op.biases().astype(np.int32), attrs["requant"],
            op.clip, name=name, strides=op.stride, padding=op.pad, dilation=op.dilation,
            groups=op.groups, layout=layout,
        )  # fmt: skip
    if kind == "table":
        table = np.array(attrs["table"], np.int8).reshape(-1, 256)
        return table_map(
            builder, inputs[0], table if len(table) > 1 else table[0],
            zero_point=attrs["zero_point"], axis=attrs["axis"], name=name,
        )  # fmt: skip
    if kind == "tflite_mean":
        factor = attrs["multiplier"], attrs["shift"]
        zeros, keep = attrs["zero_points"], bool(attrs["keep_dims"])
        return arithmetic.mean(
            builder, inputs[0], attrs["axes"], factor, zeros, keep_dims=keep, name=name
        )
    if kind in MOVES:
        return write_move(builder, op, inputs, int(attrs["value"]))
    given = iter(inputs)
    a, b = (
        np.array(attrs[key], np.int8).reshape(attrs[f"{key}_shape"]) if key in attrs
        else next(given)
        for key in "ab"
    )  # fmt: skip
    parameters: Any = TfliteAdd(attrs["multipliers"], attrs["shifts"], attrs["zero_points"])
    if attrs["function"] == "multiply":
        parameters = arithmetic.TfliteMultiply(
            attrs["multipliers"][0], attrs["shifts"][0], attrs["zero_points"]
        )
    return arithmetic.binary(
        builder, attrs["function"], (a, b), parameters, attrs["clip"], name=name
    )
