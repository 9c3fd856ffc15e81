"""QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from htvm.frontend.onnx import forms
from htvm.frontend.onnx.affine.reader import NodeReader, offset_of
from htvm.frontend.onnx.affine.unary import requantized
from htvm.frontend.onnx.affine.values import (
    Constant,
    Pending,
    Quantized,
    Real,
    Sums,
    Value,
    View,
    in_steps,
    integers_of,
)
from htvm.frontend.onnx.tensors import WIDER
from htvm.frontend.operators import Activation, Applied, Quantization
from patterns.op import Scale
from patterns.ops.convert import Convert
from patterns.ops.integer.rescale import Rescale
from patterns.ops.onnxruntime.rounding import OnnxQuantize, OnnxReal
from patterns.ops.torch.quantize import TorchQuantize

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxNode


def scale_of(node: NodeReader, index: int) -> Array:
    """Return a scale, or one per channel, float32 [n]; float64 in a program of torch.

    Raises:
        UnsupportedError: it is computed at run time, or not positive and finite.
    """
    scales = node.array(index, "scale")
    doubles = node.reader.rounding != "onnx" and scales.dtype == np.float64
    if scales.dtype != np.float32 and not doubles:
        raise node.unsupported(f"scales of type {scales.dtype}", "float32 is supported")
    if not scales.size or not np.all(np.isfinite(scales)) or not np.all(scales > 0):
        worst = [float(scale) for scale in scales.reshape(-1) if not (scale > 0)][:1]
        raise node.unsupported(
            f"scale {worst[0] if worst else 'infinite or missing'} in '{node.input(index)}'",
            "scales must be positive and finite: calibrate again, with data that are not constant",
        )
    return scales.reshape(-1)


def step_of(node: NodeReader, index: int) -> tuple[Quantization, str]:
    """Return an activation's scale (input ``index``) and zero point (the next input).

    Returns:
        The quantization of the int8 tensor, and the type in the file; int16 stays int16.

    Raises:
        UnsupportedError: there are several, or the type is neither int8 nor uint8, nor int16 in a
            program of torch.
    """
    scales = scale_of(node, index)
    zeros = node.optional(index + 1, "zero point")
    zeros = np.zeros(1, "uint8") if zeros is None else zeros.reshape(-1)
    if scales.size != 1 or zeros.size != 1:
        raise node.unsupported(
            f"an activation with {max(scales.size, zeros.size)} scales",
            "quantize activations per tensor; per channel is for weights",
        )
    dtype = zeros.dtype.name
    if dtype not in ("int8", "uint8") and (dtype, node.reader.rounding) != ("int16", "torch"):
        raise node.unsupported(f"an activation of type {dtype}", "int8 and uint8 are supported")
    return Quantization(float(scales[0]), int(zeros[0]) - offset_of(dtype)), dtype


def constant_of(node: NodeReader, index: int, axis: int | None = None) -> Constant:
    """Return a constant (input ``index``), its scale and zero point (the next inputs).

    Args:
        node: the node.
        index: number of the input with the integers.
        axis: axis of the scales, if there are several.

    Raises:
        UnsupportedError: the constant is computed at run time.
        ModelError: scales, zero points and channels differ in number or type.
    """
    data = node.array(index, "operand")
    scale = scale_of(node, index + 1)
    zeros = node.optional(index + 2, "zero point")
    zeros = np.zeros(scale.size, data.dtype) if zeros is None else zeros.reshape(-1)
    return dequantized(node, data, scale, zeros, axis)


def dequantized(
    node: OnnxNode, data: Array, scale: Array, zeros: Array, axis: int | None
) -> Constant:
    """Return a constant from integers, with scales and zero points spread along ``axis``."""
    data = _integers(node, data, zeros)
    if zeros.size != scale.size:
        raise node.damaged(f"{scale.size} scales and {zeros.size} zero points")
    shape = [1] * data.ndim
    if scale.size > 1:
        if axis is None or not -data.ndim <= axis < data.ndim:
            raise node.damaged(f"axis {axis} of a tensor of shape {list(data.shape)}")
        if data.shape[axis] != scale.size:
            raise node.damaged(
                f"{scale.size} scales for {data.shape[axis]} channels of shape {list(data.shape)}",
                "there must be one scale, or one for each channel along the axis",
            )
        shape[axis] = -1
    scale = scale.astype("float32").reshape(shape)
    return Constant(data, scale, zeros.astype("int64").reshape(shape))


def _integers(node: OnnxNode, data: Array, zeros: Array) -> Array:
    """Return dequantized data in a type of numpy's own.

    Raises:
        ModelError: they are no integers, or their zero point is of another type.
    """
    if data.dtype.kind not in "iu" and data.dtype.name not in WIDER:
        raise node.damaged(f"dequantized data of type {data.dtype}")
    if zeros.dtype != data.dtype:
        raise node.damaged(f"data of type {data.dtype} with a zero point of type {zeros.dtype}")
    return data.astype(WIDER.get(data.dtype.name, data.dtype))


def _check_shapes(node: NodeReader) -> None:
    """Check that scales are one number or a row, and zero points likewise.

    Raises:
        ModelError: they are not, or differ.
    """
    scale, zeros = node.array(1, "scale"), node.optional(2, "zero point")
    if scale.ndim > 1:
        raise node.damaged(
            f"scales of shape {list(scale.shape)} in '{node.input(1)}'",
            "one number, or a row with one for each channel",
        )
    one = zeros is None or (zeros.size == scale.size == 1 and zeros.ndim <= 1)
    if zeros is not None and not one and zeros.shape != scale.shape:
        raise node.damaged(
            f"scales of shape {list(scale.shape)}, and zero points of shape {list(zeros.shape)}",
            "there must be a zero point for each scale",
        )


def _dequantize(node: NodeReader) -> Value:
    value = node.value(0)
    node.ignore("axis")  # read with several scales
    if isinstance(value, Constant):
        if value.scale is not None:
            raise node.damaged("it dequantizes reals")
        if node.integer("block_size", 0):
            return _of_blocks(node, value.data)
        _check_shapes(node)
        return constant_of(node, 0, node.integer("axis", 1))
    _check_shapes(node)
    if isinstance(value, Sums):
        return _dequantized_sums(node, value)
    if not isinstance(value, Quantized):
        raise node.unsupported(f"it dequantizes {_brief(value)}", "quantize the tensor before")
    return in_reals(node, view_of(node, value, 1))


def in_reals(node: NodeReader, view: View) -> View | Real:
    """Return a dequantized tensor as most operators read it: int16 as reals."""
    return Real(node.realised(view)) if view.dtype == "int16" else view


def view_of(node: NodeReader, value: Quantized, index: int) -> View:
    """Return an 8-bit tensor with its scale (input ``index``) and zero point (the next input).

    Raises:
        ModelError: the zero point has another type than the data.
    """
    step, dtype = step_of(node, index)
    if not node.input(index + 1):  # an omitted zero point has the type of the data
        dtype, step = value.dtype, Quantization(step.scale, -offset_of(value.dtype))
    if dtype != value.dtype:
        raise node.damaged(f"data of type {value.dtype} with a zero point of type {dtype}")
    _learn(node, value.activation, step)
    return View(value.activation, step, dtype)


def _of_blocks(node: NodeReader, data: Array) -> Constant:
    """Return a constant with a scale for each block of elements along an axis.

    Raises:
        ModelError: scales or zero points are not as many as the blocks.
    """
    block = node.integer("block_size")
    axis = forms.axis_of(node, node.integer("axis", 1), data.ndim)
    blocks = [*data.shape]
    blocks[axis] = -(-data.shape[axis] // max(block, 1))
    size = min(block, data.shape[axis])
    parameters = [node.array(1, "scale"), node.optional(2, "zero point")]
    for role, item in zip(("scales", "zero points"), parameters, strict=True):
        if item is not None and (block < 1 or list(item.shape) != blocks):
            raise node.damaged(
                f"{role} of shape {list(item.shape)} for blocks of {block} along axis {axis} of "
                f"{list(data.shape)}",
                f"there must be one for each block: {blocks}",
            )
    zeros = np.zeros(blocks, data.dtype) if parameters[1] is None else parameters[1]
    wide = _integers(node, data, zeros)
    scale, zeros = (
        item.reshape(blocks).repeat(size, axis).take(range(data.shape[axis]), axis)
        for item in (scale_of(node, 1), zeros.astype("int64"))
    )
    return Constant.along_axes(wide, scale, zeros, node.where, blocks=True)


def _learn(node: NodeReader, activation: Activation, step: Quantization) -> None:
    """Record the quantization of a tensor, and of those that it has its values from."""
    node.reader.steps.setdefault(activation, step)
    origin = activation.origin
    if not isinstance(origin, Applied):
        return
    moved = origin.op.offset if isinstance(origin.op, Rescale) else None
    if moved is not None:
        _learn(node, origin.inputs[0], Quantization(step.scale, step.zero_point - moved))
    elif origin.op.scale is Scale.PASSES and not isinstance(origin.op, Convert):
        for source in origin.inputs:
            _learn(node, source, step)


def _dequantized_sums(node: NodeReader, value: Sums) -> Real:
    scale = scale_of(node, 1)
    zeros = node.optional(2, "zero point")
    if scale.size != 1 or (zeros is not None and zeros.any()):
        raise node.unsupported("int32 sums with several scales or a zero point")
    return Real(real_of_sums(node, value.activation, scale, 0))


def real_of_sums(node: NodeReader, sums: Activation, scale: Array, axis: int) -> Activation:
    """Return int32 sums as reals; there is one scale, or they are along ``axis``."""
    shape = [1] * len(sums.shape)
    if scale.size > 1:
        shape[axis] = -1
    factors = np.asarray(scale.reshape(shape), "float32", order="C")
    return node.write(OnnxReal(factors), sums)


def _quantize(node: NodeReader) -> Value:
    value = node.value(0)
    _check_shapes(node)
    node.ignore("axis", "saturate", "precision")  # of several scales, and of reals of 8 bits
    step, dtype = step_of(node, 1)
    if node.integer("output_dtype", 0) not in (0, _NUMBERS[dtype]):
        raise node.unsupported(f"output_dtype {node.integer('output_dtype')}", "as the zero point")
    if isinstance(value, Constant):
        return _quantized_constant(node, value, step, dtype)
    return quantized(node, value, step, dtype)


_NUMBERS = {"int8": 3, "int16": 5, "uint8": 2}
"""Types by their number in the standard."""


def _quantized_constant(
    node: NodeReader, value: Constant, step: Quantization, dtype: str
) -> Constant:
    """Return the integers of a constant of reals; ``dtype`` is their type in the file."""
    if not np.isfinite(value.real).all():
        raise node.unsupported("it quantizes a constant that is not finite everywhere")
    limits, reals = np.iinfo(dtype), value.real.astype("float32")
    steps = np.rint(in_steps(reals, step, node.reader.rounding)) + step.zero_point
    return Constant(np.clip(steps + offset_of(dtype), limits.min, limits.max).astype(dtype))


def quantized(node: NodeReader, value: Value, step: Quantization, dtype: str) -> Quantized:
    """Return a value quantized; ``dtype`` is its type in the file.

    Raises:
        UnsupportedError: it is constant, or already integers.
    """
    inner = "int16" if dtype == "int16" else "int8"
    view = integers_of(value) or value
    if isinstance(view, View):
        if view.step == step and view.activation.dtype == inner:
            return Quantized(view.activation, dtype)
        if "int16" not in (inner, view.dtype):
            return Quantized(requantized(node, view, step), dtype)
    if isinstance(value, View) or (isinstance(value, Pending) and value.dtype != inner):
        value = Real(node.realised(value))
    if isinstance(value, Pending):
        clip = value.bound.clip(step, node.reader.rounding, inner)
        activation = value.finish(step, clip, value.bias)
        node.reader.steps.setdefault(activation, step)
        return Quantized(activation, dtype)
    if not isinstance(value, Real):
        raise node.unsupported(f"it quantizes {_brief(value)}")
    kind = TorchQuantize if node.reader.rounding == "torch" else OnnxQuantize
    source, op = value.activation, kind(step.scale, step.zero_point, inner)
    return Quantized(node.write(op, source, step=step), dtype)


def _brief(value: Value) -> str:
    return f"a {type(value).__name__.lower()}"


HANDLERS = {"DequantizeLinear": _dequantize, "QuantizeLinear": _quantize}
"""Handlers by operator."""
