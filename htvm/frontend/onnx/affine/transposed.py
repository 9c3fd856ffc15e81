"""Transposed convolutions: convolutions of the input spread over zeros, with turned filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.affine.products import (
    check_scales,
    convolution,
    unflattened,
    weight_of,
    with_maps,
)
from htvm.frontend.onnx.affine.reader import Handler, NodeReader
from htvm.frontend.onnx.affine.real_layers import maps_of, result_of
from htvm.frontend.onnx.affine.values import Constant, Value, View
from htvm.frontend.onnx.windows import CHANNELS_LAST, Windows
from htvm.frontend.operators import Activation, Pair
from patterns.ops.float32.maps import RealConv2d
from patterns.ops.moves.pad import Interleave, PadAxes
from patterns.ops.moves.reshape import Slice

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode


@dataclass(frozen=True)
class _Geometry:
    """A transposed convolution as a convolution of spread maps.

    Attributes:
        groups: number of groups.
        strides: distance (y, x) of the input's elements in the spread maps.
        before, after: zeros (y, x) around them; negative ones take rows and columns away.
        windows: the convolution's windows on the spread maps, without padding.
    """

    groups: int
    strides: Pair
    before: Pair
    after: Pair
    windows: Windows


def _geometry(
    node: OnnxNode, source: tuple[int, ...], weight: tuple[int, ...], count: int
) -> _Geometry:
    """Return the geometry for maps (N, C, y, x) and weights (C, K / groups, fy, fx).

    Args:
        node: the node.
        source, weight: shapes.
        count: number of spatial axes in the file; with one, the height is 1.
    """
    groups, channels = node.integer("group", 1), source[1]
    fits = len(source) == len(weight) == 4 and weight[0] == channels
    if not fits or groups < 1 or channels % groups:
        raise node.damaged(f"weights of shape {list(weight)} for {channels} channels")
    kernel = (weight[2], weight[3])
    if tuple(node.integers("kernel_shape", kernel[-count:])) != kernel[-count:]:
        raise node.damaged(f"kernel_shape, but weights of {kernel}")

    def pair(name: str, default: int) -> Pair:
        values = node.integers(name, (default,) * count)
        if len(values) != count or min(values) < (name != "output_padding"):
            raise node.damaged(f"attribute '{name}' is {values}")
        return (values[0] if count == 2 else default), values[-1]

    strides, dilation, extra = pair("strides", 1), pair("dilations", 1), pair("output_padding", 0)
    padding = _padding(node, source[2:], kernel, strides, dilation, extra, count)
    before, after, sizes, outputs = [], [], [], []
    for axis in (0, 1):
        reach = dilation[axis] * (kernel[axis] - 1)
        before.append(reach - padding[axis])
        after.append(reach - padding[axis + 2] + extra[axis])
        sizes.append((source[axis + 2] - 1) * strides[axis] + 1 + before[axis] + after[axis])
        outputs.append(sizes[axis] - reach)
    if min(sizes) < 1 or min(outputs) < 1:
        raise node.damaged(f"an output of {outputs}")
    windows = Windows(
        kernel, (1, 1), (0, 0, 0, 0), dilation, (outputs[0], outputs[1]), (sizes[0], sizes[1])
    )
    return _Geometry(groups, strides, (before[0], before[1]), (after[0], after[1]), windows)


def _turned(weight: Array, groups: int) -> Array:
    """Return filters (C, K / groups, fy, fx) as those of a convolution (K, C / groups, fy, fx)."""
    channels, each, *kernel = weight.shape
    parts = weight[:, :, ::-1, ::-1].reshape(groups, channels // groups, each, *kernel)
    parts = parts.transpose(0, 2, 1, 3, 4).reshape(groups * each, channels // groups, *kernel)
    return np.asarray(parts, order="C")


# ------------------------------------------------------------------------------ integers


def conv_transpose(node: NodeReader) -> Value:
    """Return the integers' product, rounded once, or that of reals if something is one."""
    view, constant = node.value(0), node.value(1)
    bias = node.value(2) if node.input(2) else None
    whole = isinstance(view, View) and isinstance(constant, Constant) and constant.scale is not None
    if not whole or not isinstance(bias, Constant | None):
        return _of_reals(node)
    assert isinstance(view, View) and isinstance(constant, Constant)
    check_scales(node, constant)
    view, constant, flat = with_maps(node, view, constant)
    layout = "NHWC" if node.domain == CHANNELS_LAST else "NCHW"
    shape = view.shape if layout == "NCHW" else (view.shape[0], view.shape[3], *view.shape[1:3])
    made = _geometry(node, shape, constant.data.shape, 1 if flat else 2)
    assert constant.scale is not None and constant.zero_point is not None
    full = constant.data.shape
    scale, zeros = (
        _turned(np.broadcast_to(item, (full[0], full[1], 1, 1)), made.groups)
        if item.shape[0] in (1, full[0]) and item.shape[2:] == (1, 1)
        else None
        for item in (constant.scale, constant.zero_point)
    )
    if scale is None or zeros is None or (scale != scale[:, :1]).any():
        raise node.unsupported(
            "weight scales along an axis other than the output channels (1)",
            "quantize per tensor or per output channel",
        )
    turned = Constant(_turned(constant.data, made.groups), scale[:, :1], zeros[:, :1])
    step, sizes = view.step, made.windows.sizes
    op = Interleave(step.zero_point, sizes, made.before, made.strides, layout)
    spread = node.write(op, view.activation, step=step)
    maps, weight = View(spread, step, view.dtype), weight_of(node, turned, 0)
    windows = replace(made.windows, layout=layout)
    pending = convolution(node, maps, weight, windows, bias)
    return unflattened(node, pending, flat)


# ------------------------------------------------------------------------------ reals


def _of_reals(node: NodeReader) -> Value:
    source, flat = maps_of(node)
    weight = node.constant(1, "weights")
    if weight.ndim != (3 if flat else 4):
        raise node.damaged(
            f"weights of shape {list(weight.shape)} for maps of {1 if flat else 2} axes"
        )
    weight = weight[:, :, None] if flat else weight
    made = _geometry(node, source.shape, weight.shape, 1 if flat else 2)
    k = weight.shape[1] * made.groups
    bias = node.vector(2, k, "bias") if node.input(2) else np.zeros(k, "float32")
    spread = _spread(node, source, made.strides)
    for axis in (0, 1):
        spread = _cropped(node, spread, axis + 2, made.before[axis], made.after[axis])
    (top, left), (bottom, right) = ((max(y, 0), max(x, 0)) for y, x in (made.before, made.after))
    pads = (top, left, bottom, right)
    filters, dilation = _turned(weight, made.groups), made.windows.dilation
    op = RealConv2d(filters, bias, (1, 1), pads, dilation, made.groups)
    return result_of(node, node.write(op, spread), flat)


def _padding(
    node: OnnxNode,
    sizes: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    extra: Sequence[int],
    count: int,
) -> tuple[int, ...]:
    """Return (top, left, bottom, right) of a transposed convolution."""
    mode = node.text("auto_pad", "NOTSET")
    full = [
        stride * (size - 1) + more + step * (taps - 1) + 1
        for stride, size, more, step, taps in zip(
            strides, sizes, extra, dilation, kernel, strict=True
        )
    ]
    wanted: Sequence[int] | None = None
    if "output_shape" in node.attributes:
        wanted = (1, *node.integers("output_shape"))[-2:]
        if len(wanted) != len(full):
            raise node.damaged(f"attribute 'output_shape' is {list(wanted[1:])}")
        if any(extra):
            raise node.unsupported("output_shape and output_padding", "one of the two")
        if mode == "NOTSET":
            node.ignore("pads")
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    if wanted is None:
        pads = node.integers("pads", (0,) * (2 * count)) if mode == "NOTSET" else (0,) * 2 * count
        if len(pads) != 2 * count or min(pads) < 0:
            raise node.damaged(f"attribute 'pads' is {pads}")
        return pads if count == 2 else (0, pads[0], 0, pads[1])
    total = [max(a - b, 0) for a, b in zip(full, wanted, strict=True)]
    if any(b > a for a, b in zip(full, wanted, strict=True)):
        raise node.unsupported(f"an output of {list(wanted)} from {full}", "output_padding")
    small, large = [n // 2 for n in total], [n - n // 2 for n in total]
    first, last = (small, large) if mode == "SAME_UPPER" else (large, small)
    if mode == "NOTSET":
        first, last = (large, small)
    return (*first, *last)


def _spread(node: NodeReader, source: Activation, strides: Sequence[int]) -> Activation:
    """Return maps with ``stride - 1`` zeros between neighbours."""
    if tuple(strides) == (1, 1):
        return source
    n, c, y, x = source.shape
    sy, sx = strides
    widths = ((0, 0), (0, 0), (0, 0), (0, sy - 1), (0, 0), (0, sx - 1))
    filled = node.write(PadAxes(0, widths), node.reshape(source, (n, c, y, 1, x, 1)))
    wide = node.reshape(filled, (n, c, y * sy, x * sx))
    kept = (n, c, (y - 1) * sy + 1, (x - 1) * sx + 1)
    return node.write(Slice.every((0, 0, 0, 0), kept), wide)


def _cropped(
    node: NodeReader, source: Activation, axis: int, before: int, after: int
) -> Activation:
    """Return maps without the rows or columns that a negative padding takes away."""
    cut = max(-before, 0), max(-after, 0)
    if not any(cut):
        return source
    kept = range(cut[0], source.shape[axis] - cut[1])
    if not kept:
        raise node.damaged("a padding that leaves nothing")
    return node.write(Slice.along(source.shape, axis, kept), source)


HANDLERS: dict[str, Handler] = {"ConvTranspose": conv_transpose}
"""Handlers by operator."""
