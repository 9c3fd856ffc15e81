"""Maxima and averages over windows and whole maps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import OnnxRequant
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine import real_layers
from htvm.frontend.onnx.affine.reader import Handler, Reader, offset_of
from htvm.frontend.onnx.affine.resize import resize
from htvm.frontend.onnx.affine.shapes import in_shape, moved, tensor_of
from htvm.frontend.onnx.affine.values import Constant, Pending, Quantized, Value, View
from htvm.frontend.onnx.windows import Windows, windows_of
from htvm.frontend.operators import Activation, Clip, Quantization
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.reshape import Reshape
from patterns.ops.onnxruntime.average import OnnxAverage
from patterns.ops.onnxruntime.rounding import float_scale

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["HANDLERS", "average", "average_windows", "global_windows", "mean"]


def _max_pool(reader: Reader, node: OnnxNode) -> Value:
    value = reader.value(node, 0)
    if not isinstance(value, View | Quantized):
        raise node.unsupported("a maximum of what is not quantized", "quantize its input")
    source = value.activation
    if len(source.shape) == 3:
        return _flat_max_pool(reader, node)
    windows = windows_of(node, source.shape[2:])
    node.ignore("storage_order")  # of the indices
    if windows.dilation != (1, 1) or len([name for name in node.outputs if name]) > 1:
        raise node.unsupported("a maximum with dilation, or with its indices")
    windows.check_padding(node)
    shape = (*source.shape[:2], *windows.outputs)
    pool = MaxPool(windows.kernel, windows.strides, windows.padding, "NCHW")
    made = reader.write(node, pool, (source,), shape, step=reader.steps.get(source))
    if isinstance(value, View):
        return View(made, value.step, value.dtype)
    return Quantized(made, value.dtype)


def _flat_max_pool(reader: Reader, node: OnnxNode) -> Value:
    """The maximum over windows of one axis: of maps of one row."""
    tensor = tensor_of(reader, node, 0)
    n, c, x = tensor.activation.shape
    windows = windows_of(node, (x,), one_axis=True)
    node.ignore("storage_order")  # of the indices
    if windows.dilation != (1, 1) or len([name for name in node.outputs if name]) > 1:
        raise node.unsupported("a maximum with dilation, or with its indices")
    windows.check_padding(node)
    maps = in_shape(reader, node, tensor, (n, c, 1, x))
    pool = MaxPool(windows.kernel, windows.strides, windows.padding, "NCHW")
    made = moved(reader, node, maps, pool, (n, c, *windows.outputs))
    return in_shape(reader, node, made, (n, c, windows.outputs[1]))


def global_windows(node: OnnxNode, view: View) -> Windows:
    """Return a single window: the whole map."""
    if len(view.shape) != 4:
        raise node.unsupported(f"an average of shape {list(view.shape)}", "two spatial axes")
    y, x = view.shape[2:]
    return Windows((y, x), (1, 1), (0, 0, 0, 0), (1, 1), (1, 1), (y, x))


def average_windows(node: OnnxNode, view: View) -> Windows:
    """Return the windows of AveragePool.

    Raises:
        UnsupportedError: windows average different numbers of elements.
    """
    windows = windows_of(node, view.shape[2:])
    counted = bool(node.integer("count_include_pad", 0))
    if (windows.counts(counted) != math.prod(windows.kernel)).any():
        raise node.unsupported(
            "windows that average different numbers of elements",
            "count the padding (count_include_pad), or pad with zeros before",
        )
    if windows.dilation != (1, 1):
        raise node.unsupported("an average with dilation")
    windows.check_padding(node)
    return windows


def average(
    reader: Reader,
    node: OnnxNode,
    view: View,
    windows: Windows,
    shape: tuple[int, ...] | None = None,
    *,
    order: str = "",
) -> Pending:
    """Return an average, pending until it is quantized.

    ``shape`` is the result's shape if the file gives it another one; ``order`` tells
    which of onnxruntime's kernels it is (`OnnxAverage.order`).
    """
    maps = (*view.shape[:2], *windows.outputs)
    result, count = shape or maps, math.prod(windows.kernel)

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        scale = np.float32(view.step.scale) / (np.float32(step.scale) * np.float32(count))
        multiplier, shift = float_scale(float(scale))
        zeros = (view.step.zero_point,)
        requant = OnnxRequant((multiplier,), (shift,), step.zero_point, zeros)
        zero = step.zero_point + offset_of(view.dtype)
        # A pool over a whole map has a kernel of its own, exact in integers.
        op = OnnxAverage(
            requant,
            windows.kernel,
            windows.strides,
            windows.padding,
            clip,
            order=order,
            steps=(view.step.scale, step.scale, float(zero)) if order else (),
        )
        made = reader.write(node, op, (view.activation,), maps, step=step)
        if result == maps:
            return made
        return reader.write(node, Reshape(result), (made,), result, step=step)

    return Pending(result, finish)


def _global_average(reader: Reader, node: OnnxNode) -> Value:
    view = reader.view(node, 0, "input")
    return average(reader, node, view, global_windows(node, view))


def _average(reader: Reader, node: OnnxNode) -> Value:
    view = reader.view(node, 0, "input")
    if len(view.shape) != 4:
        return real_layers.average(reader, node)
    windows = windows_of(node, view.shape[2:])
    counted = bool(node.integer("count_include_pad", 0))
    if (windows.counts(counted) != math.prod(windows.kernel)).any():
        # Windows at the border average fewer elements; in reals each has its own divisor.
        return real_layers.average(reader, node)
    # The kernel before opset 19 sums columns first, if it steps by at most two.
    order = "columns" if windows.strides[1] <= 2 and reader.graph.opset < 19 else "rows"
    if view.dtype == "uint8":  # which it then runs as a QLinearAveragePool
        order = "fused"
    return average(reader, node, view, average_windows(node, view), order=order)


def mean(reader: Reader, node: OnnxNode) -> Value:
    """Return ReduceMean of an 8-bit map over height and width, pending until it is quantized."""
    view = reader.view(node, 0, "input")
    rank = len(view.shape)
    axes = forms.axes_of(node, reader.given(node), 1) or ()
    if rank != 4 or sorted(axis % rank for axis in axes) != [2, 3]:
        raise node.unsupported(
            f"a mean over axes {axes} of {rank}", "height and width of a map (axes 2 and 3)"
        )
    kept = node.integer("keepdims", 1)
    shape = view.shape[:2] if not kept else None
    return average(reader, node, view, global_windows(node, view), shape)


HANDLERS: dict[str, Handler] = {
    "AveragePool": _average,
    "GlobalAveragePool": _global_average,
    "MaxPool": _max_pool,
    "Resize": resize,
}
"""Handlers by operator."""
