"""From a sketch to a model: the same steps, written in the integer form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from tvm import relax

from byoc_dory.layers.layer import Shift
from htvm.model import Model, TensorInfo
from htvm.zoo.sketch import Sketch, Step
from patterns.names import NameCounter
from patterns.ops.add import Add
from patterns.ops.analog.convolution import AnalogConv2d
from patterns.ops.analog.dense import AnalogDense
from patterns.ops.convert import Convert
from patterns.ops.convolution import Window, conv2d_of
from patterns.ops.dense import Dense
from patterns.ops.moves.reshape import Reshape
from patterns.ops.tflite.average_pool import AveragePool
from patterns.ops.tflite.softmax import TfliteSoftmax
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers.layer import AnalogRequant

__all__ = ["Layout", "model"]

Layout: TypeAlias = Literal["NHWC", "NCHW"]

_INPUT = "input"
_OUTPUT = "output"
# Real value of one step of the input, and of the logits before the softmax.  Both are free; with
# this one the softmax of a typical answer is neither flat nor saturated.
_INPUT_SCALE = 1.0 / 128
_LOGITS_SCALE = 1.0 / 32


def model(sketch: Sketch, layout: Layout = "NHWC") -> Model:
    """Write a sketch in the integer form.

    Args:
        sketch: what to write.
        layout: order of the axes of its maps, ``"NHWC"`` (as TFLite) or ``"NCHW"`` (as ONNX).
    """
    bb = relax.BlockBuilder()
    shape = (1, *_ordered(sketch.shape, layout))
    x = relax.Var(_INPUT, relax.TensorType(shape, "int8"))
    names = NameCounter((_INPUT,))
    with bb.function("main", [x]):
        with bb.dataflow():
            tensors: list[Expr] = [x]
            for step in sketch.steps:
                inputs = [tensors[handle.index] for handle in step.inputs]
                tensors.append(_write(bb, step, inputs, names, layout))
            result = bb.emit_output(tensors[-1])
        bb.emit_func_output(result)
    last = sketch.steps[-1]
    scale, zero_point = (1.0 / 256, -128) if last.op == "softmax" else (_LOGITS_SCALE, 0)
    output_shape = (1, *_ordered(last.shape, layout))
    return Model(
        name=sketch.name,
        module=bb.finalize(),
        inputs=(TensorInfo(_INPUT, shape, "int8", _INPUT_SCALE, 0),),
        outputs=(TensorInfo(_OUTPUT, output_shape, "int8", scale, zero_point),),
        source=f"htvm.zoo.{sketch.name}",
        scheme=_scheme(sketch),
    )


def _scheme(sketch: Sketch) -> str:
    """What `Model.scheme` says of the layers."""
    layers = [step for step in sketch.steps if step.weight is not None or step.op == "add"]
    ternary = [step for step in layers if step.analog is not None]
    return "shift" if not ternary else "ternary" if len(ternary) == len(layers) else "mixed"


def _ordered(shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """``(C, y, x)`` in the order of the layout; vectors as they are."""
    if len(shape) == 3 and layout == "NHWC":
        return (shape[1], shape[2], shape[0])
    return shape


def _write(
    bb: BlockBuilder, step: Step, inputs: list[Expr], names: NameCounter, layout: Layout
) -> Var:
    x = inputs[0]
    requant, clip = Shift(step.shift), step.clip
    if step.op == "add":
        return Add(requant, clip).write(bb, [x, inputs[1]], names.fresh("add"))
    if step.op == "convert":
        return Convert(requant, clip).write(bb, [x], names.fresh("convert"))
    if step.op == "softmax":
        return TfliteSoftmax.of_scale(_LOGITS_SCALE).write(bb, [x], names.fresh("softmax"))
    if step.op == "average_pool":
        sizes = shape_of(x)
        kernel = (sizes[1], sizes[2]) if layout == "NHWC" else (sizes[2], sizes[3])
        name = names.fresh("average_pool")
        return AveragePool(kernel=kernel, strides=kernel, layout=layout).write(bb, [x], name)
    assert step.weight is not None
    if step.op == "dense" and len(shape_of(x)) == 4:
        x = Reshape((1, step.weight.shape[1])).write(bb, [x], names.fresh("reshape"))
    if step.analog is not None:
        return _write_analog(bb, step, step.analog, x, names, layout)
    assert step.bias is not None
    if step.op == "dense":
        return Dense(step.weight, step.bias, requant, clip).write(bb, [x], names.fresh("dense"))
    return conv2d_of(
        step.weight,
        step.bias,
        Window(
            strides=(step.stride, step.stride),
            padding=step.pad,
            groups=step.weight.shape[0] if step.op == "depthwise" else 1,
            layout=layout,
        ),
        requant,
        clip,
    ).write(bb, [x], names.fresh(step.op))


def _write_analog(
    bb: BlockBuilder,
    step: Step,
    requant: AnalogRequant,
    x: Expr,
    names: NameCounter,
    layout: Layout,
) -> Var:
    assert step.weight is not None
    name = names.fresh(step.op)
    if step.op == "dense":
        return AnalogDense(step.weight, requant, step.clip).write(bb, [x], name)
    return AnalogConv2d(
        step.weight,
        requant,
        step.clip,
        window=Window(strides=(step.stride, step.stride), padding=step.pad, layout=layout),
    ).write(bb, [x], name)
