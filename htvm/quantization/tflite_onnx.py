"""The ONNX graph for a float TFLite file while it is written; functions, moves, resizing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from byoc_dory.layers import Array
from htvm.frontend.tflite.file import TfliteFile, TfliteTensor
from htvm.frontend.tflite.pools import nearest_place
from htvm.frontend.tflite.reader import SAME, VALID, OperatorReader

TO_NCHW, _TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
_OPSET, _IR_VERSION = 17, 8


class OnnxBuilder:
    """Nodes, constants, and the value for each tensor of the file.

    Args:
        file: file with float32 activations; inputs and outputs keep its names and shapes.
    """

    def __init__(self, file: TfliteFile) -> None:
        self._file = file
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._values: dict[int, str] = {}
        self._taken = {tensor.name for tensor in file.tensors}
        self._outputs = {tensor.index for tensor in file.outputs}
        for tensor in file.inputs:
            self._values[tensor.index] = tensor.name
            if len(tensor.shape) == 4:
                self._values[tensor.index] = self.nchw(tensor.name, tensor.shape)

    def _new_name(self, base: str) -> str:
        """Return an unused name."""
        name, count = base, 1
        while name in self._taken:
            name, count = f"{base}_{count}", count + 1
        self._taken.add(name)
        return name

    def node(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Append a node; return its output."""
        name = self._new_name(kind.lower())
        self._nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    @property
    def last(self) -> str:
        """Output of the node appended last."""
        return str(self._nodes[-1].output[0])

    def constant(self, array: Array) -> str:
        """Add a constant in C order."""
        name = self._new_name("constant")
        self._constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def value(self, op: OperatorReader, tensor: TfliteTensor) -> str:
        """Return the name of an activation, which is NCHW if it has four axes."""
        if tensor.data is not None:
            raise op.unsupported(f"{tensor.place} is constant, not an activation")
        return self._values[tensor.index]

    def flat(self, op: OperatorReader, tensor: TfliteTensor) -> str:
        """Return an activation with its elements in the file's order."""
        value, shape = self.value(op, tensor), tensor.shape
        if len(shape) != 4 or _same_order(shape):
            return value
        return self.node("Transpose", [value], perm=_TO_NHWC)

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """Return the same elements in another shape."""
        return self.node("Reshape", [value, self.constant(np.asarray(shape, np.int64))])

    def shaped(self, value: str, shape: Sequence[int]) -> str:
        """Return elements in the file's order, in a shape from the file."""
        if len(shape) != 4:
            return self.reshape(value, shape)
        if _same_order(shape):
            return self.reshape(value, [shape[axis] for axis in TO_NCHW])
        return self.nchw(self.reshape(value, shape), shape)

    def nchw(self, value: str, shape: Sequence[int]) -> str:
        """Return a tensor with an NHWC shape as NCHW."""
        if _same_order(shape):
            return self.reshape(value, [shape[axis] for axis in TO_NCHW])
        return self.node("Transpose", [value], perm=TO_NCHW)

    def finish(self, tensor: TfliteTensor) -> None:
        """Give the last node, which computes ``tensor``, the tensor's name."""
        last = self._nodes[-1]
        if len(tensor.shape) != 4 or tensor.index not in self._outputs:
            last.output[0] = last.name = tensor.name
        self._values[tensor.index] = last.output[0]

    def model(self, name: str) -> ModelProto:
        """Return the whole model."""
        for tensor in self._file.outputs:
            if len(tensor.shape) == 4:
                value = self._values[tensor.index]
                if _same_order(tensor.shape):
                    self.reshape(value, tensor.shape)
                else:
                    self.node("Transpose", [value], perm=_TO_NHWC)
                self._nodes[-1].output[0] = tensor.name
        graph = helper.make_graph(
            self._nodes,
            name,
            [_info(tensor) for tensor in self._file.inputs],
            [_info(tensor) for tensor in self._file.outputs],
            self._constants,
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def _info(tensor: TfliteTensor) -> Any:
    return helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, tensor.shape)


def _same_order(shape: Sequence[int]) -> bool:
    """Whether NHWC and NCHW have the same order of elements."""
    return shape[3] == 1 or shape[1] * shape[2] == 1


Handler = Callable[[OperatorReader, OnnxBuilder], None]


# ------------------------------------------------------------------------------ elements


def unary(kind: str, **attributes: float) -> Handler:
    """Return what appends a node that computes its operator from a tensor of the same shape."""

    def append(op: OperatorReader, net: OnnxBuilder) -> None:
        op.count((1,))
        op.result_shape(op.tensor(0).shape)
        net.node(kind, [net.value(op, op.tensor(0))], **attributes)

    return append


def _leaky_relu(op: OperatorReader, net: OnnxBuilder) -> None:
    unary("LeakyRelu", alpha=op.options(75).real(0))(op, net)


def _rsqrt(op: OperatorReader, net: OnnxBuilder) -> None:
    unary("Sqrt")(op, net)
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
        coordinates = "align_corners" if aligned else "half_pixel" if halves else "asymmetric"
        value = net.value(op, source)
        if mode == "linear":
            sizes = net.constant(np.asarray([source.shape[0], source.shape[3], y, x], np.int64))
            operands = [value, "", "", sizes]
            net.node("Resize", operands, mode=mode, coordinate_transformation_mode=coordinates)
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
    "ELU": unary("Elu"),
    "EXPAND_DIMS": _same_elements,
    "GELU": _gelu,
    "HARD_SWISH": unary("HardSwish"),
    "LEAKY_RELU": _leaky_relu,
    "MEAN": _mean,
    "NEG": unary("Neg"),
    "RESIZE_BILINEAR": _resize("linear", 15),
    "RESIZE_NEAREST_NEIGHBOR": _resize("nearest", 74),
    "RSQRT": _rsqrt,
    "SQUEEZE": _same_elements,
    "TANH": unary("Tanh"),
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "TRANSPOSE_CONV": _transpose_conv,
}
"""TFLite's operator -> function that appends its nodes."""
