"""What a `Node` carries beyond its tensors: its `Layer`, or the attributes that stand for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Layer
from patterns.ops.analog import read_analog_conv2d, read_analog_dense
from patterns.ops.conv import read_conv2d
from patterns.ops.elementwise import read_add, read_tflite_add
from patterns.ops.gemm import read_dense, read_linear
from patterns.ops.requantize import read_clip, read_requantize
from patterns.ops.rescale import read_rescale
from patterns.primitive import dtype_of, parameters_of
from patterns.reading.matrix import Operand, accumulate_layer, row_layer
from patterns.reading.node import Attribute

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Call, Expr

__all__ = ["layer_and_attrs"]


def layer_and_attrs(
    module: IRModule,
    kind: str,
    value: Expr,
    slots: Mapping[str, Expr],
    inputs: Sequence[Operand],
    output: Operand,
) -> tuple[Layer | None, dict[str, Attribute]]:
    """What a node of that kind carries: its layer, if it has one, and its attributes.

    Args:
        module: the module it is in.
        kind: of the operator, as `patterns.reading.recognise.recognised` finds it.
        value: what the operator's last variable is bound to.
        slots: what its pattern matched.
        inputs: the tensors it reads.
        output: the tensor it computes.

    Raises:
        IntegerFormError: if its parameters are none of the integer form's.
    """
    attrs: dict[str, Attribute] = dict(parameters_of(module, value))
    if "adc0" in slots:
        return (read_analog_dense if kind == "dense" else read_analog_conv2d)(slots), {}
    if kind in ("conv2d", "depthwise"):
        return read_conv2d(slots), {}
    if kind == "dense":
        return read_dense(slots), {}
    if kind == "add":
        return (read_tflite_add(slots, attrs) if attrs else read_add(slots)), attrs
    if kind == "convert":
        attrs = {
            "offset": int(slots["offset"].value.numpy()),
            "requant": read_requantize(slots),
            "clip": read_clip(slots),
            "input_dtype": dtype_of(slots["x"]),
            "output_dtype": dtype_of(value),
        }
    elif kind == "linear":
        attrs = {"requant": read_requantize(slots), "clip": read_clip(slots)}
        return read_linear(slots), attrs
    elif kind == "accumulate":
        return accumulate_layer(attrs, inputs, output), attrs
    elif kind == "rescale":
        attrs |= read_rescale(value)
    elif kind == "max_pool":
        attrs = _max_pool(value)
    return row_layer(kind, value, attrs, inputs, output), attrs


def _max_pool(value: Call) -> dict[str, Attribute]:
    def integers(values: Any) -> tuple[int, ...]:
        return tuple(int(item) for item in values)

    attrs = value.attrs
    if integers(attrs.dilation) != (1, 1) or attrs.ceil_mode:
        raise IntegerFormError("a maximum pool with dilation or ceil_mode")
    return {
        "kernel": integers(attrs.pool_size),
        "strides": integers(attrs.strides),
        "padding": integers(attrs.padding),
        "layout": str(attrs.layout),
    }
