"""What a layer computes, in numpy: what the accelerator's results are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from byoc_dory.layers import (
    Array,
    Concatenation,
    Convolution,
    Dense,
    Difference,
    Doubling,
    Elementwise,
    Interleaving,
    Layer,
    MulShift,
    OnnxRequant,
    OnnxSum,
    Padding,
    Pool,
    Product,
    Repetition,
    Requant,
    Reshaping,
    Rows,
    Shift,
    Slicing,
    Tensor,
    TfliteRequant,
    TorchRequant,
    doubling_weights,
)
from byoc_dory.layers.rowwise import FixedPointSoftmax, TableMap

ADD_BITS = 20
"""Fraction bits that TFLite gives the operands of a sum of bytes."""
WIDE_ADD_BITS = 15
"""Those of a sum of int16."""


def add_bits(dtype: str) -> int:
    """Return the fraction bits that TFLite gives the operands of a sum of this type."""
    return WIDE_ADD_BITS if dtype == "int16" else ADD_BITS


def scaled_as_tflite(values: Array, multiplier: int, exponent: int) -> Array:
    """Return ``values * multiplier * 2**(exponent - 31)`` with TFLite's two roundings.

    Args:
        values: int64 whose products with the multiplier fit 63 bits.
        multiplier: of 31 bits.
        exponent: positive: a left shift before the product.
    """
    product = (values.astype(np.int64) << max(exponent, 0)) * np.int64(multiplier)
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    high = np.where(nudged >= 0, nudged >> 31, -((-nudged) >> 31))
    shift = max(-exponent, 0)
    mask = (1 << shift) - 1
    threshold = (mask >> 1) + (high < 0)
    return (high >> shift) + ((high & mask) > threshold)


def requantized(sums: Array, requant: Requant, channel_axis: int = -1) -> Array:
    """Return what the sums of a layer become, before the clip; int64.

    Raises:
        NotImplementedError: of an analog core's converters.
    """

    def wide(entries: Sequence[int]) -> Array:
        shape = [1] * sums.ndim
        if len(entries) > 1:
            shape[channel_axis] = len(entries)
        return np.array(entries, np.int64).reshape(shape)

    acc = sums.astype(np.int64)
    if isinstance(requant, TfliteRequant):
        out = np.empty_like(acc)
        multiplier, exponent = np.broadcast_arrays(wide(requant.multiplier), wide(requant.shift))
        for pair in sorted(
            {*zip(multiplier.ravel().tolist(), exponent.ravel().tolist(), strict=True)}
        ):
            chosen = np.broadcast_to((multiplier == pair[0]) & (exponent == pair[1]), acc.shape)
            out[chosen] = scaled_as_tflite(acc[chosen], *pair)
        return out + requant.output_zero_point
    if isinstance(requant, OnnxRequant):
        scale = (wide(requant.multiplier) * 2.0 ** -wide(requant.shift)).astype(np.float32)
        product = acc.astype(np.float32) * scale
        return np.rint(product).astype(np.int64) + requant.output_zero_point
    if isinstance(requant, TorchRequant):
        total, bits = acc * wide(requant.multiplier) + wide(requant.addend), wide(requant.shift)
        even = total >> bits & 1
        return ((total + (1 << (bits - 1)) - 1 + even) >> bits) + requant.output_zero_point
    if isinstance(requant, MulShift):
        return (acc * wide(requant.mul) + wide(requant.add)) >> wide(requant.shift)
    if isinstance(requant, Shift):
        return acc >> requant.shift
    raise NotImplementedError(type(requant).__name__)


def combined(layer: Elementwise, a: Array, b: Array) -> Array:
    """Return the sum, difference or product of two tensors, before the clip; int64.

    Raises:
        NotImplementedError: its requantization is another's.
    """
    requant, first, second = layer.requant, a.astype(np.int64), b.astype(np.int64)
    if isinstance(layer, Product):
        assert isinstance(requant, TfliteRequant)
        zeros = requant.input_zero_points
        return requantized((first - zeros[0]) * (second - zeros[-1]), requant)
    if isinstance(requant, OnnxSum):
        return _added_as_onnxruntime(requant, first, second)
    if isinstance(requant, Shift | MulShift):
        return requantized(first + second, requant)
    if isinstance(requant, TfliteRequant) and len(requant.multiplier) == 3:
        signs = (1, -1 if isinstance(layer, Difference) else 1)
        bits = add_bits(layer.output.dtype)
        total: Array = np.zeros((), np.int64)
        for x, sign, zero, multiplier, exponent in zip(
            (first, second),
            signs,
            requant.input_zero_points,
            requant.multiplier,
            requant.shift,
            strict=False,
        ):
            total = total + sign * scaled_as_tflite((x - zero) << bits, multiplier, exponent)
        scaled = scaled_as_tflite(total, requant.multiplier[2], requant.shift[2])
        return scaled + requant.output_zero_point
    raise NotImplementedError(type(requant).__name__)


def _added_as_onnxruntime(requant: OnnxSum, a: Array, b: Array) -> Array:
    """Return a sum as `OnnxSum` defines it: int64 in steps of the finest factor, or float32."""
    zeros, zero = requant.input_zero_points, requant.output_zero_point
    if requant.steps:
        steps = np.array(requant.steps, np.float32)
        first, second = (
            (x - z).astype(np.float32) * step
            for x, z, step in zip((a, b), zeros, steps, strict=False)
        )
        return np.rint((first + second) / steps[2]).astype(np.int64) + zero
    bits = max(requant.shift)
    factors = [m << (bits - s) for m, s in zip(requant.multiplier, requant.shift, strict=True)]
    offset = requant.offset
    terms = [(x + offset) * factor for x, factor in zip((a, b), factors, strict=True)]
    fixed = [np.int64((z + offset) * factor) for z, factor in zip(zeros, factors, strict=True)]
    if requant.turned:
        terms, fixed = terms[::-1], fixed[::-1]
    constant = np.int64((zero + offset) << bits) - _float32(fixed[0] + _float32(fixed[1]))
    total = _float32(_float32(terms[1] + _float32(constant)) + terms[0])
    return np.asarray(np.rint(total * 2.0**-bits).astype(np.int64) - offset)


def _float32(values: Array) -> Array:
    """Return int64 rounded to float32's 24 bits, ties to even."""
    return values.astype(np.float32).astype(np.int64)


def compute(layer: Layer, inputs: Sequence[Array]) -> Array:
    """Return a layer's result: maps ``[y, x, C]``, matrices ``[rows, C]``, vectors ``[C]``.

    Args:
        layer: a layer that the accelerator's rules accept.
        inputs: its inputs, likewise.
    """
    if isinstance(layer, Convolution):
        return _clipped(layer, requantized(_convolved(layer, inputs[0]), layer.requant))
    if isinstance(layer, Dense):
        zero = zero_points_of(layer.requant)[0]
        weight = layer.weight.reshape(layer.K, layer.C).astype(np.int64)
        sums = weight @ (inputs[0].reshape(-1).astype(np.int64) - zero)
        sums = sums if layer.bias is None else sums + layer.bias
        return _clipped(layer, requantized(sums, layer.requant))
    if isinstance(layer, Elementwise):
        return _clipped(layer, combined(layer, inputs[0], inputs[-1]))
    if isinstance(layer, Pool):
        return _pooled(layer, inputs[0])
    if isinstance(layer, Padding):
        top, left, bottom, right = layer.sizes
        sides = ((top, bottom), (left, right), (0, 0))
        return np.pad(inputs[0], sides, constant_values=layer.value)
    if isinstance(layer, Repetition):
        return inputs[0].repeat(layer.factor, 0).repeat(layer.factor, 1)
    if isinstance(layer, Doubling):
        rows, columns = (doubling_weights(size, layer.centred) for size in (layer.iy, layer.ix))
        sums = np.einsum("ay,bx,yxc->abc", rows, columns, inputs[0].astype(np.int64))
        return (np.sign(sums) * ((np.abs(sums) + 8) >> 4)).astype(np.int8)
    if isinstance(layer, Interleaving):
        return _spread(layer, inputs[0])
    if isinstance(layer, Slicing):
        sizes = zip(stored_shape(layer.begin), stored_shape(layer.output.shape), strict=True)
        return inputs[0][tuple(slice(first, first + count) for first, count in sizes)]
    if isinstance(layer, Concatenation):
        axes = stored_shape(tuple(range(len(layer.output.shape))))
        return np.concatenate(inputs, axes.index(layer.axis))
    if isinstance(layer, Rows) and isinstance(layer.function, TableMap):
        return layer.function.table.view(np.int8)[inputs[0].view(np.uint8)]
    if isinstance(layer, Rows) and isinstance(layer.function, FixedPointSoftmax):
        return _softmax(layer.function, inputs[0].reshape(-1, layer.K)).reshape(inputs[0].shape)
    assert isinstance(layer, Reshaping), type(layer).__name__
    return inputs[0].reshape(-1)


def run(layers: Sequence[Layer], given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the tensors that layers compute one after another, by name, with those given.

    Tensors are as `compute` has them.
    """
    known = dict(given)
    for layer in layers:
        shaped = [known[t.name].reshape(stored_shape(t.shape)) for t in layer.inputs]
        known[layer.output.name] = compute(layer, shaped)
    return known


def stored_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a tensor's rows of channels: ``[y, x, C]`` or ``[C]``."""
    return shape if len(shape) == 1 else (*shape[1:], shape[0])


def zero_points_of(requant: Requant) -> tuple[int, ...]:
    """Return the zero points of a layer's inputs."""
    if isinstance(requant, TfliteRequant | OnnxRequant | TorchRequant):
        return requant.input_zero_points
    return (0,)


def output_zero_point_of(layer: Layer) -> int:
    """Return the zero point of a layer's result."""
    return int(getattr(layer.requant, "output_zero_point", 0))


def limits_of(tensor: Tensor) -> tuple[int, int]:
    """Return the least and the largest number of a tensor's type."""
    limits = np.iinfo(tensor.dtype)
    return int(limits.min), int(limits.max)


def _clipped(layer: Layer, values: Array) -> Array:
    return np.clip(values, *layer.clip).astype(layer.output.dtype)


def _convolved(layer: Convolution, x: Array) -> Array:
    zero = zero_points_of(layer.requant)[0]
    top, left, bottom, right = layer.pad
    padded = np.pad(x.astype(np.float64) - zero, ((top, bottom), (left, right), (0, 0)))
    (sy, sx), (dy, dx) = layer.stride, layer.dilation
    sums = np.zeros((layer.oy, layer.ox, layer.K))
    weight = layer.weight.astype(np.float64)
    each, made = layer.C // layer.groups, layer.K // layer.groups
    for i, j in np.ndindex(layer.fy, layer.fx):
        y, x0 = i * dy, j * dx
        taken = padded[y : y + (layer.oy - 1) * sy + 1 : sy, x0 : x0 + (layer.ox - 1) * sx + 1 : sx]
        if each == 1:
            sums += np.repeat(taken, made, axis=2) * weight[:, 0, i, j]
            continue
        for group in range(layer.groups):
            outputs = slice(group * made, (group + 1) * made)
            part = taken[..., group * each : (group + 1) * each]
            sums[..., outputs] += part @ weight[outputs, :, i, j].T
    found = sums.astype(np.int64)  # exact: far below 2**53
    return found if layer.bias is None else found + layer.bias


def _spread(layer: Interleaving, x: Array) -> Array:
    out = np.full((layer.oy, layer.ox, layer.K), layer.value, x.dtype)
    part = out[layer.start[0] :: layer.distance[0], layer.start[1] :: layer.distance[1]]
    rows, columns = (min(sizes) for sizes in zip(part.shape[:2], x.shape[:2], strict=True))
    part[:rows, :columns] = x[:rows, :columns]
    return out


def _pooled(layer: Pool, x: Array) -> Array:
    top, left, bottom, right = layer.pad
    average = layer.function == "average"
    sides = ((top, bottom), (left, right), (0, 0))
    outside = 0 if average else limits_of(layer.output)[0]
    padded = np.pad(x.astype(np.int64), sides, constant_values=outside)
    counted = np.pad(np.ones(x.shape[:2], np.int64), sides[:2])
    out = np.zeros((layer.oy, layer.ox, layer.K), np.int64)
    for y, z in np.ndindex(layer.oy, layer.ox):
        window = (
            slice(y * layer.stride[0], y * layer.stride[0] + layer.fy),
            slice(z * layer.stride[1], z * layer.stride[1] + layer.fx),
        )
        if average:
            total, count = padded[window].sum((0, 1)), counted[window].sum()
            away = (np.abs(total) + count // 2) // count
            out[y, z] = np.where(total < 0, -away, away)
        else:
            out[y, z] = padded[window].max((0, 1))
    return _clipped(layer, out)


# ------------------------------------------------------------------------ softmax

_INTEGER_BITS = 5
_SUM_BITS = 12


def _high(a: int, b: int) -> int:
    """Return the rounded high half of twice a product (SaturatingRoundingDoublingHighMul)."""
    product = a * b
    nudged = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    return nudged >> 31 if nudged >= 0 else -((-nudged) >> 31)


def _shifted(value: int, shift: int) -> int:
    """Return a rounded right shift, halves away from zero."""
    mask = (1 << shift) - 1
    return (value >> shift) + int((value & mask) > (mask >> 1) + (value < 0))


def exponential(value: int) -> int:
    """Return ``exp`` of a non-positive Q5.26 number as Q0.31, as gemmlowp computes it."""
    quarter = 1 << (31 - _INTEGER_BITS - 2)
    rest = (value & (quarter - 1)) - quarter
    x = (rest << _INTEGER_BITS) + (1 << 28)
    square = _high(x, x)
    cube = _high(square, x)
    fourth = _shifted(_high(square, square), 2)
    polynomial = _shifted(_high(fourth + cube, 715827883) + square, 1)
    result = 1895147668 + _high(1895147668, x + polynomial)
    remainder = rest - value
    factors = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
    for bit, factor in zip(range(-2, _INTEGER_BITS), factors, strict=True):
        if remainder >> (31 - _INTEGER_BITS + bit) & 1:
            result = _high(result, factor)
    return (1 << 31) - 1 if value == 0 else result


def exponentials(function: FixedPointSoftmax) -> Array:
    """Return the 256 exponentials of a softmax by distance from the largest, Q0.31."""
    shift = function.left_shift
    largest = int(((1 << _INTEGER_BITS) - 1) * 2.0 ** (31 - _INTEGER_BITS - shift))
    found = [
        exponential(_high(-(d << shift), function.multiplier)) if d <= largest else 0
        for d in range(256)
    ]
    return np.array(found, np.int64)


def _softmax(function: FixedPointSoftmax, rows: Array) -> Array:
    table = exponentials(function)
    out = np.empty(rows.shape, np.int8)
    for number, row in enumerate(rows.astype(np.int64)):
        values = [int(table[d]) for d in row.max() - row]
        total = sum(_shifted(value, _SUM_BITS) for value in values)
        zeros = 32 - total.bit_length()
        half = (total << zeros) >> 1  # of one plus a number in Q0.31
        root = 1515870810 + _high(half, -1010580540)
        for _ in range(3):
            error = (1 << 29) - _high(half, root)
            root = root + (_high(root, error) << 2)
        scale = root << 1
        scale = min(scale, (1 << 31) - 1)
        for place, value in enumerate(values):
            found = _shifted(_high(scale, value), min(_SUM_BITS - zeros + 31 - 8, 31)) - 128
            out[number, place] = min(max(found, -128), 127)
    return out
