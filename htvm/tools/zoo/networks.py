"""The four MLPerf Tiny networks as HTVM ran them on DIANA (HTVM, DAC 2023, and its scripts).

`mobilenet_v1_224` is MobileNetV1 as it was published, for systems without DIANA's limits.

Differences from the MLPerf Tiny reference files: padding is the same on opposite sides, ResNet-8
has 12 classes and MobileNet 4 (the chip's tools required sizes divisible by four), and `ds_cnn`
with the 7x5 filter gets a transposed spectrogram, which fills the array's columns better.

Each is drawn in three schemes (see `htvm.tools.zoo.drawing`).  `place` decides how the scheme
"mixed" draws a layer: the first and the last convolution (in a network without any: dense layer)
keep 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from htvm.model import Model, TensorInfo
from htvm.tools.zoo.drawing import LOGITS_SCALE, Place, Sketch
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


def _resnet8(net: Sketch) -> None:
    """Draw ResNet-8 for CIFAR-10-sized images, 12 classes."""
    x = net.conv2d(net.input, 16, (3, 3), place="first")
    for k, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv2d(x, k, (3, 3), stride)
        y = net.conv2d(y, k, (3, 3), relu=False)
        if stride > 1:
            place: Place = "last" if k == 64 else "inner"
            x = net.conv2d(x, k, (1, 1), stride, relu=False, place=place)
        x = net.add(x, y)
    net.softmax(net.dense(net.average_pool(x), 12))


def _ds_cnn(net: Sketch) -> None:
    """Draw DS-CNN keyword spotting as in MLPerf Tiny: first filter 10x4, 12 classes."""
    net.conv2d(net.input, 64, (10, 4), 2, pad=(4, 1, 5, 1), place="first")
    _ds_cnn_tail(net)


def _ds_cnn_7x5(net: Sketch) -> None:
    """Draw DS-CNN with HTVM's 7x5 filter, transposed as HTVM ran it, 5 (y) by 7 (x)."""
    net.conv2d(net.input, 64, (5, 7), 2, place="first")
    _ds_cnn_tail(net)


def _ds_cnn_tail(net: Sketch) -> None:
    x = net.last
    for block in range(4):
        place: Place = "last" if block == 3 else "inner"
        x = net.conv2d(net.depthwise(x), 64, (1, 1), place=place)
    net.softmax(net.dense(net.average_pool(x), 12))


def _mobilenet_v1(net: Sketch, k: int, classes: int) -> None:
    """Draw MobileNetV1, whose first layer has ``k`` maps."""
    x = net.conv2d(net.input, k, (3, 3), 2, place="first")
    blocks = [(2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2)]
    for times, stride in blocks:
        x = net.conv2d(net.depthwise(x, stride), times * k, (1, 1))
    x = net.conv2d(net.depthwise(x), 32 * k, (1, 1), place="last")
    net.softmax(net.dense(net.average_pool(x), classes))


def _toyadmos(net: Sketch) -> None:
    """Draw the ToyADMOS autoencoder: 640 - 4 x 128 - 8 - 4 x 128 - 640."""
    x = net.dense(net.input, 128, relu=True, place="first")
    for k in (128, 128, 128, 8, 128, 128, 128, 128):
        x = net.dense(x, k, relu=True, place="inner")
    net.dense(x, 640)


NETWORKS: Mapping[str, tuple[tuple[int, ...], Callable[[Sketch], None]]] = {
    "resnet8": ((3, 32, 32), _resnet8),
    "ds_cnn": ((1, 49, 10), _ds_cnn),
    "ds_cnn_7x5": ((1, 10, 49), _ds_cnn_7x5),
    # Width 0.25, visual wake words; and width 1.0, for ImageNet, 569 million MAC.
    "mobilenet_v1": ((3, 96, 96), partial(_mobilenet_v1, k=8, classes=4)),
    "mobilenet_v1_224": ((3, 224, 224), partial(_mobilenet_v1, k=32, classes=1000)),
    "toyadmos": ((640,), _toyadmos),
}
"""Shape of the input, ``(C, y, x)`` or ``(C,)``, and what draws the operators, by name."""


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
        inputs = [tensors[handle] for handle in step.inputs]
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
