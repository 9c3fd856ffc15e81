"""Folding: operators of constants, and shapes of tensors, become constants before they are read.

Keras converts a reshape to SHAPE, STRIDED_SLICE and PACK around it, because the batch could vary;
all shapes in the file are static, so all of this is known.  Float16 weights are another case: a
DEQUANTIZE of a constant.  What is folded is exact: integers, copies, and float16 as float32.
Quantized constants, such as weights that PyTorch's exporters transpose, are only moved.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.limits import Budget
from htvm.frontend.tflite.file import TfliteFile, TfliteOperator, TfliteTensor
from htvm.frontend.tflite.sizes import RULES, sized

_BEGIN, _END, _SHRINK = 0, 1, 4  # masks, by their numbers among the options


def strided(
    axis: int,
    size: int,
    bounds: tuple[int, int, int],
    masks: Sequence[int],
    *,
    relative: bool = False,
) -> range:
    """Return the places along an axis, as TFLite Micro's reference kernel chooses them.

    A begin that is masked is the first element (the last one of a negative step), also where the
    axis is shrunk to one element; an end relative to the begin counts from there.

    Args:
        axis: number of the axis.
        size: its elements.
        bounds: begin, end and step along the axis.
        masks: the operator's masks: begin, end, ellipsis, new axis, shrink.
        relative: whether the end is relative to the begin.

    Raises:
        IndexError: the one element of a shrunk axis lies outside, or is taken backwards, which
            TensorFlow refuses, and of which the reference kernel writes nothing.
    """
    begin, end, step = bounds
    bit = 1 << axis
    first = slice(None if masks[_BEGIN] & bit else begin, None, step).indices(size)[0]
    if masks[_SHRINK] & bit:
        if not masks[_BEGIN] & bit and not -size <= begin < size:
            raise IndexError(f"element {begin} of {size}")
        if step < 0:
            raise IndexError(f"one element, taken in steps of {step},")
        return range(first, first + 1)
    last = None if masks[_END] & bit else end + (first if relative else 0)
    return range(first, slice(None, last, step).indices(size)[1], step)


_MOVES_HINT = "fold it when exporting, or quantize the constant per tensor"


def moved_constant(
    operator: TfliteOperator, source: TfliteTensor, move: Callable[[Array], Array]
) -> TfliteTensor | None:
    """Return the only result of an operator as a constant, quantized like what it moves.

    Args:
        operator: the operator, which only moves elements.
        source: its first input, a quantized constant.
        move: what it does with an array of the source's shape.

    Returns:
        The result; ``None`` if it has another shape or type than the file says.

    Raises:
        UnsupportedError: no axis of the result has the scales of the source.
        ModelError: the file says that the result has other scales.
    """
    result = operator.outputs[0]
    assert source.data is not None
    data = move(source.data.reshape(source.shape))
    if data.shape != result.shape or result.dtype != source.dtype:
        return None
    scales, zero_points, axis = source.scales, source.zero_points, 0
    if len(scales) > 1:
        places, axis = _places(operator, source, move)
        scales, zero_points = tuple(scales[place] for place in places), (0,) * len(places)
    made = replace(result, data=data.reshape(-1), scales=scales, zero_points=zero_points, axis=axis)
    if result.scales and not _same_quantization(made, result):
        raise ModelError(
            f"corrupt model: {operator.kind} moves {source.place}, and changes its quantization",
            where=operator.place,
            hint=_MOVES_HINT,
        )
    return made


def _places(
    operator: TfliteOperator, source: TfliteTensor, move: Callable[[Array], Array]
) -> tuple[Array, int]:
    """Return the scale of each place along an axis of the result, and the axis."""
    sizes = [1] * len(source.shape)
    sizes[source.axis] = len(source.scales)
    own = move(np.broadcast_to(np.arange(len(source.scales)).reshape(sizes), source.shape))
    if (own == own.flat[0]).all():
        return own.reshape(-1)[:1], 0
    for axis, size in enumerate(own.shape):
        lanes = np.moveaxis(own, axis, -1).reshape(-1, size)
        if (lanes == lanes[0]).all():
            return lanes[0], axis
    raise UnsupportedError(
        f"{operator.kind} from {source.shape} to {own.shape} mixes axis {source.axis}, along which "
        f"{source.place} has {len(source.scales)} scales",
        where=operator.place,
        hint=_MOVES_HINT,
    )


def _same_quantization(first: TfliteTensor, second: TfliteTensor) -> bool:
    """Whether two tensors have the same quantization."""
    return (
        len(first.scales) == len(second.scales)
        and (len(first.scales) == 1 or first.axis == second.axis)
        and {*first.zero_points} == {*second.zero_points}
        and all(map(partial(math.isclose, rel_tol=1e-6), first.scales, second.scales))
    )


_log = logging.getLogger(__name__)

_PLAIN = ("int32", "int64", "bool", "float32", "float16")

_Fold: TypeAlias = Callable[[TfliteOperator, Sequence[Array]], Array]


def folded(file: TfliteFile) -> TfliteFile:
    """Return the file without operators whose results are known; these are constants instead.

    Raises:
        UnsupportedError: the results, or what computing them takes, are beyond the limits.
    """
    constants: dict[int, TfliteTensor] = {}
    results = {tensor.index for tensor in file.outputs}
    remaining = []
    for operator in file.operators:
        inputs = tuple(
            constants.get(tensor.index, tensor) if tensor is not None else None
            for tensor in operator.inputs
        )
        operator = sized(replace(operator, inputs=inputs))
        for tensor in operator.outputs:
            constants[tensor.index] = tensor
        result = None
        if len(operator.outputs) == 1 and operator.outputs[0].index not in results:
            result = _result(operator, file.budget)
        if result is None:
            remaining.append(operator)
        else:
            constants[result.index] = result
    if len(remaining) < len(file.operators):
        _log.info("%d operators of known results folded", len(file.operators) - len(remaining))
    return replace(
        file,
        operators=tuple(remaining),
        tensors=tuple(constants.get(tensor.index, tensor) for tensor in file.tensors),
        outputs=tuple(constants.get(tensor.index, tensor) for tensor in file.outputs),
    )


def _result(operator: TfliteOperator, budget: Budget) -> TfliteTensor | None:
    """Return an operator's result as a constant, or ``None`` if its elements are not known."""
    result = operator.outputs[0]
    if operator.kind == "SHAPE":
        source = operator.inputs[0] if operator.inputs else None
        if source is None or result.shape != (len(source.shape),) or result.dtype not in _PLAIN:
            return None
        return replace(result, data=np.asarray(source.shape, result.dtype))
    fold = _FOLDS.get(operator.kind)
    if fold is None:
        return None
    first = operator.inputs[0] if operator.inputs else None
    moves = operator.kind in _MOVES and first is not None and bool(first.scales)
    rest = _plain_constants(operator.inputs[1:] if moves else operator.inputs)
    if rest is None:
        return None
    quantized = (
        first.data.reshape(first.shape) if moves and first and first.data is not None else None
    )
    if quantized is None and (moves or result.dtype not in _PLAIN):
        return None
    operands = rest if quantized is None else [quantized, *rest]
    # The declared shape is what everything else was checked with.
    elements = math.prod(result.shape)
    try:
        with np.errstate(all="ignore"):
            if operator.kind in _GROWING and math.prod(RULES[operator.kind](operator)) != elements:
                return None
            budget.spend("folded_elements", elements, operator.place)
            read = sum(operand.size for operand in operands)
            budget.spend("folded_operations", read + elements, operator.place)
            if quantized is not None and first is not None:
                return moved_constant(operator, first, lambda data: fold(operator, [data, *rest]))
            data = fold(operator, operands)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None  # the operator stays, and whoever reads it says what is wrong
    if data.shape != result.shape:
        return None
    return replace(result, data=data.astype(result.dtype).reshape(-1))


def _plain_constants(tensors: Sequence[TfliteTensor | None]) -> list[Array] | None:
    """Return constants that are not quantized, or ``None`` if one is something else."""
    arrays = []
    for tensor in tensors:
        if tensor is None or tensor.data is None or tensor.dtype not in _PLAIN or tensor.scales:
            return None
        arrays.append(tensor.data.reshape(tensor.shape))
    return arrays


def _option(operator: TfliteOperator, field: int, code: str = "i") -> int:
    return 0 if operator.options is None else operator.options.integer(field, code)


def _plain(function: Callable[[Array, Array], Array]) -> _Fold:
    """Return an operator of two operands with a fused activation as option 0."""

    def fold(operator: TfliteOperator, arrays: Sequence[Array]) -> Array:
        if operator.options is not None and operator.options.fields and operator.kind in _FUSED:
            if _option(operator, 0, "b"):
                raise ValueError("a fused activation")
        return function(arrays[0], arrays[1])

    return fold


_FUSED = ("ADD", "SUB", "MUL", "DIV")


def _strided(operator: TfliteOperator, arrays: Sequence[Array]) -> Array:
    source, begin, end, strides = arrays
    masks = [_option(operator, field) for field in range(5)]
    if masks[2] or masks[3]:
        raise ValueError("an ellipsis or a new axis")
    relative = bool(_option(operator, 5, "B"))
    parts: list[Sequence[int]] = []
    shrunk = []
    for axis, bounds in enumerate(zip(begin, end, strides, strict=True)):
        low, high, step = (int(item) for item in bounds)
        size = source.shape[axis]
        parts.append(strided(axis, size, (low, high, step), masks, relative=relative))
        if masks[4] & 1 << axis:
            shrunk.append(axis)
    parts += [range(size) for size in source.shape[len(parts) :]]
    return np.asarray(source[np.ix_(*parts)].squeeze(tuple(shrunk)))


def _gather(operator: TfliteOperator, arrays: Sequence[Array]) -> Array:
    if _option(operator, 1):
        raise ValueError("batch_dims")
    return np.take(arrays[0], arrays[1], axis=_option(operator, 0))


def _reduced(function: Callable[..., Array]) -> _Fold:
    def fold(operator: TfliteOperator, arrays: Sequence[Array]) -> Array:
        if arrays[0].dtype.kind not in "iu":
            raise ValueError("sums of reals depend on their order")
        axes = tuple(int(axis) for axis in arrays[1].reshape(-1))
        return np.asarray(function(arrays[0], axis=axes, keepdims=bool(_option(operator, 0, "B"))))

    return fold


def _cut(operator: TfliteOperator, arrays: Sequence[Array]) -> Array:
    source, begin, sizes = arrays
    ends = [None if size == -1 else at + size for at, size in zip(begin, sizes, strict=True)]
    return source[tuple(slice(int(at), end) for at, end in zip(begin, ends, strict=True))]


def _reshaped(operator: TfliteOperator, arrays: Sequence[Array]) -> Array:
    return arrays[0].reshape(operator.outputs[0].shape)


_FOLDS: Mapping[str, _Fold] = {
    "ADD": _plain(np.add),
    "BROADCAST_TO": lambda _, a: np.broadcast_to(a[0], tuple(int(n) for n in a[1])),
    "CAST": lambda op, a: a[0].astype(op.outputs[0].dtype),
    "CONCATENATION": lambda op, a: np.concatenate(a, axis=_option(op, 0)),
    "DEQUANTIZE": lambda _, a: a[0].astype("float32"),
    "EXPAND_DIMS": _reshaped,
    "FILL": lambda _, a: np.full(tuple(int(n) for n in a[0]), a[1].reshape(-1)[0]),
    "FLOOR_DIV": _plain(np.floor_divide),
    "GATHER": _gather,
    "MAXIMUM": _plain(np.maximum),
    "MINIMUM": _plain(np.minimum),
    "MUL": _plain(np.multiply),
    "PACK": lambda op, a: np.stack(a, axis=_option(op, 1)),
    "RANGE": lambda _, a: np.arange(*(item.reshape(-1)[0] for item in a)),
    "REDUCE_PROD": _reduced(np.prod),
    "RESHAPE": _reshaped,
    "REVERSE_V2": lambda _, a: np.flip(a[0], tuple(int(axis) for axis in a[1].reshape(-1))),
    "SLICE": _cut,
    "SQUEEZE": _reshaped,
    "STRIDED_SLICE": _strided,
    "SUB": _plain(np.subtract),
    "SUM": _reduced(np.sum),
    "TILE": lambda _, a: np.tile(a[0], tuple(int(n) for n in a[1])),
    "TRANSPOSE": lambda _, a: a[0].transpose(tuple(int(n) for n in a[1])),
}
"""Operators of constants, as numpy computes them."""


_GROWING = (
    "ADD", "BROADCAST_TO", "CONCATENATION", "FILL", "FLOOR_DIV", "GATHER", "MAXIMUM", "MINIMUM",
    "MUL", "PACK", "RANGE", "SUB", "TILE",
)  # fmt: skip
"""Those whose results can be larger than the operands, and are sized before they are computed."""

_MOVES = (
    "BROADCAST_TO", "EXPAND_DIMS", "GATHER", "RESHAPE", "REVERSE_V2", "SLICE", "SQUEEZE",
    "STRIDED_SLICE", "TILE", "TRANSPOSE",
)  # fmt: skip
"""Those that only move elements of their first input."""
