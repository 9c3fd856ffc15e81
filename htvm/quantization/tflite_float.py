"""Converting a float TFLite file to a float ONNX model, which `htvm.quantize` turns into int8.

Inputs and outputs keep the file's names and shapes.  Inside, tensors with four axes are NCHW,
ONNX's layout of maps: a transposition follows such an input, and precedes such an output and
operators that depend on the order of elements.  Constants are converted here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import ModelProto

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.limits import Limits
from htvm.frontend.operators import Pads, Pair
from htvm.frontend.tflite import read_tflite
from htvm.frontend.tflite.file import TfliteFile, TfliteTensor
from htvm.frontend.tflite.flatbuffer import FlatTable
from htvm.frontend.tflite.pools import pool_window
from htvm.frontend.tflite.products import check_depthwise, groups_of, window
from htvm.frontend.tflite.reader import OperatorReader, constant_array
from htvm.frontend.tflite.shapes import check_reshape, concatenated
from htvm.quantization.tflite_onnx import ELEMENTS, TO_NCHW, Handler, OnnxBuilder, unary

_AXIS = (0, 2, 3, 1)  # NHWC -> NCHW
_CLIPS = {2: (-1.0, 1.0), 3: (0.0, 6.0)}  # fused activation functions, besides none and ReLU


def float_onnx(path: Path, limits: Limits | None = None) -> ModelProto:
    """Translate a float TFLite file.

    Args:
        path: the file.
        limits: what reading it may take; by default those of `Limits`.

    Returns:
        A float32 model with the same names and shapes (NHWC) at its borders.

    Raises:
        ModelError: the file cannot be read, is not a TFLite model, is damaged, or is already
            quantized.
        UnsupportedError: it uses an unsupported operator, or an unsupported option of one.
    """
    file = read_tflite(path, limits)
    _check(file)
    network = OnnxBuilder(file)
    for operator in file.operators:
        HANDLERS[operator.kind](OperatorReader(operator, {}, file.budget), network)
        network.finish(operator.outputs[0])
    return network.model(path.stem)


def _check(file: TfliteFile) -> None:
    """Check for known operators on float32 tensors, and names that ONNX allows."""
    places = [("an input", tensor) for tensor in file.inputs]
    places += [(op.place, tensor) for op in file.operators for tensor in op.outputs]
    for where, tensor in places:
        if tensor.scales and tensor.dtype != "float32":
            raise ModelError(
                f"the model is quantized already ({tensor.place} is {tensor.dtype})",
                where=where,
                hint="give it to htvm.load",
            )
    for operator in file.operators:
        if operator.kind not in HANDLERS:
            raise UnsupportedError(
                f"operator {operator.kind} is not supported in a float TFLite file",
                where=operator.place,
                hint=f"supported are {', '.join(sorted(HANDLERS))}; or let TensorFlow's converter "
                "quantize it fully to int8 (representative_dataset) for htvm.load",
            )
    for where, tensor in places:
        if tensor.dtype != "float32":
            raise UnsupportedError(f"{tensor.place} is {tensor.dtype}, not float32", where=where)
    given = [tensor.index for tensor in file.outputs]
    if len(set(given)) < len(given) or set(given) & {tensor.index for tensor in file.inputs}:
        raise UnsupportedError(
            "an output that is an input, or listed twice", where="the graph's outputs"
        )


# ------------------------------------------------------------------------------ products


def _conv(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((2, 3))
    source, weights = op.tensor(0), _weights(op, 4)
    op.batch(source, 4)
    groups = groups_of(op, source, weights.shape)
    _convolution(op, net, weights.transpose(0, 3, 1, 2), op.options(1), (4, 5), 3, groups)


def _depthwise(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((2, 3))
    source, weights = op.tensor(0), _weights(op, 4)
    op.batch(source, 4)
    options = check_depthwise(op, source, weights.shape)
    _convolution(op, net, weights.transpose(3, 0, 1, 2), options, (5, 6), 4, source.shape[3])


def _convolution(
    op: OperatorReader,
    net: OnnxBuilder,
    weights: Array,
    options: FlatTable,
    dilation_fields: tuple[int, int],
    fused: int,
    groups: int,
) -> None:
    """Append a convolution with weights (K, C / groups, fy, fx)."""
    channels, kernel = len(weights), weights.shape[2:]
    strides, pads, dilations = window(op, options, kernel, dilation_fields, channels)
    operands = [net.value(op, op.tensor(0)), net.constant(weights), *_bias(op, net, channels)]
    made = net.node(
        "Conv", operands, kernel_shape=kernel, strides=strides, pads=pads, dilations=dilations,
        group=groups,
    )  # fmt: skip
    _fused(op, net, options, fused, made)


def _fully_connected(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((2, 3))
    source, weights, options = op.tensor(0), _weights(op, 2), op.options(8)
    if options.integer(1, "b"):
        raise op.unsupported("shuffled weights")
    channels, depth = weights.shape
    rows, rest = divmod(math.prod(source.shape), depth)
    result = op.operator.outputs[0].shape
    if rest or result[-1:] != (channels,) or math.prod(result) != rows * channels:
        raise op.corrupt(f"weights of shape {weights.shape} from {source.shape} to {result}")
    value = net.flat(op, source)
    if source.shape != (rows, depth):
        value = net.reshape(value, (rows, depth))
    operands = [value, net.constant(weights.T), *_bias(op, net, channels)]
    made = net.node("Gemm" if len(operands) == 3 else "MatMul", operands)
    made = _fused(op, net, options, 0, made)
    if result != (rows, channels):
        net.shaped(made, result)


def _weights(op: OperatorReader, rank: int) -> Array:
    array = _constant(op, op.tensor(1))
    if array.ndim != rank:
        raise op.corrupt(f"weights of shape {array.shape}")
    return array


def _bias(op: OperatorReader, net: OnnxBuilder, channels: int) -> list[str]:
    tensor = op.operator.inputs[2] if len(op.operator.inputs) > 2 else None
    if tensor is None:
        return []
    if tensor.shape != (channels,):
        raise op.corrupt(f"{tensor.place} of shape {tensor.shape} for {channels} channels")
    return [net.constant(_constant(op, tensor))]


def _constant(op: OperatorReader, tensor: TfliteTensor) -> Array:
    if tensor.data is None:
        raise op.unsupported(f"{tensor.place} is computed at run time", "make it constant")
    if tensor.dtype != "float32":
        raise op.unsupported(f"{tensor.dtype} constants ({tensor.place})", "export them as float32")
    return constant_array(tensor)


# ------------------------------------------------------------------------------ maps


def _average_pool(op: OperatorReader, net: OnnxBuilder) -> None:
    value, kernel, strides, pads = _pooled(op, net)
    window_of = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    if any(pads):
        # Retargeting does not support padded averages: use sums divided by the number of elements.
        channels = op.tensor(0).shape[3]
        mean = np.full((channels, 1, *kernel), 1 / math.prod(kernel), np.float32)
        made = net.node("Conv", [value, net.constant(mean)], group=channels, **window_of)
        ratios = math.prod(kernel) / _counts(op, kernel, strides, pads)
        made = net.node("Mul", [made, net.constant(ratios[None, None].astype(np.float32))])
    else:
        made = net.node("AveragePool", [value], **window_of)
    _fused(op, net, op.options(5), 5, made)


def _counts(op: OperatorReader, kernel: Pair, strides: Pair, pads: Pads) -> Array:
    """Return ``[oy, ox]``: the number of elements in each window that are not padding."""
    inside = []
    for axis in (0, 1):
        size, out = op.tensor(0).shape[1 + axis], op.operator.outputs[0].shape[1 + axis]
        first = np.arange(out) * strides[axis] - pads[axis]
        inside.append(np.minimum(first + kernel[axis], size) - np.maximum(first, 0))
    return np.outer(*inside)


def _max_pool(op: OperatorReader, net: OnnxBuilder) -> None:
    value, kernel, strides, pads = _pooled(op, net)
    made = net.node("MaxPool", [value], kernel_shape=kernel, strides=strides, pads=pads)
    _fused(op, net, op.options(5), 5, made)


def _pooled(op: OperatorReader, net: OnnxBuilder) -> tuple[str, Pair, Pair, Pads]:
    """Return a pool's input, kernel, strides and padding."""
    op.count((1,))
    geometry = pool_window(op, op.tensor(0))
    return net.value(op, op.tensor(0)), *geometry


# ------------------------------------------------------------------------------ elements


def _binary(kind: str, options: int | None) -> Handler:
    def binary(op: OperatorReader, net: OnnxBuilder) -> None:
        op.count((2,))
        operands = [op.tensor(0), op.tensor(1)]
        if all(tensor.data is not None for tensor in operands):
            raise op.unsupported("two constants", "fold them")
        try:
            op.result_shape(np.broadcast_shapes(*(tensor.shape for tensor in operands)))
        except ValueError:
            raise op.corrupt(f"operands of {operands[0].shape} and {operands[1].shape}") from None
        made = net.node(kind, [_operand(op, net, tensor) for tensor in operands])
        if options is not None:
            _fused(op, net, op.options(options), 0, made)

    return binary


def _squared_difference(op: OperatorReader, net: OnnxBuilder) -> None:
    _binary("Sub", None)(op, net)
    net.node("Mul", [net.last, net.last])


def _operand(op: OperatorReader, net: OnnxBuilder, tensor: TfliteTensor) -> str:
    """Return an operand that is broadcast to the result, constant or not."""
    rank = len(op.operator.outputs[0].shape)
    if tensor.data is not None:
        array = _constant(op, tensor)
        array = array.reshape((1,) * (rank - array.ndim) + array.shape)
        return net.constant(array.transpose(TO_NCHW) if rank == 4 else array)
    if len(tensor.shape) != rank:
        return net.shaped(net.flat(op, tensor), (1,) * (rank - len(tensor.shape)) + tensor.shape)
    return net.value(op, tensor)


def _relu_6(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((1,))
    op.result_shape(op.tensor(0).shape)
    _clip(net, net.value(op, op.tensor(0)), 3)


def _clip(net: OnnxBuilder, value: str, code: int) -> str:
    bounds = [net.constant(np.asarray(bound, np.float32)) for bound in _CLIPS[code]]
    return net.node("Clip", [value, *bounds])


def _fused(op: OperatorReader, net: OnnxBuilder, options: FlatTable, field: int, value: str) -> str:
    """Append the operator's fused activation function to a value."""
    code = options.integer(field, "b")
    if code in _CLIPS:
        return _clip(net, value, code)
    if code not in (0, 1):
        raise op.unsupported(
            f"fused activation function {code}", "supported are none, ReLU, ReLU-1-to-1, ReLU6"
        )
    return net.node("Relu", [value]) if code else value


def _softmax(op: OperatorReader, net: OnnxBuilder) -> None:
    beta = op.options(9).real(0)
    if beta != 1:
        raise op.unsupported(f"a softmax with beta {beta:g}", "use 1")
    unary("Softmax", axis=1 if len(op.tensor(0).shape) == 4 else -1)(op, net)


# ------------------------------------------------------------------------------ shapes


def _reshape(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((1, 2))
    source, result = op.tensor(0), op.operator.outputs[0]
    check_reshape(op, source, result)
    net.shaped(net.flat(op, source), result.shape)


def _pad(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((2,))
    source = op.tensor(0)
    rank, flat = len(source.shape), op.constant(1, "widths")
    if len(flat) != 2 * rank or any(width < 0 for width in flat):
        raise op.corrupt(f"padding {flat} of {source.shape}")
    widths = np.asarray(flat, np.int64).reshape(rank, 2)
    total = widths.sum(axis=1).tolist()
    op.result_shape([size + more for size, more in zip(source.shape, total, strict=True)])
    if rank == 4:
        widths = widths[list(TO_NCHW)]
    net.node("Pad", [net.value(op, source), net.constant(widths.T.reshape(-1))])


def _concatenation(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count(range(1, len(op.operator.inputs) + 1))
    parts = [op.tensor(at) for at in range(len(op.operator.inputs))]
    options, axis = concatenated(op, parts)
    rank = len(op.operator.outputs[0].shape)
    values = [_operand(op, net, part) for part in parts]
    made = net.node("Concat", values, axis=_AXIS[axis] if rank == 4 else axis)
    _fused(op, net, options, 1, made)


HANDLERS: Mapping[str, Handler] = {
    **ELEMENTS,
    "ADD": _binary("Add", 11),
    "AVERAGE_POOL_2D": _average_pool,
    "CONCATENATION": _concatenation,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _fully_connected,
    "LOGISTIC": unary("Sigmoid"),
    "MAX_POOL_2D": _max_pool,
    "MUL": _binary("Mul", 21),
    "PAD": _pad,
    "RELU": unary("Relu"),
    "RELU6": _relu_6,
    "RESHAPE": _reshape,
    "SOFTMAX": _softmax,
    "SQUARED_DIFFERENCE": _squared_difference,
    "SUB": _binary("Sub", 28),
}
"""TFLite's operator -> function that appends its nodes, the last of which computes its output."""
