"""A softmax, or a sum, in TFLite's file format, whose arithmetic Vela keeps there.

TFLite's factors of 31 bits are made from products and ratios of float32 scales.  Scales with which
they come out as wanted are searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from byoc_dory.layers import Add, Array, Difference, TfliteRequant
from byoc_dory.layers.rowwise import FixedPointSoftmax
from byoc_dory.soc.ethos_u.model import add_bits, limits_of
from byoc_dory.soc.ethos_u.tables import table

_SOFTMAX, _SOFTMAX_OPTIONS = 25, 9
_CODES = {Add: (0, 11), Difference: (41, 28)}
"""Numbers of operators, and of their options."""
_NO_ACTIVATION, _RELU = 0, 1
_TYPES = {"int16": 7, "int8": 9}
_VERSION = 3
_INTEGER_BITS = 5
_STRIDE = 7
_UNIT = (1 << 30, 0)


@dataclass(frozen=True)
class Scaled:
    """A tensor with its scale and zero point."""

    scale: float
    zero_point: int


# ------------------------------------------------------------------------ softmax


@lru_cache(maxsize=256)
def factors_of(function: FixedPointSoftmax) -> tuple[float, float] | None:
    """Return float32 scale and beta that give this softmax its factor; None if none were found."""
    real = function.multiplier * 2.0 ** (function.left_shift - 31 - (31 - _INTEGER_BITS))
    scale = _floats_from(real)
    beta = (real / scale.astype(np.float64)).astype(np.float32)
    factor = np.minimum(beta.astype(np.float64) * scale * 2.0 ** (31 - _INTEGER_BITS), 2.0**31 - 1)
    found = _are_fixed_point(factor, (function.multiplier, function.left_shift))
    place = _first(found)
    return None if place is None else (float(scale[place]), float(beta[place]))


def softmax_file(rows: int, columns: int, scale: float, beta: float) -> bytes:
    """Return a file with the softmax of rows of int8."""
    return _file(
        [(rows, columns)] * 2,
        [Scaled(scale, 0)],
        Scaled(1 / 256, -128),
        (_SOFTMAX, _SOFTMAX_OPTIONS, ("float32", beta)),
    )


# ------------------------------------------------------------------------ sums


def scales_of(layer: Add | Difference) -> tuple[Scaled, Scaled, Scaled] | None:
    """Return operands and result of a sum with float32 scales that give it its factors.

    None if none were found, or if the sum is clipped to something else than a ReLU's range.
    """
    requant = layer.requant
    if not isinstance(requant, TfliteRequant) or len(requant.multiplier) != 3:
        return None
    if activation_of(layer) is None:
        return None
    bits = add_bits(layer.output.dtype)
    found = _scales(requant.multiplier, requant.shift, bits)
    if found is None:
        return None
    zero_points = (*requant.input_zero_points[:2], requant.output_zero_point)
    first, second, result = map(Scaled, found, zero_points)
    return first, second, result


@lru_cache(maxsize=256)
def _scales(
    multipliers: tuple[int, ...], exponents: tuple[int, ...], bits: int
) -> tuple[float, float, float] | None:
    factors = list(zip(multipliers, exponents, strict=True))
    if _UNIT not in factors[:2]:
        return None
    larger = factors[:2].index(_UNIT)
    other, last = factors[1 - larger], factors[2]
    most = _floats_from(1.0)
    twice = 2.0 * most.astype(np.float64)
    least = (twice * _real(other)).astype(np.float32)
    result = (twice / 2.0**bits / _real(last)).astype(np.float32)
    fitting = _are_fixed_point(least / twice, other)
    fitting &= _are_fixed_point(twice / (2.0**bits * result.astype(np.float64)), last)
    fitting &= least <= most
    operands = (most, least) if larger == 0 else (least, most)
    place = _first(fitting)
    if place is None:
        return None
    return float(operands[0][place]), float(operands[1][place]), float(result[place])


def activation_of(layer: Add | Difference) -> int | None:
    """Return TFLite's number of a sum's activation; None if it has none for its clip."""
    zero_point = getattr(layer.requant, "output_zero_point", 0)
    least, most = limits_of(layer.output)
    return {(least, most): _NO_ACTIVATION, (zero_point, most): _RELU}.get(layer.clip)


def sum_file(
    layer: Add | Difference, shapes: Sequence[Sequence[int]], scales: Sequence[Scaled], kind: int
) -> bytes:
    """Return a file with a sum or difference of two tensors.

    Args:
        layer: the layer.
        shapes, scales: those of operands and result.
        kind: TFLite's number of the activation.
    """
    code, options = _CODES[type(layer)]
    *operands, result = scales
    operator = (code, options, ("int8", kind))
    return _file(shapes, operands, result, operator, _TYPES[layer.output.dtype])


# ------------------------------------------------------------------------ factors


def _floats_from(start: float) -> Array:
    """Return float32 numbers from one on to twice that, whose last bits are not alike."""
    first = np.array([start], np.float32).view(np.int32)
    return (first + np.arange(0, 1 << 23, _STRIDE, dtype=np.int32)).view(np.float32)


def _real(factor: tuple[int, int]) -> float:
    return factor[0] * 2.0 ** (factor[1] - 31)


def _are_fixed_point(reals: Array, factor: tuple[int, int]) -> Array:
    """Return where TFLite makes this multiplier and exponent of real factors."""
    mantissa, exponent = np.frexp(reals)
    multiplier = np.rint(mantissa * 2.0**31).astype(np.int64)
    full = multiplier == 1 << 31
    multiplier, exponent = np.where(full, 1 << 30, multiplier), exponent + full
    return np.asarray((multiplier == factor[0]) & (exponent == factor[1]))


def _first(fitting: Array) -> int | None:
    """Return the first place that fits; None if there is none."""
    return int(fitting.argmax()) if fitting.any() else None


# ------------------------------------------------------------------------ files


def _file(
    shapes: Sequence[Sequence[int]],
    inputs: Sequence[Scaled],
    output: Scaled,
    operator: tuple[int, int, tuple[str, Any]],
    type_: int = _TYPES["int8"],
) -> bytes:
    """Return a file with one operator.

    Args:
        shapes: those of the inputs and the output.
        inputs, output: the tensors.
        operator: its code, the kind of its options, and their first field.
        type_: TFLite's number of the tensors' type.
    """
    import flatbuffers

    builder = flatbuffers.Builder(1 << 10)

    def tensor(number: int, entry: Scaled) -> int:
        scales = {2: ("float32s", [entry.scale]), 3: ("int64s", [entry.zero_point])}
        fields: dict[int, tuple[str, Any]] = {
            0: ("int32s", list(shapes[number])),
            1: ("int8", type_),
            2: ("uint32", 0),
            3: ("text", f"tensor_{number}"),
            4: ("table", table(builder, scales)),
        }
        return table(builder, fields)

    code, options, field = operator
    read = list(range(len(inputs)))
    tensors = [tensor(number, entry) for number, entry in enumerate((*inputs, output))]
    written = table(
        builder,
        {
            0: ("uint32", 0),
            1: ("int32s", read),
            2: ("int32s", [len(inputs)]),
            3: ("uint8", options),
            4: ("table", table(builder, {0: field})),
        },
    )
    graph = table(
        builder,
        {
            0: ("tables", tensors),
            1: ("int32s", read),
            2: ("int32s", [len(inputs)]),
            3: ("tables", [written]),
            4: ("text", "main"),
        },
    )
    root = table(
        builder,
        {
            0: ("uint32", _VERSION),
            1: ("tables", [table(builder, {0: ("int8", code), 3: ("int32", code)})]),
            2: ("tables", [graph]),
            3: ("text", ""),
            4: ("tables", [table(builder, {})]),
        },
    )
    builder.Finish(root, file_identifier=b"TFL3")
    return bytes(builder.Output())
