"""Convolutions and products of matrices: weights, biases and scales, for all kinds of nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.affine.quantization import real_of_sums
from htvm.frontend.onnx.affine.reader import NodeReader
from htvm.frontend.onnx.affine.shapes import in_shape, pending_reshape, unsigned
from htvm.frontend.onnx.affine.unary import limited
from htvm.frontend.onnx.affine.values import Bound, Constant, Pending, View
from htvm.frontend.onnx.windows import Windows, groups_of, sizes_of, windows_of
from htvm.frontend.operators import Activation, Applied, Clip, Quantization
from htvm.frontend.scales import (
    BIAS_TOLERANCE,
    QuantizedProduct,
    Rounding,
    WideProduct,
    folded_bias,
    padded,
)
from patterns.op import INT8
from patterns.ops.convolution import Conv2dSums, Window
from patterns.ops.dense import LinearSums
from patterns.ops.integer.rescale import Rescale
from patterns.ops.tflite.wide import LARGEST_SUM

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Weight:
    """Weights of a layer.

    Attributes:
        data: int8, or int16 if some do not fit int8; output channels first.
        scale: float32, one or one per output channel.
    """

    data: Array
    scale: Array


def weight_of(node: OnnxNode, constant: Constant, channel_axis: int) -> Weight:
    """Return the weights minus their zero point, with output channels moved to the front.

    Raises:
        UnsupportedError: they are not quantized, or scales are along other axes.
    """
    if constant.scale is None:
        raise node.unsupported(
            "its weights are reals", "quantize them: DequantizeLinear of int8 or uint8"
        )
    if constant.data.dtype.name not in ("int8", "uint8"):
        raise node.unsupported(
            f"weights of type {constant.data.dtype}", "int8 and uint8 are supported"
        )
    if constant.data.ndim <= channel_axis:
        raise node.damaged(f"weights of shape {list(constant.data.shape)}")
    centred = constant.centred
    narrow = centred.min(initial=0) >= -128 and centred.max(initial=0) <= 127
    check_scales(node, constant)
    scale = np.moveaxis(constant.scale, channel_axis, 0)
    if scale.size not in (1, scale.shape[0]):
        raise node.unsupported(
            f"weight scales along an axis other than the output channels ({channel_axis})",
            "quantize per tensor or per output channel",
        )
    moved = np.moveaxis(centred, channel_axis, 0)
    data = np.asarray(moved.astype("int8" if narrow else "int16"), order="C")
    return Weight(data, scale.reshape(-1))


def check_scales(node: OnnxNode, constant: Constant) -> None:
    """Check that scales lie along one axis of weights.

    Raises:
        UnsupportedError: a move has spread them over several, or there is one for each block.
    """
    if constant.spread:
        assert constant.scale is not None
        axes = [axis for axis, size in enumerate(constant.scale.shape) if size > 1]
        raise node.unsupported(
            f"weights with scales along axes {axes}, as {constant.spread}, leaves them",
            "quantize per tensor, or per output channel, and move that axis as a whole",
        )


def _bias(
    node: OnnxNode, bias: Constant | None, channels: int, step: Quantization, weight: Weight
) -> Array:
    """Return the bias per output channel in steps of s_in * s_w, int32 [K].

    Raises:
        ModelError: it has another number of channels.
        UnsupportedError: it does not fit int32.
    """
    if bias is None:
        return np.zeros(channels, "int32")
    _check_size(node, bias, channels)
    product = np.float64(step.scale) * weight.scale.astype("float64")
    if _in_steps(bias, product):
        values = bias.centred.reshape(-1).astype("float64")
    else:
        values = bias.real.reshape(-1).astype("float64") / product
    return _int32(node, np.broadcast_to(values, (channels,)))


def _split_bias(
    node: OnnxNode, bias: Constant | None, channels: int, step: Quantization, weight: Weight
) -> tuple[Array, Array]:
    """Return the bias in whole steps of s_in * s_w, int64 [K], and the rest, float64 [K].

    Raises:
        ModelError, UnsupportedError: see `_bias`.
    """
    if bias is None:
        return np.zeros(channels, "int64"), np.zeros(channels)
    _check_size(node, bias, channels)
    product = np.float64(np.float32(step.scale)) * weight.scale.astype("float64")
    values = bias.real.astype("float32").reshape(-1).astype("float64") / product
    values = np.broadcast_to(values, (channels,))
    whole = np.rint(values)
    if not np.abs(whole).max(initial=0) < LARGEST_SUM:
        raise node.unsupported("a bias that does not fit 48 bits", "use a larger weight scale")
    return whole.astype("int64"), values - whole


def _in_steps(bias: Constant, product: Array) -> bool:
    """Whether a bias is integers in steps of s_in * s_w."""
    if bias.scale is None:
        return False
    given = bias.scale.reshape(-1).astype("float64")
    return bool(np.all(np.abs(given - product) <= BIAS_TOLERANCE * product))


def _parted(
    node: OnnxNode, bias: Constant | None, channels: int, step: Quantization, weight: Weight
) -> tuple[Array, Array | None]:
    """Return what to add to sums that stay real: int32 in their steps, and float32 behind them.

    Steps of few bits are coarse, so a bias of reals is not rounded to them where nothing asks for
    it, as no session of onnxruntime does.

    Raises:
        ModelError, UnsupportedError: see `_bias`.
    """
    product = np.float64(step.scale) * weight.scale.astype("float64")
    if bias is None or _in_steps(bias, product):
        return _bias(node, bias, channels, step, weight), None
    _check_size(node, bias, channels)
    real = np.broadcast_to(bias.real.reshape(-1).astype("float32"), (channels,))
    return np.zeros(channels, "int32"), np.asarray(real, order="C")


def _check_size(node: OnnxNode, bias: Constant, channels: int) -> None:
    if bias.data.size not in (1, channels):
        raise node.damaged(f"a bias of {bias.data.size} values for {channels} output channels")


def _int32(node: OnnxNode, values: Array) -> Array:
    rounded = np.rint(values)
    if not np.all(np.isfinite(rounded)) or np.abs(rounded).max(initial=0) > _INT32_MAX:
        raise node.unsupported("a bias that does not fit int32", "use a larger weight scale")
    return rounded.astype("int32")


def _ratios(
    step: Quantization, weight: Weight, output: Quantization, rounding: Rounding
) -> tuple[float, ...]:
    """Return s_in * s_w / s_out, each step rounded to float32 where onnxruntime does that."""
    if rounding == "torch":
        # What torch multiplies by: float32 numbers, among them the reciprocal of the scale.
        inverse = float(np.float32(1.0 / output.scale))
        ratios = float(np.float32(step.scale)) * weight.scale.astype("float64") * inverse
        return tuple(ratios[:1] if np.all(ratios == ratios[0]) else ratios)
    wide = np.dtype("float32" if rounding == "onnx" else "float64").type
    ratios = wide(step.scale) * weight.scale.astype(wide) / wide(output.scale)
    if np.all(ratios == ratios[0]):
        ratios = ratios[:1]
    return tuple(float(ratio) for ratio in ratios)


def _product(
    node: NodeReader,
    bias: Constant | None,
    weight: Weight,
    steps: tuple[Quantization, Quantization],
    clip: Clip,
    dtypes: tuple[str, str] = ("int8", "int8"),
) -> QuantizedProduct:
    step, output = steps
    fractions = None
    if node.reader.rounding == "torch":
        summands, fractions = _split_bias(node, bias, len(weight.data), step, weight)
        whole = _int32(node, summands)
    else:
        whole = _bias(node, bias, len(weight.data), step, weight)
    return QuantizedProduct(
        weight=weight.data,
        bias=whole,
        ratios=_ratios(step, weight, output, node.reader.rounding),
        zero_points=(step.zero_point, output.zero_point),
        clip=clip,
        where=node.where,
        rounding=node.reader.rounding,
        fractions=fractions,
        dtypes=dtypes,
    )


def _finished(
    node: NodeReader,
    bias: Constant | None,
    weight: Weight,
    view: View,
    output: Quantization,
    clip: Clip,
    written: Callable[[QuantizedProduct | WideProduct, Activation], Applied],
) -> Activation:
    """Return the result of a layer; what torch has from 0 on in int8 stays uint8 until it is read.

    Layers that shift alone then add no offset and pad with zeros, as accelerators have them.
    """
    if view.dtype == "int16":
        whole, fractions = _split_bias(node, bias, len(weight.data), view.step, weight)
        ratios = _ratios(view.step, weight, output, node.reader.rounding)
        zeros = view.step.zero_point, output.zero_point
        wide = WideProduct(weight.data, whole, ratios, clip, node.where, zeros, fractions)
        return node.result(written(wide, view.activation), output)
    read = unsigned(node, view.activation) if node.reader.rounding == "torch" else None
    step, source = view.step, view.activation
    if read is not None:
        step, source = replace(step, zero_point=step.zero_point - INT8[0]), read
    if node.reader.rounding == "torch" and output.zero_point == INT8[0]:
        outer = replace(output, zero_point=0)
        ends = clip[0] - INT8[0], clip[1] - INT8[0]
        product = _product(node, bias, weight, (step, outer), ends, (source.dtype, "uint8"))
        if product.shifts is not None:
            made = node.result(written(product, source), outer)
            centred = Rescale.moving(INT8[0], INT8, "int8")
            return node.write(centred, made, step=output)
    product = _product(node, bias, weight, (step, output), clip, (source.dtype, "int8"))
    return node.result(written(product, source), output)


# ------------------------------------------------------------------------------ convolution


def convolution(
    node: NodeReader,
    view: View,
    weight: Weight,
    windows: Windows,
    bias: Constant | None,
) -> Pending:
    """Return a convolution of maps in the windows' layout, pending until it is quantized."""
    source, step = view.activation, view.step
    if len(source.shape) != 4 or weight.data.ndim != 4:
        raise node.unsupported(
            f"a convolution of shape {list(source.shape)} with {list(weight.data.shape)}",
            "two spatial axes are supported; give a one-dimensional one a height of 1",
        )
    axis = 3 if windows.layout == "NHWC" else 1
    batch, channels = source.shape[0], source.shape[axis]
    groups, k = groups_of(node, channels, weight.data.shape), len(weight.data)
    if batch != 1:
        raise node.unsupported(f"a batch of {batch}", "only a batch of 1 is supported")
    shape, window = windows.results(source.shape, k), windows.filter(groups)

    def written(product: QuantizedProduct | WideProduct, read: Activation) -> Applied:
        return product.convolved(read, window, lambda _: node.reader.position())

    def finish(output: Quantization, clip: Clip, extra: Constant | None) -> Activation:
        return _finished(node, extra, weight, view, output, clip, written)

    def real_form(bound: Bound, extra: Constant | None) -> Activation:
        position = node.reader.position
        read, inside = padded(source, window, step.zero_point, lambda _: position(), node.where)
        whole, more = _parted(node, extra, k, step, weight)
        summands = _folded(node, whole, weight.data, step)
        sums = node.write(Conv2dSums(weight.data, summands, inside), read)
        more = None if more is None else more[None, :, None, None]
        return _real_product(node, sums, (view, weight, more), bound)

    return _pending(view, shape, finish, real_form, axis, bias)


def _pending(
    view: View,
    shape: tuple[int, ...],
    finish: Callable[[Quantization, Clip, Constant | None], Activation],
    real_form: Callable[[Bound, Constant | None], Activation],
    axis: int,
    bias: Constant | None,
) -> Pending:
    """Return a layer's result, pending until it is quantized; sums of int16 may exceed int32."""
    wide = view.dtype == "int16"
    form, dtype = (None, "int16") if wide else (real_form, "int8")
    return Pending(shape, finish, form, bias_axis=axis, bias=bias, dtype=dtype)


def filtered(node: NodeReader, view: View, constant: Constant, bias: Constant | None) -> Pending:
    """Return the convolution of a node's maps, of one or two spatial axes, with its weights."""
    maps, wide, flat = with_maps(node, view, constant)
    weight = weight_of(node, wide, 0)
    kernel = weight.data.shape[3 if flat else 2 :]
    sizes = sizes_of(node, maps.shape)
    windows = windows_of(node, sizes[1:] if flat else sizes, kernel, one_axis=flat)
    pending = convolution(node, maps, weight, windows, bias)
    return unflattened(node, pending, flat)


def with_maps(node: NodeReader, view: View, constant: Constant) -> tuple[View, Constant, bool]:
    """Return input and weights with a height of 1, if they have only one spatial axis.

    Returns:
        The input, the weights, and whether the file has only one spatial axis.
    """
    if len(view.shape) != 3 or constant.data.ndim != 3:
        return view, constant, False
    n, c, x = view.shape
    maps = in_shape(node, view, (n, c, 1, x))
    assert isinstance(maps, View)
    parts = (constant.data, constant.scale, constant.zero_point)
    data, scale, zero = (None if part is None else part[:, :, None] for part in parts)
    assert data is not None
    return maps, Constant(data, scale, zero, constant.spread), True


def unflattened(node: NodeReader, pending: Pending, flat: bool) -> Pending:
    """Return a result without its height of 1, if the file has only one spatial axis."""
    if not flat:
        return pending
    n, k, _, x = pending.shape
    return pending_reshape(node, pending, (n, k, x))


def _folded(node: OnnxNode, bias: Array, weight: Array, step: Quantization) -> Array:
    """Return the bias with the input's zero point folded in."""
    return _int32(node, folded_bias(weight, bias, step.zero_point))


def _real_product(
    node: NodeReader,
    sums: Activation,
    factors: tuple[View, Weight, Array | None],
    bound: Bound,
) -> Activation:
    """Return the reals that sums stand for, of an input, weights and a bias of reals."""
    view, weight, more = factors
    scale = np.asarray(np.float32(view.step.scale) * weight.scale, "float32")
    real = real_of_sums(node, sums, scale, 1)
    if more is not None:
        real = node.combine("add", real, more)
    return limited(node, real, bound)


# ------------------------------------------------------------------------------ matrices


def matrix_product(node: NodeReader, view: View, weight: Weight, bias: Constant | None) -> Pending:
    """A product of a tensor (..., C) and constant weights [K, C], pending until quantized."""
    shape, step = view.shape, view.step
    k, channels = weight.data.shape
    if not shape or shape[-1] != channels:
        raise node.damaged(f"a product of {list(shape)} with weights of {channels} rows")
    rows, result = math.prod(shape[:-1]), (*shape[:-1], k)

    def flat(read: Activation) -> Activation:
        return node.reshape(read, (rows, channels))

    def written(product: QuantizedProduct | WideProduct, read: Activation) -> Applied:
        if isinstance(product, WideProduct):  # a row of pixels
            pixels = node.reshape(read, (1, 1, rows, channels))
            return product.convolved(pixels, Window(), lambda _: node.reader.position())
        return product.dense(flat(read), node.reader.position())

    def finish(output: Quantization, clip: Clip, extra: Constant | None) -> Activation:
        made = _finished(node, extra, weight, view, output, clip, written)
        return node.reshape(made, result, output)

    def real_form(bound: Bound, extra: Constant | None) -> Activation:
        whole, more = _parted(node, extra, k, step, weight)
        summands = _folded(node, whole, weight.data, step)
        sums = node.write(LinearSums(weight.data, summands), flat(view.activation))
        return node.reshape(_real_product(node, sums, (view, weight, more), bound), result)

    return _pending(view, result, finish, real_form, len(result) - 1, bias)
