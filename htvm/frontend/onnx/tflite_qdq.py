"""QDQ in TFLite's arithmetic, as Relax modules of TVM's TFLite importer have it.

Values and the walk are those of `htvm.frontend.onnx.quantized`; `Reader.rounding` says whose
arithmetic layers, conversions and bounds have.  All tensors are int8, so that there are no parts in
reals: only what TFLite Micro computes in integers is read.  No file says that it means this
arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import UnsupportedError
from htvm.frontend.onnx import quantized
from htvm.frontend.onnx.affine import gemm, pointwise, quantization, shapes, unary
from htvm.frontend.onnx.affine.pools import HANDLERS as POOLS
from htvm.frontend.onnx.affine.reader import Handler, NodeReader, Reader
from htvm.frontend.onnx.affine.values import Constant, Pending, Quantized, Value, View
from htvm.frontend.onnx.windows import sizes_of, windows_of
from htvm.frontend.operators import Activation, Clip, Quantization
from htvm.frontend.scales import summed
from patterns.op import INT8
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.softmax import TfliteSoftmax

if TYPE_CHECKING:
    from htvm.frontend.onnx.dialect import Network
    from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode

_SOFTMAX_STEP = Quantization(1 / 256, -128)


def read(graph: OnnxGraph) -> Network:
    """Return the network.

    Raises:
        UnsupportedError: a node is not supported; the message names it.
        ModelError: the graph contradicts itself.
    """
    for item in graph.inputs:
        if item.dtype != "int8":
            raise UnsupportedError(
                f"its type is {item.dtype}",
                where=f"input '{item.name}' of {graph.source}",
                hint="give the model int8 inputs and outputs",
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
    if isinstance(value, Constant) and value.zero_point is not None and value.zero_point.any():
        raise node.unsupported(
            f"weights with zero point {value.zero_point.reshape(-1)[0]}",
            "quantize them symmetrically",
        )
    return value


def _quantize(node: NodeReader) -> Value:
    dtype = node.array(2, "zero point").dtype
    if dtype != np.int8:
        raise node.unsupported(f"activations of type {dtype}", "use int8")
    return quantization.HANDLERS["QuantizeLinear"](node)


def _add(node: NodeReader) -> Value:
    biased = pointwise.with_bias(node.value(0), node.value(1))
    if biased is not None:
        return biased
    a, b = node.view(0, "first operand"), node.view(1, "second operand")
    if a.shape != b.shape:
        raise node.unsupported(
            f"operands of shapes {a.shape} and {b.shape}", "broadcasting is not supported"
        )

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        inputs = (a.activation, b.activation)
        return node.write(summed(a.step, b.step, step, clip), *inputs, step=step)

    return Pending(a.shape, finish)


def _matmul(node: NodeReader) -> Value:
    view, weights = node.view(0, "first operand"), quantized.weights_of(node, 1)
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


def _softmax(node: NodeReader) -> Value:
    view = node.view(0, "input")
    axis, rank = node.integer("axis", -1), len(view.shape)
    if axis % rank != rank - 1:
        raise node.unsupported(f"a softmax over axis {axis} of {rank}", "use the last axis")

    def finish(step: Quantization, clip: Clip, _: Constant | None) -> Activation:
        if step != _SOFTMAX_STEP or clip != INT8:
            raise node.unsupported(
                f"a softmax quantized to {step} and clipped to {clip}",
                "int8 softmax has scale 1/256 and zero point -128",
            )
        softmax = TfliteSoftmax.of_scale(view.step.scale)
        return node.write(softmax, view.activation, step=step)

    return Pending(view.shape, finish)


HANDLERS: Mapping[str, Handler] = {
    **unary.HANDLERS,
    **{name: shapes.HANDLERS[name] for name in ("Identity", "Reshape", "Transpose")},
    "Add": _add,
    "AveragePool": _average,
    "Conv": quantized.QDQ_HANDLERS["Conv"],
    "DequantizeLinear": _dequantize,
    "Gemm": _matmul,
    "MatMul": _matmul,
    "MaxPool": POOLS["MaxPool"],
    "Pad": shapes.HANDLERS["Pad"],
    "QuantizeLinear": _quantize,
    "Softmax": _softmax,
}
"""Handlers by operator."""
