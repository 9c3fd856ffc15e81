"""Shapes of tensors that a file leaves open, from those of the inputs.

Keras converts with an open batch; the shapes that are written down then are at times those of
nothing that runs: a reshape to (1, 1) that a runtime makes (16, 24).  A tensor's signature says
that it is open, and its shape follows from the operator, as in a runtime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.tflite.file import TfliteOperator, TfliteTensor

Shape: TypeAlias = tuple[int, ...]
_Rule: TypeAlias = Callable[[TfliteOperator], Shape]

_SAME = 0  # padding


def sized(operator: TfliteOperator) -> TfliteOperator:
    """Return the operator with the shape of its only result, if the file leaves that open."""
    known = operator.kind in RULES
    if not known or len(operator.outputs) != 1 or not operator.outputs[0].open:
        return operator
    try:
        shape = tuple(int(size) for size in RULES[operator.kind](operator))
    except (ArithmeticError, IndexError, LookupError, TypeError, ValueError):
        return operator  # whoever reads it says what is wrong
    if any(size < 0 for size in shape):
        return operator
    return replace(operator, outputs=(replace(operator.outputs[0], shape=shape),))


def _tensor(operator: TfliteOperator, index: int) -> TfliteTensor:
    tensor = operator.inputs[index]
    if tensor is None:
        raise ValueError("an omitted input")
    return tensor


def _shape(operator: TfliteOperator, index: int = 0) -> Shape:
    return _tensor(operator, index).shape


def _constant(operator: TfliteOperator, index: int) -> Array:
    data = _tensor(operator, index).data
    if data is None:
        raise ValueError("not constant")
    return data


def _numbers(operator: TfliteOperator, index: int) -> Shape:
    return tuple(int(number) for number in _constant(operator, index))


def _option(operator: TfliteOperator, field: int, code: str = "i", default: int = 0) -> int:
    options = operator.options
    return default if options is None else options.integer(field, code, default)


def _broadcast(operator: TfliteOperator) -> Shape:
    return tuple(np.broadcast_shapes(_shape(operator, 0), _shape(operator, 1)))


def _reshape(operator: TfliteOperator) -> Shape:
    wanted, total = _numbers(operator, 1), math.prod(_shape(operator))
    known = math.prod(size for size in wanted if size != -1)
    shape = tuple(total // known if size == -1 else size for size in wanted)
    if math.prod(shape) != total:
        raise ValueError("another number of elements")
    return shape


def _fully_connected(operator: TfliteOperator) -> Shape:
    source, (channels, depth) = _shape(operator), _shape(operator, 1)
    if _option(operator, 2, "B"):
        return (*source[:-1], channels)
    return (math.prod(source) // depth, channels)


def _gather(operator: TfliteOperator) -> Shape:
    source, axis = _shape(operator), _option(operator, 0)
    return (*source[:axis], *_shape(operator, 1), *source[axis % len(source) + 1 :])


def _range(operator: TfliteOperator) -> Shape:
    first, last, step = (_constant(operator, at).item() for at in range(3))
    return (max(math.ceil((last - first) / step), 0),)


def _reduced(operator: TfliteOperator) -> Shape:
    source = _shape(operator)
    axes = {axis % len(source) for axis in _numbers(operator, 1)}
    if _option(operator, 0, "B"):
        return tuple(1 if at in axes else size for at, size in enumerate(source))
    return tuple(size for at, size in enumerate(source) if at not in axes)


def _concatenation(operator: TfliteOperator) -> Shape:
    first = list(_shape(operator))
    axis = _option(operator, 0) % len(first)
    first[axis] = sum(_shape(operator, at)[axis] for at in range(len(operator.inputs)))
    return tuple(first)


def _expand_dims(operator: TfliteOperator) -> Shape:
    source, (axis,) = _shape(operator), _numbers(operator, 1)
    at = axis % (len(source) + 1)
    return (*source[:at], 1, *source[at:])


def _pack(operator: TfliteOperator) -> Shape:
    source = _shape(operator)
    at = _option(operator, 1) % (len(source) + 1)
    return (*source[:at], len(operator.inputs), *source[at:])


def _padded(operator: TfliteOperator) -> Shape:
    source, widths = _shape(operator), _numbers(operator, 1)
    return tuple(size + widths[2 * at] + widths[2 * at + 1] for at, size in enumerate(source))


def _windows(channels: Callable[[TfliteOperator], int], kernel: int, dilation: int) -> _Rule:
    """Return the rule of windows; fields of the options with the kernel, or with the dilation."""

    def rule(operator: TfliteOperator) -> Shape:
        source, sizes = _shape(operator), []
        for axis, stride_field in ((1, 2), (2, 1)):
            step = _option(operator, stride_field)
            if kernel:
                reach = _option(operator, kernel + 2 - axis)
            else:
                apart = _option(operator, dilation + 2 - axis, default=1)
                reach = apart * (_shape(operator, 1)[axis] - 1) + 1
            whole = _option(operator, 0, "b") == _SAME
            sizes.append(-(-(source[axis] if whole else source[axis] - reach + 1) // step))
        return (source[0], *sizes, channels(operator))

    return rule


def _to_batch(operator: TfliteOperator) -> Shape:
    source, blocks, widths = _shape(operator), _numbers(operator, 1), _numbers(operator, 2)
    sizes = [
        (source[1 + at] + widths[2 * at] + widths[2 * at + 1]) // block
        for at, block in enumerate(blocks)
    ]
    return (source[0] * math.prod(blocks), *sizes, *source[1 + len(blocks) :])


def _to_space(operator: TfliteOperator) -> Shape:
    source, blocks, cuts = _shape(operator), _numbers(operator, 1), _numbers(operator, 2)
    sizes = [
        source[1 + at] * block - cuts[2 * at] - cuts[2 * at + 1] for at, block in enumerate(blocks)
    ]
    return (source[0] // math.prod(blocks), *sizes, *source[1 + len(blocks) :])


RULES: Mapping[str, _Rule] = {
    **dict.fromkeys(
        "ABS ELU EXP GELU HARD_SWISH L2_NORMALIZATION LEAKY_RELU LOGISTIC LOG_SOFTMAX NEG QUANTIZE "
        "DEQUANTIZE RELU RELU6 RSQRT SOFTMAX TANH".split(),
        _shape,
    ),
    **dict.fromkeys(
        "ADD DIV FLOOR_DIV MAXIMUM MINIMUM MUL PRELU SQUARED_DIFFERENCE SUB".split(), _broadcast
    ),
    **dict.fromkeys("MEAN REDUCE_MAX REDUCE_MIN SUM".split(), _reduced),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _padded),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _windows(lambda op: _shape(op)[3], 3, 0)),
    "BATCH_TO_SPACE_ND": _to_space,
    "BROADCAST_TO": lambda op: _numbers(op, 1),
    "CONCATENATION": _concatenation,
    "CONV_2D": _windows(lambda op: _shape(op, 1)[0], 0, 4),
    "DEPTHWISE_CONV_2D": _windows(lambda op: _shape(op, 1)[3], 0, 5),
    "EXPAND_DIMS": _expand_dims,
    "FILL": lambda op: _numbers(op, 0),
    "FULLY_CONNECTED": _fully_connected,
    "GATHER": _gather,
    "PACK": _pack,
    "RANGE": _range,
    "RESHAPE": _reshape,
    "SPACE_TO_BATCH_ND": _to_batch,
    "TILE": lambda op: tuple(
        size * count for size, count in zip(_shape(op), _numbers(op, 1), strict=True)
    ),
    "TRANSPOSE": lambda op: tuple(_shape(op)[axis] for axis in _numbers(op, 1)),
}
"""Shapes of results by operator, from those of its inputs."""
