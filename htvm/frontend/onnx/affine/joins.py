"""Concatenations and paddings of tensors of any kind, constants among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.reader import Handler, NodeReader
from htvm.frontend.onnx.affine.shapes import Tensor, moved, tensor_of
from htvm.frontend.onnx.affine.unary import requantized
from htvm.frontend.onnx.affine.values import Constant, Pending, Quantized, Real, Value, View
from htvm.frontend.operators import Activation, Clip, Quantization
from patterns.op import TensorType
from patterns.ops.moves.concat import Attach, Concat
from patterns.ops.moves.pad import Pad, PadAxes
from patterns.ops.moves.take import Take

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode

_ALL: Clip = (-128, 127)


# ------------------------------------------------------------------------------ concatenation


def concat(node: NodeReader, parts: Sequence[View | Constant], axis: int) -> Pending:
    """Return tensors and 8-bit constants concatenated, each converted to the result's scale."""
    shapes = [part.shape if isinstance(part, View) else part.data.shape for part in parts]
    axis, result = _joined(node, shapes, axis)

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        made: list[Activation | Array] = []
        for part in parts:
            if isinstance(part, Constant):
                made.append(_requantized(part, step, clip))
            elif part.step == step and clip == _ALL:
                made.append(part.activation)
            else:
                made.append(requantized(node, part, step, clip))
        return _written(node, made, axis, step)

    return Pending(result, finish)


def _joined(
    node: OnnxNode, shapes: Sequence[tuple[int, ...]], axis: int
) -> tuple[int, tuple[int, ...]]:
    """Return the axis, counted from the front, and the shape of a concatenation."""
    axis = forms.axis_of(node, axis, len(shapes[0]))
    return axis, Concat(axis).result_of([TensorType(shape) for shape in shapes]).shape


def _requantized(constant: Constant, step: Quantization, clip: Clip) -> Array:
    """Return a constant as int8 in the result's quantization, rounded like a QuantizeLinear."""
    ratio = np.rint(constant.real.astype("float32") / np.float32(step.scale))
    return np.clip(ratio + step.zero_point, *clip).astype("int8")


def _written(
    node: NodeReader,
    parts: Sequence[Activation | Array],
    axis: int,
    step: Quantization | None,
) -> Activation:
    """Write a concatenation of tensors and constants of the same type."""

    def together(tensors: Sequence[Activation]) -> Activation:
        if len(tensors) == 1:
            return tensors[0]
        return node.write(Concat(axis), *tensors, step=step)

    def attached(tensor: Activation, constant: Array, first: bool) -> Activation:
        op = Attach(np.asarray(constant, order="C"), axis, first)
        return node.write(op, tensor, step=step)

    made: Activation | Array | None = None
    for constant, run in groupby(parts, key=lambda part: isinstance(part, np.ndarray)):
        items = list(run)
        if constant:
            array = np.concatenate([item for item in items if isinstance(item, np.ndarray)], axis)
            made = attached(made, array, False) if isinstance(made, Activation) else array
            continue
        tensor = together([item for item in items if isinstance(item, Activation)])
        if isinstance(made, np.ndarray):
            made = attached(tensor, made, True)
        else:
            made = tensor if made is None else together([made, tensor])
    if not isinstance(made, Activation):
        raise node.unsupported("all its parts are constant", "fold constants when exporting")
    return made


def _concat(node: NodeReader) -> Value:
    values = [node.value(index) for index in range(len(node.inputs))]
    axis = node.integer("axis")
    tensors = [value for value in values if isinstance(value, Quantized)]
    if len(tensors) == len(values):
        if len({value.dtype for value in tensors}) != 1:
            raise node.unsupported("parts of int8 and uint8", "quantize all parts alike")
        axis, _ = _joined(node, [item.activation.shape for item in tensors], axis)
        parts = [value.activation for value in tensors]
        return Quantized(_written(node, parts, axis, None), tensors[0].dtype)
    quantized = [
        value
        for value in values
        if isinstance(value, View) or (isinstance(value, Constant) and value.scale is not None)
    ]
    if len(quantized) == len(values) and any(isinstance(value, View) for value in values):
        return concat(node, quantized, axis)
    reals = [
        value.real.astype("float32") if isinstance(value, Constant) else node.realised(value)
        for value in values
    ]
    axis, _ = _joined(node, [part.shape for part in reals], axis)
    return Real(_written(node, reals, axis, None))


# ------------------------------------------------------------------------------ paddings


def _pad(node: NodeReader) -> Value:
    tensor = tensor_of(node, 0)
    source = tensor.activation.shape
    widths = forms.padded(node, source)
    mode = node.text("mode", "constant")
    if mode in ("reflect", "edge", "wrap"):
        node.ignore("value", inputs=(2,))
        return _mirrored(node, tensor, widths, mode)
    if mode != "constant":
        raise node.unsupported(f"a padding in mode '{mode}'", "constant, reflect, edge or wrap")
    fill = _fill(node)
    if isinstance(tensor, Real):
        padded = moved(node, tensor, PadAxes(0, widths))
        return padded if fill == 0 else _filled(node, padded, source, widths, fill)
    number = int(fill)
    if isinstance(tensor, View):
        ratio = float(np.rint(np.float32(fill) / np.float32(tensor.step.scale)))
        number = int(min(max(ratio + tensor.step.zero_point, -128), 127))
    elif isinstance(tensor, Quantized) and tensor.dtype == "uint8":
        number -= 128
    op = PadAxes(number, widths)
    return moved(node, tensor, _as_tflite(op) if node.reader.rounding == "tflite" else op)


def _as_tflite(op: PadAxes) -> PadAxes | Pad:
    """Return a padding of maps as the layer that the reader of TFLite files makes of it."""
    for layout, first in (("NHWC", 1), ("NCHW", 2)):
        rest = [*op.widths[:first], *op.widths[first + 2 :]]
        if len(op.widths) == 4 and not any(map(any, rest)):
            (top, bottom), (left, right) = op.widths[first : first + 2]
            return Pad(op.value, (top, left, bottom, right), layout)
    return op


def _fill(node: NodeReader) -> float:
    if "value" in node.attributes:
        fill = node.number("value", 0.0)
    else:
        constant = node.value(2) if node.input(2) else None
        if constant is not None and not isinstance(constant, Constant):
            raise node.unsupported("its value is computed at run time", "make it constant")
        if constant is not None and constant.data.size != 1:
            raise node.damaged(f"a padding with {constant.data.size} numbers")
        fill = float(constant.real.reshape(-1)[0]) if constant is not None else 0.0
    if not math.isfinite(fill):
        raise node.unsupported(f"a padding with {fill}", "pad with a number")
    return fill


def _filled(
    node: NodeReader,
    padded: Tensor,
    source: tuple[int, ...],
    widths: Sequence[tuple[int, int]],
    fill: float,
) -> Real:
    """Return a tensor padded with zeros, with another number there; adding 0 is exact."""
    shape = padded.activation.shape
    node.reader.graph.budget.spend("folded_elements", math.prod(shape), node.where)
    border = np.pad(np.zeros(source, "float32"), widths, constant_values=np.float32(fill))
    return Real(node.combine("add", padded.activation, border))


def _mirrored(
    node: NodeReader,
    tensor: Tensor,
    widths: Sequence[tuple[int, int]],
    mode: str,
) -> Tensor:
    for axis, width in enumerate(widths):
        if not any(width):
            continue
        size = tensor.activation.shape[axis]
        if mode == "reflect" and max(width) >= size:
            raise node.unsupported(f"a reflection of {max(width)} of {size} elements")
        node.reader.graph.budget.spend_places(size + sum(width), node.where)
        places = np.pad(np.arange(size), width, mode=mode)
        tensor = moved(node, tensor, Take(axis, tuple(int(place) for place in places)))
    return tensor


HANDLERS: dict[str, Handler] = {"Concat": _concat, "Pad": _pad}
"""Handlers by operator."""
