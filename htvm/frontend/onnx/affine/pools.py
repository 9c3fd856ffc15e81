"""Maxima and averages over windows and whole maps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import OnnxRequant
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine import real_layers
from htvm.frontend.onnx.affine.reader import Handler, Reader, offset_of
from htvm.frontend.onnx.affine.resize import resize
from htvm.frontend.onnx.affine.shapes import (
    in_shape,
    moved,
    pending_move,
    pending_reshape,
    tensor_of,
)
from htvm.frontend.onnx.affine.unary import limited
from htvm.frontend.onnx.affine.values import (
    Bound,
    Constant,
    Pending,
    Quantized,
    Real,
    Value,
    View,
)
from htvm.frontend.onnx.windows import Windows, check_storage_order, sizes_of, windows_of
from htvm.frontend.operators import Activation, Clip, Quantization
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.reshape import Reshape
from patterns.ops.onnxruntime.average import OnnxAverage
from patterns.ops.onnxruntime.rounding import float_scale

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["HANDLERS", "average", "fused_average", "global_windows", "mean"]


def _max_pool(reader: Reader, node: OnnxNode) -> Value:
    value = reader.value(node, 0)
    pending = isinstance(value, Pending) and len(value.shape) == 4
    if not pending and not isinstance(value, View | Quantized):
        return real_layers.max_pool(reader, node)
    if len(value.shape) == 3:
        return _flat_max_pool(reader, node)
    windows = windows_of(node, sizes_of(node, value.shape))
    check_storage_order(node)
    _check_maximum(node, windows)
    pool, shape = _maximum(windows), windows.results(value.shape)
    if isinstance(value, Pending):  # rounding does not change which is largest
        return pending_move(reader, node, value, pool, shape)
    assert isinstance(value, View | Quantized)
    return moved(reader, node, value, pool, shape)


def _maximum(windows: Windows) -> MaxPool:
    return MaxPool(
        windows.kernel, windows.strides, windows.padding, windows.layout, windows.dilation
    )


def _check_maximum(node: OnnxNode, windows: Windows) -> None:
    if len([name for name in node.outputs if name]) > 1:
        raise node.unsupported(
            "the places of its maxima are used", "leave out the second output (return_indices)"
        )
    windows.check_padding(node)


def _flat_max_pool(reader: Reader, node: OnnxNode) -> Value:
    """The maximum over windows of one axis: of maps of one row."""
    tensor = tensor_of(reader, node, 0)
    n, c, x = tensor.activation.shape
    windows = windows_of(node, (x,), one_axis=True)
    check_storage_order(node)
    _check_maximum(node, windows)
    maps = in_shape(reader, node, tensor, (n, c, 1, x))
    pool = _maximum(windows)
    made = moved(reader, node, maps, pool, (n, c, *windows.outputs))
    return in_shape(reader, node, made, (n, c, windows.outputs[1]))


def global_windows(node: OnnxNode, view: View) -> Windows:
    """Return a single window: the whole map."""
    if len(view.shape) != 4:
        raise node.unsupported(f"an average of shape {list(view.shape)}", "two spatial axes")
    y, x = view.shape[2:]
    return Windows((y, x), (1, 1), (0, 0, 0, 0), (1, 1), (1, 1), (y, x))


def fused_average(reader: Reader, node: OnnxNode, view: View) -> Pending:
    """Return the average of QLinearAveragePool over windows of one or two axes."""
    return _windowed(reader, node, view, partial(_added, view.dtype))


def _windowed(
    reader: Reader,
    node: OnnxNode,
    view: View,
    added: Callable[[int], int],
    real: Callable[[], Value] | None = None,
) -> Pending:
    """Return an average over windows of one or two axes; arguments as of `average`."""
    windows = _average_windows(node, view)
    if len(view.shape) != 3:
        return average(reader, node, view, windows, added=added, real=real)
    n, c, x = view.shape
    maps = in_shape(reader, node, view, (n, c, 1, x))
    assert isinstance(maps, View)
    pending = average(reader, node, maps, windows, added=added)
    flat = pending_reshape(reader, node, pending, (n, c, pending.shape[-1]))
    return flat if real is None else replace(flat, real=_real_form(reader, node, real))


def _average_windows(node: OnnxNode, view: View) -> Windows:
    """Return the windows of AveragePool.

    Raises:
        UnsupportedError: windows average different numbers of elements.
    """
    windows = windows_of(node, view.shape[2:], one_axis=True)
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
    added: Callable[[int], int] | None = None,
    real: Callable[[], Value] | None = None,
) -> Pending:
    """Return an average, pending until it is quantized.

    ``shape`` is the result's shape if the file gives it another one; ``added``
    returns what onnxruntime adds to a sum of reals before it rounds, given the zero point of the
    result as int8 (``None``: the exact sum is scaled); ``real`` makes the average of reals, for a
    result that is not quantized.
    """
    maps = (*view.shape[:2], *windows.outputs)
    result, count = shape or maps, math.prod(windows.kernel)

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        scale = np.float32(view.step.scale) / (np.float32(step.scale) * np.float32(count))
        multiplier, shift = float_scale(float(scale))
        zeros = (view.step.zero_point,)
        requant = OnnxRequant((multiplier,), (shift,), step.zero_point, zeros)
        op = OnnxAverage(
            requant,
            windows.kernel,
            windows.strides,
            windows.padding,
            clip,
            steps=(view.step.scale, step.scale, float(added(step.zero_point))) if added else (),
        )
        made = reader.write(node, op, (view.activation,), maps, step=step)
        if result == maps:
            return made
        return reader.write(node, Reshape(result), (made,), result, step=step)

    if real is None:
        return Pending(result, finish)

    return Pending(result, finish, _real_form(reader, node, real))


def _real_form(
    reader: Reader, node: OnnxNode, real: Callable[[], Value]
) -> Callable[[Bound, Constant | None], Activation]:
    def form(bound: Bound, _: Constant | None) -> Activation:
        made = real()
        assert isinstance(made, Real)
        return limited(reader, node, made.activation, bound)

    return form


def _global_average(reader: Reader, node: OnnxNode) -> Value:
    view, real = reader.value(node, 0), partial(real_layers.global_of, reader, node, mean=True)
    if not isinstance(view, View) or len(view.shape) != 4:
        return real()
    # The fused kernel for whole maps scales the exact sum.
    added = None if reader.session.kernel(node) else partial(_added, None)
    return average(reader, node, view, global_windows(node, view), added=added, real=real)


def _added(kernel: str | None, zero_point: int) -> int:
    """Return what the kernel of an average adds before it rounds, for a zero point of int8.

    Reals are rounded before the zero point is added.
    """
    return 0 if kernel is None else zero_point + offset_of(kernel)


def _average(reader: Reader, node: OnnxNode) -> Value:
    view, real = reader.value(node, 0), partial(real_layers.average, reader, node)
    if not isinstance(view, View) or len(view.shape) not in (3, 4):
        return real()
    windows = windows_of(node, view.shape[2:], one_axis=True)
    counted = bool(node.integer("count_include_pad", 0))
    if (windows.counts(counted) != math.prod(windows.kernel)).any() or windows.dilation != (1, 1):
        # Windows at the border average fewer elements; in reals each has its own divisor.  With
        # dilation onnxruntime computes in reals.
        return real()
    added = partial(_added, reader.session.kernel(node))
    return _windowed(reader, node, view, added, real)


def mean(reader: Reader, node: OnnxNode, real: Callable[[], Value]) -> Value:
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
    return average(reader, node, view, global_windows(node, view), shape, real=real)


HANDLERS: dict[str, Handler] = {
    "AveragePool": _average,
    "GlobalAveragePool": _global_average,
    "MaxPool": _max_pool,
    "Resize": resize,
}
"""Handlers by operator."""
