"""Writing a sketch as a model in the integer form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from htvm.model import Model, TensorInfo
from htvm.tools.zoo.drawing import LOGITS_SCALE, Sketch
from patterns.names import NameCounter
from patterns.op import TensorType
from patterns.ops.add import Add
from patterns.ops.analog.products import AnalogConv2d, AnalogDense
from patterns.ops.convolution import Conv2d
from patterns.ops.tflite.averages import AveragePool
from patterns.ops.tflite.softmax import TfliteSoftmax
from patterns.reading.building import GraphBuilder

if TYPE_CHECKING:
    from htvm.tools.zoo.schemes import Layout
    from patterns.op import Op

_INPUT = "input"
_OUTPUT = "output"
_INPUT_SCALE = 1.0 / 128  # arbitrary scale of the input


def model(sketch: Sketch, layout: Layout = "NHWC") -> Model:
    """Write a sketch in the integer form.

    Args:
        sketch: the sketch to write.
        layout: order of the axes of its maps, ``"NHWC"`` (as TFLite) or ``"NCHW"`` (as ONNX).
    """
    shape = (1, *_ordered(sketch.shape, layout))
    builder = GraphBuilder([(_INPUT, TensorType(shape))])
    names = NameCounter((_INPUT,))
    tensors = [_INPUT]
    for step in sketch.steps:
        inputs = [tensors[handle.index] for handle in step.inputs]
        op = _laid_out(step.op, layout)
        tensors.append(builder.apply(op, inputs, names.fresh(op.stem)))
    last = sketch.steps[-1]
    softmax = isinstance(last.op, TfliteSoftmax)
    scale, zero_point = (1.0 / 256, -128) if softmax else (LOGITS_SCALE, 0)
    output_shape = (1, *_ordered(last.shape, layout))
    return Model(
        name=sketch.name,
        graph=builder.graph(tensors[-1:]),
        inputs=(TensorInfo(_INPUT, shape, "int8", _INPUT_SCALE, 0),),
        outputs=(TensorInfo(_OUTPUT, output_shape, "int8", scale, zero_point),),
        source=f"htvm.zoo.{sketch.name}",
        scheme=_scheme(sketch),
    )


def _scheme(sketch: Sketch) -> str:
    """Return `Model.scheme` for the sketch's layers."""
    layers = [
        isinstance(step.op, AnalogConv2d | AnalogDense)
        for step in sketch.steps
        if step.weight is not None or isinstance(step.op, Add)
    ]
    return "shift" if not any(layers) else "ternary" if all(layers) else "mixed"


def _laid_out(op: Op, layout: Layout) -> Op:
    if isinstance(op, AveragePool):
        return replace(op, layout=layout)
    if isinstance(op, Conv2d | AnalogConv2d):
        return replace(op, window=replace(op.window, layout=layout))
    return op


def _ordered(shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """Return ``(C, y, x)`` in the order of the layout; vectors unchanged."""
    if len(shape) == 3 and layout == "NHWC":
        return (shape[1], shape[2], shape[0])
    return shape
