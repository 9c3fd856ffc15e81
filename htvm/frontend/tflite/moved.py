"""Quantized constants that an operator moves, and where their scales go."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.tflite.file import TfliteOperator, TfliteTensor

_HINT = "fold it when exporting, or quantize the constant per tensor"


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
    if result.scales and not _same(made, result):
        raise ModelError(
            f"corrupt model: {operator.kind} moves {source.place}, and changes its quantization",
            where=operator.place,
            hint=_HINT,
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
        hint=_HINT,
    )


def _same(first: TfliteTensor, second: TfliteTensor) -> bool:
    """Whether two tensors have the same quantization."""
    return (
        len(first.scales) == len(second.scales)
        and (len(first.scales) == 1 or first.axis == second.axis)
        and {*first.zero_points} == {*second.zero_points}
        and all(map(_close, first.scales, second.scales))
    )


def _close(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=1e-6)
