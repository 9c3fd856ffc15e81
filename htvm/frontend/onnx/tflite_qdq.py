"""QDQ in TFLite's arithmetic, as Relax modules of TVM's TFLite importer have it.

Values and the walk are those of `htvm.frontend.onnx.quantized`; `Reader.rounding` says whose
arithmetic layers, conversions and bounds have.  Between inputs and outputs, which may be float32 or
uint8, all tensors are int8, so that there are no parts in reals: only what TFLite Micro computes in
integers is read.  No file says that it means this arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.onnx import forms, quantized
from htvm.frontend.onnx.affine import gemm, pointwise, quantization, shapes, unary
from htvm.frontend.onnx.affine.pools import HANDLERS as POOLS
from htvm.frontend.onnx.affine.products import filtered
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, Reader
from htvm.frontend.onnx.affine.transposed import conv_transpose
from htvm.frontend.onnx.affine.values import Constant, Pending, Quantized, Real, Value, View
from htvm.frontend.onnx.windows import sizes_of, windows_of
from htvm.frontend.operators import Activation, Clip, Quantization
from htvm.frontend.scales import binary_of, mean_of, summed
from htvm.frontend.tables import (
    absolute_table,
    hard_swish_table,
    leaky_relu_table,
    sigmoid_table,
)
from patterns.op import INT8
from patterns.ops.convert import TableLookup
from patterns.ops.float32.quantize import Quantize
from patterns.ops.integer.reduction import Extreme, ReduceExtreme, Which
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.binary import Function
from patterns.ops.tflite.log_softmax import TfliteLogSoftmax
from patterns.ops.tflite.softmax import TfliteSoftmax

if TYPE_CHECKING:
    from htvm.frontend.onnx.dialect import Network
    from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode
    from patterns.op import Op

_Table: TypeAlias = Callable[[Quantization, Quantization], Array]
"""Returns the results for -128 to 127, from the quantizations of input and output."""

_BORDER = ("int8", "uint8", "float32")


def read(graph: OnnxGraph) -> Network:
    """Return the network.

    Raises:
        UnsupportedError: a node is not supported; the message names it.
        ModelError: the graph contradicts itself.
    """
    for item in graph.inputs:
        if item.dtype not in _BORDER:
            raise UnsupportedError(
                f"its type is {item.dtype}",
                where=f"input '{item.name}' of {graph.source}",
                hint="give the model inputs and outputs of int8, uint8 or float32",
            )
    ordered = replace(graph, nodes=_ended_at_once(graph.nodes))
    return Reader(ordered, HANDLERS, "in TFLite's arithmetic", "tflite").read()


def _ended_at_once(nodes: Sequence[OnnxNode]) -> tuple[OnnxNode, ...]:
    """Return the nodes, with bounds and quantizations behind the operators whose results they end.

    Layers are written in the order in which they are quantized, which TVM's importer leaves to
    their first reader.
    """
    places: dict[str, int] = {}
    keys = []
    for index, node in enumerate(nodes):
        ends = node.op in ("Clip", "QuantizeLinear", "Relu")
        place = places.get(node.inputs[0], index) if ends else index
        if node.op != "DequantizeLinear":
            places.update(dict.fromkeys(node.outputs, place))
        keys.append((place, index))
    return tuple(nodes[index] for _, index in sorted(keys))


def _dequantize(node: NodeReader) -> Value:
    value = quantization.HANDLERS["DequantizeLinear"](node)
    if isinstance(value, View) and value.dtype != "int8":
        if not any(node.input(0) == item.name for item in node.reader.graph.inputs):
            raise node.unsupported("activations of type uint8", "use int8 between all operators")
    return value


def _quantize(node: NodeReader) -> Value:
    dtype, value = node.array(2, "zero point").dtype, node.value(0)
    if isinstance(value, Real) and dtype == np.int8:
        step, _ = quantization.step_of(node, 1)
        inward = Quantize(step.scale, step.zero_point)
        return Quantized(node.write(inward, value.activation, step=step), "int8")
    if dtype not in (np.int8, np.uint8):
        raise node.unsupported(f"activations of type {dtype}", "use int8")
    return quantization.HANDLERS["QuantizeLinear"](node)


def _add(node: NodeReader) -> Value:
    biased = pointwise.with_bias(node.value(0), node.value(1))
    if biased is not None:
        return biased
    a, b = node.value(0), node.value(1)
    if not isinstance(a, View) or not isinstance(b, View) or a.shape != b.shape:
        return _combined(node, "add")

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        inputs = (a.activation, b.activation)
        return node.write(summed(a.step, b.step, step, clip), *inputs, step=step)

    return Pending(a.shape, finish)


def _operand(node: NodeReader, index: int) -> tuple[Activation | Array, Quantization]:
    """Return a tensor of int8, or a constant, and its quantization."""
    value = node.value(index)
    if not isinstance(value, Constant):
        view = node.view(index, ("first operand", "second operand")[index])
        return view.activation, view.step
    scale, zero = value.scale, value.zero_point
    if scale is None or zero is None or value.data.dtype != np.int8 or scale.size != 1:
        raise node.unsupported("a constant that is not int8 with one scale", "quantize it")
    return value.data, Quantization(float(scale.reshape(())), int(zero.reshape(())))


def _operands(
    node: NodeReader,
) -> tuple[list[Activation], list[Array | None], list[Quantization], tuple[int, ...]]:
    """Return the tensors among two operands, the constants, all quantizations, and the shape."""
    found = [_operand(node, index) for index in (0, 1)]
    operands = [operand for operand, _ in found]
    tensors = [item for item in operands if isinstance(item, Activation)]
    if not tensors:
        raise node.unsupported("both operands are constant", "fold constants when exporting")
    constants = [None if isinstance(item, Activation) else item for item in operands]
    shape = np.broadcast_shapes(*(item.shape for item in operands))
    return tensors, constants, [step for _, step in found], shape


def _combined(node: NodeReader, function: Function) -> Value:
    tensors, constants, steps, shape = _operands(node)

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        made = binary_of(function, (*steps, step), clip, *constants)
        return node.write(made, *tensors, step=step)

    return Pending(shape, finish)


def _extreme(node: NodeReader, which: Which) -> Value:
    tensors, constants, steps, shape = _operands(node)

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        if clip != INT8 or any(given != step for given in steps):
            raise node.unsupported(f"a {which} of tensors that differ in scale or zero point")
        constant = next((item for item in constants if item is not None), None)
        return node.write(Extreme(which, constant), *tensors, step=step)

    return Pending(shape, finish)


def _summed(node: NodeReader, stem: Literal["mean", "sum"] = "mean") -> Value:
    rank = len(node.view(0, "input").shape)
    axes = sorted({axis % rank for axis in forms.axes_of(node, 1) or range(rank)})
    return _mean(node, stem, axes, bool(node.integer("keepdims", 1)))


def _mean(node: NodeReader, stem: Literal["mean", "sum"], axes: Sequence[int], keep: bool) -> Value:
    view = node.view(0, "input")
    count = math.prod(view.shape[axis] for axis in axes)
    sizes = [1 if axis in axes else size for axis, size in enumerate(view.shape)]
    shape = tuple(size for axis, size in enumerate(sizes) if keep or axis not in axes)
    if not shape:
        raise node.unsupported("a reduction over all axes to a scalar", "keep one axis")

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        if clip != INT8:
            raise node.unsupported(f"a {stem} clipped to {clip}", "quantize it before the bound")
        made = mean_of(stem, axes, keep, count, (view.step, step))
        return node.write(made, view.activation, stem=stem, step=step)

    return Pending(shape, finish)


def _global_average(node: NodeReader) -> Value:
    return _mean(node, "mean", range(2, len(node.view(0, "input").shape)), True)


def _reduced(node: NodeReader, which: Which) -> Value:
    view, rank = node.view(0, "input"), len(node.view(0, "input").shape)
    axes = tuple(sorted({axis % rank for axis in forms.axes_of(node, 1) or range(rank)}))
    made = ReduceExtreme(which, axes, bool(node.integer("keepdims", 1)))
    return View(node.write(made, view.activation, step=view.step), view.step, view.dtype)


def _concat(node: NodeReader) -> Value:
    values = [node.value(index) for index in range(len(node.inputs))]
    parts = [value for value in values if isinstance(value, View | Constant)]
    if len(parts) != len(values):
        raise node.unsupported("a part that is not int8", "quantize all parts")
    return shapes.concat(node, parts, node.integer("axis"))


def _tabulated(stem: str, function: Callable[[NodeReader], _Table]) -> Handler:
    """Return a handler for a function of one tensor, which is tabulated once it is quantized."""

    def handler(node: NodeReader) -> Value:
        view, table = node.view(0, "input"), function(node)

        def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
            if clip != INT8:
                raise node.unsupported(f"a {stem} clipped to {clip}")
            lookup = TableLookup(table(view.step, step), step.zero_point)
            return node.write(lookup, view.activation, stem=stem, step=step)

        return Pending(view.shape, finish)

    return handler


def _leaky_relu(node: NodeReader) -> _Table:
    alpha = node.number("alpha", 0.01)
    return lambda step, made: leaky_relu_table(alpha, step, made)


def _weights(node: NodeReader) -> Constant:
    weights = quantized.weights_of(node, 1)
    if weights.zero_point is not None and weights.zero_point.any():
        raise node.unsupported(
            f"weights with zero point {weights.zero_point.reshape(-1)[0]}",
            "quantize them symmetrically",
        )
    return weights


def _conv(node: NodeReader) -> Value:
    return filtered(node, node.view(0, "input"), _weights(node), quantized.bias_of(node, 2))


def _transposed(node: NodeReader) -> Value:
    # Only of integers: what is missing is said here.
    node.view(0, "input")
    _weights(node)
    quantized.bias_of(node, 2)
    return conv_transpose(node)


def _matmul(node: NodeReader) -> Value:
    view, weights = node.view(0, "first operand"), _weights(node)
    channels = 0 if node.integer("transB", 0) else 1
    return gemm.weighted(node, view, weights, channels, quantized.bias_of(node, 2))


def _average(node: NodeReader) -> Value:
    value = node.value(0)
    if not isinstance(value, View | Quantized):
        raise node.unsupported("it averages a tensor that is not int8")
    source, windows = value.activation, windows_of(node, sizes_of(node, value.shape))
    counted = node.integer("count_include_pad", 0) and any(windows.padding)
    if counted or windows.dilation != (1, 1):
        raise node.unsupported("an average with dilation, or that counts its padding")
    windows.check_padding(node)
    shape = windows.results(source.shape)

    def finish(step: Quantization | None, clip: Clip, _: Constant | None) -> Activation:
        if isinstance(value, View) and step != value.step:
            raise node.unsupported(
                f"an average from {value.step} to {step}",
                "give input and output one scale and zero point",
            )
        window = windows.kernel, windows.strides, windows.padding
        pool = AveragePool(*window, clip, windows.layout)
        return node.write(pool, source, step=step)

    if isinstance(value, Quantized):  # which TFLite's importer averages without its scale
        return Quantized(finish(node.reader.steps.get(source), INT8, None), value.dtype)
    return Pending(shape, finish)


def _rows(
    node: NodeReader, name: str, wanted: Quantization, of_scale: Callable[[float], Op]
) -> Value:
    """Return a function of rows along the last axis, with a prescribed output quantization."""
    view = node.view(0, "input")
    axis, rank = node.integer("axis", -1), len(view.shape)
    if axis % rank != rank - 1:
        raise node.unsupported(f"a {name} over axis {axis} of {rank}", "use the last axis")

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        if step != wanted or clip != INT8:
            raise node.unsupported(
                f"a {name} quantized to {step} and clipped to {clip}",
                f"int8 {name} has scale 1/{round(1 / wanted.scale)} and zero point "
                f"{wanted.zero_point}",
            )
        return node.write(of_scale(view.step.scale), view.activation, step=step)

    return Pending(view.shape, finish)


def _softmax(node: NodeReader) -> Value:
    return _rows(node, "softmax", Quantization(1 / 256, -128), TfliteSoftmax.of_scale)


def _log_softmax(node: NodeReader) -> Value:
    return _rows(node, "log softmax", Quantization(1 / 16, 127), TfliteLogSoftmax.of_scale)


HANDLERS: Mapping[str, Handler] = {
    **unary.HANDLERS,
    **{name: shapes.HANDLERS[name] for name in ("Identity", "Reshape", "Transpose")},
    "Abs": _tabulated("abs", lambda _: absolute_table),
    "Add": _add,
    "AveragePool": _average,
    "Concat": _concat,
    "Conv": _conv,
    "ConvTranspose": _transposed,
    "DequantizeLinear": _dequantize,
    "Gemm": _matmul,
    "GlobalAveragePool": _global_average,
    "HardSwish": _tabulated(
        "hard_swish", lambda node: partial(hard_swish_table, unsupported=node.unsupported)
    ),
    "LeakyRelu": _tabulated("leaky_relu", _leaky_relu),
    "LogSoftmax": _log_softmax,
    "MatMul": _matmul,
    "Max": partial(_extreme, which="maximum"),
    "MaxPool": POOLS["MaxPool"],
    "Min": partial(_extreme, which="minimum"),
    "Mul": partial(_combined, function="multiply"),
    "Pad": shapes.HANDLERS["Pad"],
    "QuantizeLinear": _quantize,
    "ReduceMax": partial(_reduced, which="maximum"),
    "ReduceMean": _summed,
    "ReduceMin": partial(_reduced, which="minimum"),
    "ReduceSum": partial(_summed, stem="sum"),
    "Sigmoid": _tabulated(
        "logistic", lambda node: partial(sigmoid_table, "logistic", unsupported=node.unsupported)
    ),
    "Softmax": _softmax,
    "Sub": partial(_combined, function="subtract"),
    "Tanh": _tabulated(
        "tanh", lambda node: partial(sigmoid_table, "tanh", unsupported=node.unsupported)
    ),
}
"""Handlers by operator."""
