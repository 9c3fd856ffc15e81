"""Maxima and averages over windows and whole maps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import OnnxRequant
from htvm.frontend.onnx.affine import real_layers
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, offset_of
from htvm.frontend.onnx.affine.resize import resize
from htvm.frontend.onnx.affine.shapes import (
    in_shape,
    pending_reshape,
)
from htvm.frontend.onnx.affine.unary import limited
from htvm.frontend.onnx.affine.values import (
    Bound,
    Constant,
    Pending,
    Real,
    Value,
    View,
)
from htvm.frontend.onnx.windows import Windows, windows_of
from htvm.frontend.operators import Activation, Clip, Quantization
from patterns.ops.onnxruntime.average import OnnxAverage
from patterns.ops.onnxruntime.rounding import float_scale

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode


def global_windows(node: OnnxNode, view: View) -> Windows:
    """Return a single window: the whole map."""
    if len(view.shape) != 4:
        raise node.unsupported(f"an average of shape {list(view.shape)}", "two spatial axes")
    y, x = view.shape[2:]
    return Windows((y, x), (1, 1), (0, 0, 0, 0), (1, 1), (1, 1), (y, x))


def fused_average(node: NodeReader, view: View) -> Pending:
    """Return the average of QLinearAveragePool over windows of one or two axes."""
    return _windowed(node, view, _average_windows(node, view), partial(_added, view.dtype))


def _windowed(
    node: NodeReader,
    view: View,
    windows: Windows,
    added: Callable[[int], int],
    real: Callable[[], Value] | None = None,
) -> Pending:
    """Return an average over windows of one or two axes; arguments as of `average`."""
    windows.check_padding(node)
    if len(view.shape) != 3:
        return average(node, view, windows, added=added, real=real)
    n, c, x = view.shape
    maps = in_shape(node, view, (n, c, 1, x))
    assert isinstance(maps, View)
    pending = average(node, maps, windows, added=added)
    flat = pending_reshape(node, pending, (n, c, pending.shape[-1]))
    return flat if real is None else replace(flat, real=_real_form(node, real))


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
    return windows


def average(
    node: NodeReader,
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
        return node.reshape(node.write(op, view.activation, step=step), result, step)

    return Pending(result, finish, None if real is None else _real_form(node, real))


def _real_form(
    node: NodeReader, real: Callable[[], Value]
) -> Callable[[Bound, Constant | None], Activation]:
    def form(bound: Bound, _: Constant | None) -> Activation:
        made = real()
        assert isinstance(made, Real)
        return limited(node, made.activation, bound)

    return form


def _global_average(node: NodeReader) -> Value:
    view, real = node.value(0), partial(real_layers.global_of, node, mean=True)
    if not isinstance(view, View) or len(view.shape) != 4:
        return real()
    # The fused kernel for whole maps scales the exact sum.
    added = None if node.reader.session.kernel(node) else partial(_added, None)
    return average(node, view, global_windows(node, view), added=added, real=real)


def _added(kernel: str | None, zero_point: int) -> int:
    """Return what the kernel of an average adds before it rounds, for a zero point of int8.

    Reals are rounded before the zero point is added.
    """
    return 0 if kernel is None else zero_point + offset_of(kernel)


def _average(node: NodeReader) -> Value:
    view, real = node.value(0), partial(real_layers.average, node)
    if not isinstance(view, View) or len(view.shape) not in (3, 4):
        return real()
    windows = windows_of(node, view.shape[2:], one_axis=True)
    counted = bool(node.integer("count_include_pad", 0))
    if (windows.counts(counted) != math.prod(windows.kernel)).any() or windows.dilation != (1, 1):
        # Windows at the border average fewer elements; in reals each has its own divisor.  With
        # dilation onnxruntime computes in reals.
        return real()
    added = partial(_added, node.reader.session.kernel(node))
    return _windowed(node, view, windows, added, real)


HANDLERS: dict[str, Handler] = {
    "AveragePool": _average,
    "GlobalAveragePool": _global_average,
    "MaxPool": real_layers.max_pool,
    "Resize": resize,
}
"""Handlers by operator."""
