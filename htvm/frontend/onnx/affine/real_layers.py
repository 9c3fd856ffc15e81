"""Layers of float networks: convolutions, products, pools, and functions of several tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx.affine.reader import Handler, Reader
from htvm.frontend.onnx.affine.real_forms import RealWriter
from htvm.frontend.onnx.affine.shapes import in_shape
from htvm.frontend.onnx.affine.values import Constant, Real, Value
from htvm.frontend.onnx.windows import Windows, check_storage_order, windows_of
from htvm.frontend.operators import Activation
from patterns.ops.float32.average import RealAverage
from patterns.ops.float32.combine import Function, RealCombine
from patterns.ops.float32.conv2d import RealConv2d
from patterns.ops.max_pool import MaxPool
from patterns.ops.moves.pad_axes import PadAxes

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode
    from patterns.op import Op

__all__ = [
    "HANDLERS",
    "PARTS",
    "average",
    "combined_all",
    "constant_of",
    "epsilon_of",
    "global_of",
    "maps_of",
    "max_pool",
    "operand",
    "result_of",
    "tensor",
    "vector_of",
    "written",
]


def operand(
    reader: Reader, node: OnnxNode, index: int, *, infinite: bool = False
) -> Activation | Array:
    """Return an input as float32: a tensor, or a constant.

    Args:
        reader, node, index: the node, and the number of its input.
        infinite: whether a constant may hold infinities, as masks for a softmax do.

    Raises:
        ModelError: a constant holds integers without a scale, which no runtime takes for reals.
        UnsupportedError: it is not finite, or no number.
    """
    value = reader.value(node, index)
    if isinstance(value, Constant):
        if value.scale is None and value.data.dtype.kind != "f":
            raise node.damaged(
                f"constant input {index} of {value.data.dtype} beside reals", "store it as float32"
            )
        if not infinite and not np.isfinite(value.real).all():
            raise node.unsupported(f"constant input {index} is not finite everywhere")
        if np.isnan(value.real).any():
            raise node.unsupported(f"constant input {index} holds NaN", "a number")
        return value.real.astype("float32")
    return reader.realised(value, node.where)


def epsilon_of(node: OnnxNode) -> float:
    """Return what a normalisation adds to a variance.

    Raises:
        ModelError: it is negative, so that there may be no root.
    """
    epsilon = node.number("epsilon", 1e-5)
    if epsilon < 0:
        raise node.damaged(f"attribute 'epsilon' is {epsilon}", "a positive number")
    return epsilon


def tensor(reader: Reader, node: OnnxNode, index: int = 0) -> Activation:
    """Return an input that must be computed, as float32."""
    found = operand(reader, node, index)
    if not isinstance(found, Activation):
        raise node.unsupported(f"input {index} is constant", "fold constants when exporting")
    return found


def constant_of(reader: Reader, node: OnnxNode, index: int, role: str) -> Array:
    found = operand(reader, node, index)
    if isinstance(found, Activation):
        raise node.unsupported(f"its {role} is computed at run time", "make it constant")
    return found


def vector_of(reader: Reader, node: OnnxNode, index: int, size: int, role: str) -> Array:
    values = constant_of(reader, node, index, role).reshape(-1)
    if values.size != size:
        raise node.damaged(f"{values.size} values of {role} for {size} channels")
    return values


def written(
    reader: Reader, node: OnnxNode, op: Op, source: Activation, shape: Sequence[int]
) -> Activation:
    return reader.write(node, op, (source,), tuple(shape), dtype="float32")


def maps_of(reader: Reader, node: OnnxNode) -> tuple[Activation, bool]:
    """Return the input as maps (N, C, y, x), and whether the file has only one spatial axis."""
    source = tensor(reader, node)
    if len(source.shape) == 3:
        n, c, x = source.shape
        return in_shape(reader, node, Real(source), (n, c, 1, x)).activation, True
    if len(source.shape) != 4:
        raise node.unsupported(f"an input of shape {list(source.shape)}", "one or two spatial axes")
    return source, False


def result_of(reader: Reader, node: OnnxNode, maps: Activation, flat: bool) -> Value:
    if not flat:
        return Real(maps)
    n, c, _, x = maps.shape
    return in_shape(reader, node, Real(maps), (n, c, x))


# ------------------------------------------------------------------------------ products


def _conv(reader: Reader, node: OnnxNode) -> Value:
    source, flat = maps_of(reader, node)
    weight = constant_of(reader, node, 1, "weights")
    if weight.ndim != (3 if flat else 4):
        raise node.unsupported(f"weights of shape {list(weight.shape)}")
    windows = windows_of(node, source.shape[3 if flat else 2 :], weight.shape[2:], one_axis=flat)
    weight = weight[:, :, None] if flat else weight
    groups, k = node.integer("group", 1), weight.shape[0]
    if groups < 1 or source.shape[1] != weight.shape[1] * groups or k % groups:
        raise node.damaged(
            f"{source.shape[1]} input channels in {groups} groups, and weights of shape "
            f"{list(weight.shape)}"
        )
    bias = vector_of(reader, node, 2, k, "bias") if node.input(2) else np.zeros(k, "float32")
    op = RealConv2d(
        np.asarray(weight, order="C"), bias, windows.strides, windows.padding, windows.dilation,
        groups,
    )  # fmt: skip
    made = written(reader, node, op, source, (source.shape[0], k, *windows.outputs))
    return result_of(reader, node, made, flat)


# ------------------------------------------------------------------------------ normalisation


def _batch_norm(reader: Reader, node: OnnxNode) -> Value:
    """Apply an exported network's batch normalisation: a factor and a summand per channel."""
    source = tensor(reader, node)
    node.ignore("momentum", "spatial")
    if node.integer("training_mode", 0):
        raise node.unsupported("training_mode", "export the network for inference")
    channels = source.shape[1] if len(source.shape) > 1 else 1
    parts = [
        vector_of(reader, node, index, channels, role)
        for index, role in enumerate(("scale", "bias", "mean", "variance"), start=1)
    ]
    scale, bias, mean, variance = (part.astype("float64") for part in parts)
    spreads = variance + epsilon_of(node)
    if not np.all(spreads > 0):
        raise node.unsupported("a variance that is not positive")
    root = np.sqrt(spreads)
    spread = (-1, *(1,) * (len(source.shape) - 2))
    out = RealWriter(reader, node)
    product = out.combine("multiply", source, (scale / root).astype("float32").reshape(spread))
    summand = (bias - mean * scale / root).astype("float32").reshape(spread)
    return Real(out.combine("add", product, summand))


# ------------------------------------------------------------------------------ pools


def _windows(reader: Reader, node: OnnxNode) -> tuple[Activation, bool, Windows]:
    source, flat = maps_of(reader, node)
    windows = windows_of(node, source.shape[3 if flat else 2 :], one_axis=flat)
    windows.check_padding(node)
    return source, flat, windows


def average(reader: Reader, node: OnnxNode) -> Value:
    """Return averages over windows, each divided by the number of elements that it counts."""
    source, flat, windows = _windows(reader, node)
    counted = bool(node.integer("count_include_pad", 0))
    top, left, bottom, right = windows.padding
    shape = (*source.shape[:2], *windows.outputs)
    if any(windows.padding):
        widths = ((0, 0), (0, 0), (top, bottom), (left, right))
        padded = tuple(n + sum(width) for n, width in zip(source.shape, widths, strict=True))
        source = written(reader, node, PadAxes(0, widths), source, padded)
    made = written(
        reader, node, RealAverage(windows.kernel, windows.strides, windows.dilation), source, shape
    )
    factor = windows.counts(counted)
    if (factor != math.prod(windows.kernel)).any():
        ratio = (math.prod(windows.kernel) / factor).astype("float32")
        made = written(reader, node, RealCombine("multiply", b=ratio), made, shape)
    return result_of(reader, node, made, flat)


def max_pool(reader: Reader, node: OnnxNode) -> Value:
    source, flat, windows = _windows(reader, node)
    check_storage_order(node)
    op = MaxPool(windows.kernel, windows.strides, windows.padding, "NCHW", windows.dilation)
    made = written(reader, node, op, source, (*source.shape[:2], *windows.outputs))
    return result_of(reader, node, made, flat)


def global_of(reader: Reader, node: OnnxNode, *, mean: bool) -> Value:
    source, out = tensor(reader, node), RealWriter(reader, node)
    if len(source.shape) < 3:
        raise node.damaged(f"an input of shape {list(source.shape)}")
    axes = tuple(range(2, len(source.shape)))
    return Real(out.mean(source, axes) if mean else out.reduce("maximum", source, axes))


# ------------------------------------------------------------------------------ several tensors


def combined_all(
    reader: Reader, node: OnnxNode, function: Function, values: Sequence[Activation | Array]
) -> Activation:
    """Return a function of any number of tensors and constants, from left to right."""
    out = RealWriter(reader, node)
    tensors = [value for value in values if isinstance(value, Activation)]
    if not tensors:
        raise node.unsupported("all inputs are constant", "fold constants when exporting")
    result: Activation | Array | None = None
    for value in values:
        if result is None:
            result = value
        elif isinstance(result, Activation) or isinstance(value, Activation):
            result = out.combine(function, result, value)
        else:
            result = _FOLDED[function](result, value).astype("float32")
    assert isinstance(result, Activation)
    return result


_FOLDED = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}


def _variadic(reader: Reader, node: OnnxNode, function: Function) -> Value:
    values = [operand(reader, node, index) for index in range(len(node.inputs))]
    return Real(combined_all(reader, node, function, values))


def _mean(reader: Reader, node: OnnxNode) -> Value:
    values = [operand(reader, node, index) for index in range(len(node.inputs))]
    total = combined_all(reader, node, "add", values)
    return Real(RealWriter(reader, node).combine("divide", total, float(len(values))))


def _prelu(reader: Reader, node: OnnxNode) -> Value:
    out, source, slope = RealWriter(reader, node), tensor(reader, node), operand(reader, node, 1)
    below = out.combine("multiply", out.combine("minimum", source, 0.0), slope)
    made = out.combine("add", out.combine("maximum", source, 0.0), below)
    if made.shape != source.shape:
        raise node.damaged(f"slopes of shape {list(slope.shape)} for {list(source.shape)}")
    return Real(made)


PARTS: dict[str, Handler] = {
    "BatchNormalization": _batch_norm,
    "GlobalMaxPool": partial(global_of, mean=False),
    "Max": partial(_variadic, function="maximum"),
    "Mean": _mean,
    "Min": partial(_variadic, function="minimum"),
    "PRelu": _prelu,
    "Sum": partial(_variadic, function="add"),
}
"""Those that may also stand between quantized tensors, where they are computed in reals."""

HANDLERS: dict[str, Handler] = {
    **PARTS,
    "AveragePool": average,
    "Conv": _conv,
    "GlobalAveragePool": partial(global_of, mean=True),
    "MaxPool": max_pool,
}
"""Handlers by operator."""
