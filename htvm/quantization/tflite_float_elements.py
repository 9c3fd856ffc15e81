"""Operators of float TFLite files as ONNX: functions, moves, resizing, transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from htvm.frontend.tflite.pools import nearest_place
from htvm.frontend.tflite.reader import SAME, VALID, OperatorReader
from htvm.quantization.tflite_network import TO_NCHW, OnnxBuilder

Handler = Callable[[OperatorReader, OnnxBuilder], None]


# ------------------------------------------------------------------------------ elements


def _unary(kind: str, **attributes: float) -> Handler:
    def unary(op: OperatorReader, net: OnnxBuilder) -> None:
        op.count((1,))
        op.result_shape(op.tensor(0).shape)
        net.node(kind, [net.value(op, op.tensor(0))], **attributes)

    return unary


def _leaky_relu(op: OperatorReader, net: OnnxBuilder) -> None:
    _unary("LeakyRelu", alpha=op.options(75).real(0))(op, net)


def _rsqrt(op: OperatorReader, net: OnnxBuilder) -> None:
    _unary("Sqrt")(op, net)
    net.node("Reciprocal", [net.last])


def _gelu(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((1,))
    op.result_shape(op.tensor(0).shape)
    if op.options(116).integer(0, "B"):
        raise op.unsupported("an approximate GELU", "convert it with approximate=False")
    source = net.value(op, op.tensor(0))

    def number(value: float) -> str:
        return net.constant(np.asarray(value, np.float32))

    half = net.node("Mul", [source, number(0.5)])
    error = net.node("Erf", [net.node("Mul", [source, number(math.sqrt(0.5))])])
    net.node("Mul", [half, net.node("Add", [error, number(1.0)])])


def _mean(op: OperatorReader, net: OnnxBuilder) -> None:
    """Means of anything but maps; over whole maps it is a GlobalAveragePool."""
    op.count((2,))
    source, kept = op.tensor(0), bool(op.options(27).integer(0, "B"))
    rank = len(source.shape)
    axes = sorted({op.axis(axis, rank) for axis in op.constant(1, "axes")})
    shape = [1 if at in axes else size for at, size in enumerate(source.shape)]
    if rank == 4:
        if axes != [1, 2]:
            raise op.unsupported(f"a mean of {source.shape} over axes {axes}", "means of maps are")
        made = net.node("GlobalAveragePool", [net.value(op, source)])
        if not kept:
            net.reshape(made, (shape[0], shape[3]))
    else:
        net.node("ReduceMean", [net.value(op, source)], axes=axes, keepdims=int(kept))
    op.result_shape(shape if kept else [n for at, n in enumerate(shape) if at not in axes])


# ------------------------------------------------------------------------------ moves


def _same_elements(op: OperatorReader, net: OnnxBuilder) -> None:
    """EXPAND_DIMS and SQUEEZE."""
    source, result = op.tensor(0), op.operator.outputs[0]
    if math.prod(source.shape) != math.prod(result.shape):
        raise op.corrupt(f"{source.shape} to {result.shape}")
    net.shaped(net.flat(op, source), result.shape)


def _transpose(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((2,))
    source, axes = op.tensor(0), op.constant(1, "axes")
    if sorted(axes) != list(range(len(source.shape))):
        raise op.corrupt(f"axes {axes} of {source.shape}")
    op.result_shape([source.shape[axis] for axis in axes])
    made = net.node("Transpose", [net.flat(op, source)], perm=axes)
    if len(axes) == 4:
        net.nchw(made, op.operator.outputs[0].shape)


def _tile(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((2,))
    source, counts = op.tensor(0), op.constant(1, "numbers of copies")
    rank = len(source.shape)
    if len(counts) != rank or min(counts) < 1:
        raise op.corrupt(f"{counts} copies of {source.shape}")
    op.result_shape([size * count for size, count in zip(source.shape, counts, strict=True)])
    ordered = [counts[axis] for axis in TO_NCHW] if rank == 4 else counts
    net.node("Tile", [net.value(op, source), net.constant(np.asarray(ordered, np.int64))])


def _resize(mode: str, options: int) -> Handler:
    def resize(op: OperatorReader, net: OnnxBuilder) -> None:
        op.count((2,))
        source, (y, x) = op.tensor(0), op.constant(1, "sizes")
        op.batch(source, 4)
        op.result_shape((source.shape[0], y, x, source.shape[3]))
        fields = op.options(options)
        # The first field of old files is a size; ResizeNearestNeighbor's options never had any.
        first = 2 if mode == "linear" else 0
        aligned, halves = (bool(fields.integer(first + at, "B")) for at in (0, 1))
        way = "align_corners" if aligned else "half_pixel" if halves else "asymmetric"
        value = net.value(op, source)
        if mode == "linear":
            sizes = net.constant(np.asarray([source.shape[0], source.shape[3], y, x], np.int64))
            operands = [value, "", "", sizes]
            net.node("Resize", operands, mode=mode, coordinate_transformation_mode=way)
            return
        # By number: ONNX rounds places halfway between two pixels in another way.
        for axis, size in ((2, y), (3, x)):
            old = source.shape[axis - 1]
            places = [nearest_place(at, old, size, aligned, halves) for at in range(size)]
            value = net.node("Gather", [value, net.constant(np.asarray(places))], axis=axis)

    return resize


# ------------------------------------------------------------------------------ convolutions


def _transpose_conv(op: OperatorReader, net: OnnxBuilder) -> None:
    op.count((3, 4))
    source, weights = op.tensor(2), op.tensor(1)
    op.batch(source, 4)
    if weights.data is None or weights.dtype != "float32" or len(weights.shape) != 4:
        raise op.unsupported(f"weights of {weights.dtype} that are not constant", "make them so")
    options, shape = op.options(49), op.constant(0, "sizes of the output")
    channels, *kernel, inputs = weights.shape
    op.result_shape(shape)
    if inputs != source.shape[3] or shape[3] != channels:
        raise op.corrupt(f"weights of shape {weights.shape} from {source.shape} to {shape}")
    padding, pads, extra = options.integer(0, "b"), [0] * 4, [0, 0]
    strides = [op.positive(options, field, "stride") for field in (2, 1)]
    if padding not in (SAME, VALID):
        raise op.corrupt(f"padding {padding}")
    for axis, (stride, taps) in enumerate(zip(strides, kernel, strict=True)):
        made, whole = source.shape[1 + axis], shape[1 + axis]
        total = (made - 1) * stride + taps - whole
        pads[axis] = max(total, 0) // 2
        pads[axis + 2] = max(total, 0) - pads[axis]
        extra[axis] = max(-total, 0)
    turned = weights.data.reshape(weights.shape).transpose(3, 0, 1, 2)
    operands = [net.value(op, source), net.constant(turned)]
    if len(op.operator.inputs) > 3 and op.operator.inputs[3] is not None:
        bias = op.tensor(3)
        if bias.data is None or bias.shape != (channels,):
            raise op.unsupported("a bias that is not one constant per channel", "make it so")
        operands.append(net.constant(bias.data))
    value = net.node(
        "ConvTranspose", operands, strides=strides, pads=pads, output_padding=extra,
        kernel_shape=kernel,
    )  # fmt: skip
    fused = options.integer(3, "b")
    if fused not in (0, 1):
        raise op.unsupported(f"fused activation function {fused}", "none or ReLU")
    if fused:
        net.node("Relu", [value])


ELEMENTS: Mapping[str, Handler] = {
    "ELU": _unary("Elu"),
    "EXPAND_DIMS": _same_elements,
    "GELU": _gelu,
    "HARD_SWISH": _unary("HardSwish"),
    "LEAKY_RELU": _leaky_relu,
    "MEAN": _mean,
    "NEG": _unary("Neg"),
    "RESIZE_BILINEAR": _resize("linear", 15),
    "RESIZE_NEAREST_NEIGHBOR": _resize("nearest", 74),
    "RSQRT": _rsqrt,
    "SQUEEZE": _same_elements,
    "TANH": _unary("Tanh"),
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "TRANSPOSE_CONV": _transpose_conv,
}
"""TFLite's operator -> function that appends its nodes."""
