"""Maxima and averages over windows and whole maps, and maps at another size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array, OnnxRequant
from htvm.frontend.onnx.affine import real_layers
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, offset_of
from htvm.frontend.onnx.affine.shapes import in_shape, moved, pending_reshape, tensor_of
from htvm.frontend.onnx.affine.unary import limited
from htvm.frontend.onnx.affine.values import Bound, Constant, Pending, Real, Value, View
from htvm.frontend.onnx.windows import ROUNDINGS, Windows, windows_of
from htvm.frontend.operators import Activation, Clip, Quantization
from patterns.ops.float32.combine import RealMatmul
from patterns.ops.float32.maps import RealBilinear
from patterns.ops.moves.concat import Nearest
from patterns.ops.onnxruntime.average import OnnxAverage
from patterns.ops.onnxruntime.rounding import float_scale

if TYPE_CHECKING:
    from htvm.frontend.onnx.affine.reader import NodeReader
    from htvm.frontend.onnx.graph import OnnxNode
    from htvm.frontend.operators import Activation


def global_windows(node: OnnxNode, view: View) -> Windows:
    """Return a single window: the whole map."""
    if len(view.shape) != 4:
        raise node.unsupported(f"an average of shape {list(view.shape)}", "two spatial axes")
    y, x = view.shape[2:]
    return Windows((y, x), (1, 1), (0, 0, 0, 0), (1, 1), (1, 1), (y, x))


def fused_average(node: NodeReader, view: View) -> Pending:
    """Return the average of QLinearAveragePool over windows of one or two axes."""
    return _windowed(node, view, _average_windows(node, view), partial(_added_zeros, view.dtype))


def _windowed(
    node: NodeReader,
    view: View,
    windows: Windows,
    addend: Callable[[int], int],
    real_form: Callable[[], Value] | None = None,
) -> Pending:
    """Return an average over windows of one or two axes; arguments as of `average`."""
    windows.check_padding(node)
    if len(view.shape) != 3:
        return average(node, view, windows, addend=addend, real_form=real_form)
    n, c, x = view.shape
    maps = in_shape(node, view, (n, c, 1, x))
    assert isinstance(maps, View)
    pending = average(node, maps, windows, addend=addend)
    flat = pending_reshape(node, pending, (n, c, pending.shape[-1]))
    return flat if real_form is None else replace(flat, real=_real_form(node, real_form))


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
    addend: Callable[[int], int] | None = None,
    real_form: Callable[[], Value] | None = None,
) -> Pending:
    """Return an average, pending until it is quantized.

    ``shape`` is the result's shape if the file gives it another one; ``addend`` returns what
    onnxruntime adds to a sum of reals before it rounds, given the zero point of the result as int8
    (``None``: the exact sum is scaled); ``real_form`` makes the average of reals, for a result that
    is not quantized.
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
            steps=(view.step.scale, step.scale, float(addend(step.zero_point))) if addend else (),
        )
        return node.reshape(node.write(op, view.activation, step=step), result, step)

    return Pending(result, finish, None if real_form is None else _real_form(node, real_form))


def _real_form(
    node: NodeReader, real: Callable[[], Value]
) -> Callable[[Bound, Constant | None], Activation]:
    def form(bound: Bound, _: Constant | None) -> Activation:
        made = real()
        assert isinstance(made, Real)
        return limited(node, made.activation, bound)

    return form


def _global_average(node: NodeReader) -> Value:
    view, real_form = node.value(0), partial(real_layers.global_of, node, mean=True)
    if not isinstance(view, View) or len(view.shape) != 4:
        return real_form()
    # The fused kernel for whole maps scales the exact sum.
    added = None if node.reader.session.kernel(node) else partial(_added_zeros, None)
    return average(node, view, global_windows(node, view), addend=added, real_form=real_form)


def _added_zeros(kernel: str | None, zero_point: int) -> int:
    """Return what the kernel of an average adds before it rounds, for a zero point of int8.

    Reals are rounded before the zero point is added.
    """
    return 0 if kernel is None else zero_point + offset_of(kernel)


def _average(node: NodeReader) -> Value:
    view, real_form = node.value(0), partial(real_layers.average, node)
    if not isinstance(view, View) or len(view.shape) not in (3, 4):
        return real_form()
    windows = windows_of(node, view.shape[2:], one_axis=True)
    counted = bool(node.integer("count_include_pad", 0))
    if (windows.counts(counted) != math.prod(windows.kernel)).any() or windows.dilation != (1, 1):
        # Windows at the border average fewer elements; in reals each has its own divisor.  With
        # dilation onnxruntime computes in reals.
        return real_form()
    added = partial(_added_zeros, node.reader.session.kernel(node))
    return _windowed(node, view, windows, added, real_form)


_COORDINATES = (
    "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric",
)  # fmt: skip
_LARGEST = 1 << 12


def resize(node: NodeReader) -> Value:
    """Height and width of maps, by constant sizes or scales; nearest and linear."""
    value = node.value(0)
    node.ignore("extrapolation_value")  # of tf_crop_and_resize
    mode, rounding = node.text("mode", "nearest"), node.text("nearest_mode", "round_prefer_floor")
    if node.integer("antialias", 0) or node.text("keep_aspect_ratio_policy", "stretch") != (
        "stretch"
    ):
        raise node.unsupported("antialias, or an aspect ratio that is kept", "leave both out")
    if mode == "nearest" and not isinstance(value, Constant):
        tensor = tensor_of(node, 0)
        source = tensor.activation
        node.ignore("cubic_coeff_a")
        places = [_places(node, *axis) for axis in _axes(node, source.shape)]
        rows, columns = (_nearest(node, rounding, place, size) for place, size in places)
        return moved(node, tensor, Nearest(rows, columns, "NCHW"))
    if mode == "cubic":
        return _cubic(node, node.realised(value))
    node.ignore("cubic_coeff_a")
    if mode != "linear":
        raise node.unsupported(
            f"mode '{mode}' of a {type(value).__name__.lower()}",
            "linear, cubic or nearest",
        )
    source = node.realised(value)
    places = [_places(node, *axis) for axis in _axes(node, source.shape)]
    (rows, row_weights), (columns, column_weights) = (_pairs(*place) for place in places)
    return Real(node.write(RealBilinear(rows, columns, row_weights, column_weights), source))


def _axes(node: NodeReader, shape: tuple[int, ...]) -> list[tuple[int, int, float]]:
    """(source's size, result's size, ratio) of height and width."""
    if len(shape) != 4 or "axes" in node.attributes:
        raise node.unsupported(f"a tensor of {list(shape)}, or axes", "all of (N, C, y, x)")
    if node.input(3):
        node.ignore(inputs=(1, 2))
        sizes = [*node.given(3, "sizes")]
        ratios = [after / before for before, after in zip(shape, sizes, strict=False)]
    else:
        node.ignore(inputs=(1,))  # regions, which only tf_crop_and_resize has
        given = node.array(min(2, len(node.inputs) - 1), "scales").reshape(-1)
        ratios = [float(ratio) for ratio in given]
        if not all(math.isfinite(ratio) and ratio <= _LARGEST for ratio in ratios):
            raise node.damaged(f"scales {ratios}", f"positive numbers up to {_LARGEST}")
        sizes = [math.floor(size * ratio) for size, ratio in zip(shape, ratios, strict=False)]
    if len(ratios) != 4 or tuple(sizes[:2]) != shape[:2]:
        raise node.unsupported(f"a resize of {list(shape)} to {sizes}", "height and width only")
    if not all(1 <= size <= _LARGEST for size in sizes[2:]):
        raise node.damaged(f"a resize to {sizes}", f"sizes from 1 to {_LARGEST}")
    return [(shape[axis], sizes[axis], ratios[axis]) for axis in (2, 3)]


def _places(node: OnnxNode, before: int, after: int, ratio: float) -> tuple[Array, int]:
    """Where the elements of an axis lie in the source, float32, and the source's size."""
    kind = node.text("coordinate_transformation_mode", "half_pixel")
    if kind not in _COORDINATES:
        raise node.unsupported(f"coordinates '{kind}'", f"one of {', '.join(_COORDINATES)}")
    at, scale, half = np.arange(after, dtype="float32"), np.float32(ratio), np.float32(0.5)
    if scale == 1:
        return at, before
    if kind == "asymmetric":
        return at / scale, before
    if kind == "align_corners":
        if ratio * before != after:
            raise node.unsupported(
                f"align_corners with {ratio * before} instead of {after} elements",
                "give sizes: runtimes disagree on what such scales mean",
            )
        return at * np.float32(before - 1) / np.float32(max(after - 1, 1)), before
    if kind == "pytorch_half_pixel" and after == 1:
        return np.zeros(1, "float32"), before
    if kind == "half_pixel_symmetric":
        adjusted = np.float32(after / (ratio * before))
        centre = np.float32(before) / 2
        return (at + half) / scale - half + centre * (1 - adjusted), before
    return (at + half) / scale - half, before


def _nearest(node: OnnxNode, rounding: str, places: Array, size: int) -> tuple[int, ...]:
    """The elements that are nearest."""
    if rounding not in ROUNDINGS:
        raise node.unsupported(f"nearest_mode '{rounding}'", f"one of {', '.join(ROUNDINGS)}")
    below = np.floor(places)
    half = places - below
    up = {
        "round_prefer_floor": half > 0.5,
        "round_prefer_ceil": half >= 0.5,
        "floor": np.zeros(places.shape, bool),
        "ceil": half > 0,
    }[rounding]
    return tuple(int(place) for place in np.clip(below + up, 0, size - 1))


def _pairs(places: Array, size: int) -> tuple[Array, Array]:
    """The elements on both sides, int32 [2, n], and their weights, float32 [2, n]."""
    inside = np.clip(places, np.float32(0), np.float32(size - 1))
    below = np.minimum(inside.astype("int32"), size - 1)
    above = np.minimum(below + 1, size - 1)
    weights = np.stack([np.abs(inside - above), np.abs(inside - below)])
    weights[:, below == above] = 0.5
    return np.stack([below, above]).astype("int32"), weights.astype("float32")


def _cubic(node: NodeReader, source: Activation) -> Value:
    """Interpolate with cubic polynomials: a matrix for each axis."""
    outside = bool(node.integer("exclude_outside", 0))
    node.ignore("nearest_mode")
    alpha = node.number("cubic_coeff_a", -0.75)
    places = [_places(node, *axis) for axis in _axes(node, source.shape)]
    elements = sum(len(at) * size for at, size in places)
    node.reader.graph.budget.spend("folded_elements", elements, node.where)
    rows, columns = (_cubic_matrix(*place, alpha, outside) for place in places)
    wide = node.write(RealMatmul(b=np.asarray(columns.T, order="C")[None, None]), source)
    return Real(node.write(RealMatmul(a=np.asarray(rows, order="C")[None, None]), wide))


def _cubic_matrix(places: Array, size: int, a: float, outside: bool) -> Array:
    """Return the weights of the source's elements, float32 [after, before].

    Args:
        places: where the elements lie in the source.
        size: number of the source's elements.
        a: coefficient of the polynomial.
        outside: whether elements outside have no weight; else they are those at the border.
    """
    matrix = np.zeros((len(places), size))
    below = np.floor(places).astype(int)
    for shift in range(-1, 3):
        distance = np.abs(places.astype("float64") - (below + shift))
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        weight = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
        at = below + shift
        if outside:
            weight = np.where((at >= 0) & (at < size), weight, 0.0)
        np.add.at(matrix, (np.arange(len(places)), np.clip(at, 0, size - 1)), weight)
    if outside:
        matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix.astype("float32")


HANDLERS: dict[str, Handler] = {
    "AveragePool": _average,
    "GlobalAveragePool": _global_average,
    "MaxPool": real_layers.max_pool,
    "Resize": resize,
}
"""Handlers by operator."""
