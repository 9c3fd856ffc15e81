"""What a `Node` carries beyond its tensors: its `Layer`, or the attributes that stand for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Layer
from patterns.ops import table_map
from patterns.ops.analog import read_analog_conv2d, read_analog_dense
from patterns.ops.conv import read_conv2d
from patterns.ops.elementwise import read_add, read_onnx_add, read_tflite_add
from patterns.ops.gemm import read_dense, read_linear
from patterns.ops.requantize import read_clip, read_requantize
from patterns.ops.rescale import read_rescale
from patterns.ops.tflite import arithmetic
from patterns.primitive import dtype_of, kind_of, parameters_of, shape_of
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
        if kind_of(module, value) == "onnx_add":
            return read_onnx_add(slots, attrs), attrs
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
    elif kind == "reshape":
        attrs = {"shape": shape_of(value)}
    elif kind == "pad":
        attrs = _pad(value)
    elif kind == "max_pool":
        attrs = _max_pool(value)
    elif kind == "table":
        attrs |= table_map.read_table_map(value)
    elif kind in ("tflite_binary", "onnx_binary"):
        attrs |= arithmetic.read_binary(value)
    return row_layer(kind, value, attrs, inputs, output), attrs


def _pad(value: Call) -> dict[str, Attribute]:
    widths = [int(width) for width in value.attrs.pad_width]
    if str(value.attrs.pad_mode) != "constant":
        raise IntegerFormError(f"a padding in mode {value.attrs.pad_mode}")
    layout = "NHWC" if not any(widths[6:]) else "NCHW"
    spatial = widths[2:6] if layout == "NHWC" else widths[4:8]
    if len(widths) != 8 or sum(spatial) != sum(widths):
        raise IntegerFormError(f"a padding of {widths}", hint="pad height and width only")
    top, bottom, left, right = spatial
    fill = int(value.attrs.pad_value)
    return {"padding": (top, left, bottom, right), "value": fill, "layout": layout}


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
