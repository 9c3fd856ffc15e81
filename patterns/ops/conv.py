"""Convolutions, depthwise ones included: conv2d, bias, requantization, clip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax
from tvm.relax import op as R
from tvm.relax.dpl import is_const, is_op, wildcard

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Convolution, Requant, Tensor
from patterns.match import Match
from patterns.names import emit, tensor_name
from patterns.ops.requantize import (
    int_constant,
    read_clip,
    read_requantize,
    requantize,
    requantize_pattern,
)
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Array

__all__ = [
    "KERNEL_AXES",
    "accumulator_bound",
    "conv2d",
    "conv2d_pattern",
    "conv2d_sums",
    "conv2d_sums_pattern",
    "image_layer",
    "image_tensor",
    "is_depthwise",
    "read_conv2d",
]

KERNEL_AXES = {"HWIO": (2, 3, 1, 0), "HWOI": (2, 3, 0, 1), "OIHW": (0, 1, 2, 3)}
"""Axes of the normalised weight [K, C / groups, fy, fx] in the order of each kernel layout."""


def accumulator_bound(weight: Array, bias: Array, dtype: str = "int8") -> int:
    """Largest magnitude of any accumulator: |bias| + 128 * sum |w| (255 if unsigned), at worst."""
    largest = {"int8": 128, "uint8": 255}[dtype]
    rows = np.abs(weight.astype("int64")).reshape(weight.shape[0], -1).sum(axis=1)
    return int((rows * largest + np.abs(bias.astype("int64"))).max())


def conv2d(
    bb: BlockBuilder,
    x: Expr,
    weight: Array,
    bias: Array,
    requant: Requant,
    clip: tuple[int, int] = (-128, 127),
    *,
    name: str,
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    layout: str = "NHWC",
    dtype: str = "int8",
) -> Var:
    """Write a convolution of int8 or uint8 ``x`` in the integer form.

    Args:
        bb: where to write, inside a dataflow block.
        x: int8 or uint8, ``layout``.
        weight: int8 ``[K, C / groups, fy, fx]``.
        bias: int32 ``[K]``, with the input's zero point already folded in.
        requant: to int8, output zero point included.
        clip: inclusive range of the output.
        name: of the operator.
        strides: (y, x).
        padding: zeros (top, left, bottom, right); pad other values explicitly, before.
        dilation: (y, x).
        groups: 1, or for a depthwise convolution the number of channels.
        layout: ``"NHWC"`` or ``"NCHW"``.
        dtype: of the output.
    """
    biased = conv2d_sums(
        bb,
        x,
        weight,
        bias,
        name=name,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        last=False,
    )
    return requantize(
        bb,
        biased,
        requant,
        clip,
        name,
        channel_axis=3 if layout == "NHWC" else 1,
        bound=accumulator_bound(weight, bias, dtype_of(x)),
        dtype=dtype,
    )


def conv2d_sums(
    bb: BlockBuilder,
    x: Expr,
    weight: Array,
    bias: Array,
    *,
    name: str,
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
    layout: str = "NHWC",
    last: bool = True,
) -> Var:
    """Write a convolution whose sums are not requantized, int32; arguments as above.

    ``last``: whether it is an operator of its own.
    """
    channels = weight.shape[1] * groups
    depthwise = groups > 1 and groups == channels == weight.shape[0]
    if layout == "NHWC":
        kernel_layout = "HWOI" if depthwise else "HWIO"
        bias_shape: tuple[int, ...] = (weight.shape[0],)
    else:
        kernel_layout = "OIHW"
        bias_shape = (weight.shape[0], 1, 1)
    kernel = np.ascontiguousarray(weight.transpose(KERNEL_AXES[kernel_layout]))
    call = R.nn.conv2d(
        x,
        relax.const(kernel, "int8"),
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        data_layout=layout,
        kernel_layout=kernel_layout,
        out_dtype="int32",
    )
    acc = emit(bb, call, name)
    summand = int_constant(tuple(bias.tolist()), bias_shape)
    return emit(bb, R.add(acc, summand), name, last=last)


def conv2d_sums_pattern() -> Match:
    """A convolution without requantization; slots ``x``, ``weight``, ``bias``, ``conv``."""
    x, weight, bias = wildcard(), is_const(), is_const()
    conv = is_op("relax.nn.conv2d")(x, weight)
    root = is_op("relax.add")(conv, bias)
    return Match("conv2d_sums", root, {"x": x, "weight": weight, "bias": bias, "conv": conv})


def conv2d_pattern() -> Match:
    """A convolution with any requantization; slots ``x``, ``weight``, ``bias``, ``conv`` ..."""
    x, weight, bias = wildcard(), is_const(), is_const()
    conv = is_op("relax.nn.conv2d")(x, weight)
    root, slots = requantize_pattern(is_op("relax.add")(conv, bias))
    return Match("conv2d", root, {"x": x, "weight": weight, "bias": bias, "conv": conv, **slots})


def is_depthwise(conv: Expr) -> bool:
    """Whether every channel of a conv2d call is filtered by itself into one output channel."""
    axis = 3 if str(conv.attrs.data_layout) == "NHWC" else 1
    groups = int(conv.attrs.groups)
    return groups > 1 and groups == shape_of(conv.args[0])[axis] == shape_of(conv)[axis]


def read_conv2d(slots: Mapping[str, Expr]) -> Convolution:
    """The layer of a match of `conv2d_pattern`, axes normalised.

    Raises:
        IntegerFormError: if the layouts are none of the integer form's, or the batch is not 1.
    """
    conv = slots["conv"]
    name, attrs = tensor_name(conv), conv.attrs
    layout, kernel_layout = str(attrs.data_layout), str(attrs.kernel_layout)
    if layout not in ("NHWC", "NCHW") or kernel_layout not in KERNEL_AXES:
        raise IntegerFormError(
            f"layouts {layout} and {kernel_layout}",
            where=f"operator '{name}'",
            hint=f"NHWC or NCHW with one of {', '.join(KERNEL_AXES)}",
        )
    weight = slots["weight"].value.numpy()
    weight = np.ascontiguousarray(weight.transpose(np.argsort(KERNEL_AXES[kernel_layout])))
    x = conv.args[0]
    source = image_tensor(tensor_name(slots["x"]), x, layout, name, dtype_of(x))
    output = image_tensor(name, conv, layout, name, dtype_of(slots["cast"]))
    bias = slots["bias"].value.numpy().reshape(-1)
    return image_layer(conv, source, output, weight, bias, read_requantize(slots), read_clip(slots))


def image_layer(
    conv: Expr,
    source: Tensor,
    output: Tensor,
    weight: Array,
    bias: Array | None,
    requant: Requant,
    clip: tuple[int, int],
) -> Convolution:
    """The layer whose window, strides and groups are those of a conv2d call.

    Args:
        conv: the call.
        source, output: the tensors, (C, y, x); the layer has the output's name.
        weight: ``[K, C / groups, fy, fx]``.
        bias: int32 ``[K]``, or None.
        requant, clip: of the layer.
    """
    attrs = conv.attrs
    return Convolution(
        name=output.name,
        inputs=(source,),
        output=output,
        stride=_pair(attrs.strides),
        pad=_four(attrs.padding),
        weight=weight,
        bias=bias,
        requant=requant,
        clip=clip,
        dilation=_pair(attrs.dilation),
        groups=int(attrs.groups),
    )


def image_tensor(name: str, expr: Expr, layout: str, operator: str, dtype: str) -> Tensor:
    """The tensor of ``expr`` without its batch axis, as ``operator`` reads or writes it.

    Raises:
        IntegerFormError: if the batch is not 1.
    """
    shape = shape_of(expr)
    if shape[0] != 1:
        raise IntegerFormError(
            f"batch size {shape[0]}", where=f"operator '{operator}'", hint="only 1 is supported"
        )
    if layout == "NHWC":
        return Tensor(name, (shape[3], shape[1], shape[2]), dtype, layout="NHWC")
    return Tensor(name, shape[1:], dtype, layout="NCHW")


def _pair(values: object) -> tuple[int, int]:
    """An attribute of two integers."""
    first, second = (int(value) for value in values)  # type: ignore[attr-defined]
    return first, second


def _four(values: object) -> tuple[int, int, int, int]:
    """An attribute of four integers."""
    top, left, bottom, right = (int(value) for value in values)  # type: ignore[attr-defined]
    return top, left, bottom, right
