"""Convolutions, including depthwise ones: conv2d, bias, requantization, clip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax
from tvm.relax import op as R

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import (
    Array,
    Convolution,
    Requant,
    Tensor,
)
from patterns.names import emit
from patterns.op import INT8, Operands, Range, Scale, TensorType, operator
from patterns.ops.requantize import (
    Scaling,
    int_constant,
    read_clip,
    read_requantize,
)
from patterns.ops.scaling import window_counts, windows
from patterns.ops.weighted import RequantizedOp, SummedOp
from patterns.primitive import dtype_of
from patterns.rows import RowWindow, has_rows

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Layout

KERNEL_AXES = {"HWIO": (2, 3, 1, 0), "HWOI": (2, 3, 0, 1), "OIHW": (0, 1, 2, 3)}
"""Axes of the normalised weight [K, C / groups, fy, fx] in the order of each kernel layout."""


@dataclass(frozen=True)
class Window:
    """How a filter moves over feature maps.

    Attributes:
        strides, dilation: strides and dilation (y, x).
        padding: zeros at (top, left, bottom, right); padding with other values is a separate
            operator.
        groups: 1, or for a depthwise convolution the number of channels.
        layout: layout of the maps, ``"NHWC"`` or ``"NCHW"``.
    """

    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    layout: str = "NHWC"

    @property
    def channel_axis(self) -> int:
        """The axis of the channels."""
        return 3 if self.layout == "NHWC" else 1

    def result(self, shape: tuple[int, ...], weight: Array) -> tuple[int, ...]:
        """Return the shape of the filtered maps.

        Args:
            shape: of the maps, in their layout.
            weight: ``[K, C / groups, fy, fx]``.

        Raises:
            IntegerFormError: the filter reads another number of channels.
        """
        nhwc = self.layout == "NHWC"
        batch, y, x, channels = shape if nhwc else (shape[0], *shape[2:], shape[1])
        k, each, *filters = weight.shape
        if each * self.groups != channels:
            raise IntegerFormError(
                f"filters of {each * self.groups} channels, the maps have {channels}"
            )
        oy, ox = window_counts((y, x), filters, self.strides, self.padding, self.dilation)
        return (batch, oy, ox, k) if nhwc else (batch, k, oy, ox)

    def views(self, x: Array, weight: Array, pad: int) -> Array:
        """Return a view of the operands of each position, ``[N, oy, ox, C, fy, fx]``.

        Args:
            x: ``[N, y, x, C]``.
            weight: ``[K, C / groups, fy, fx]``.
            pad: value of the padding.
        """
        return windows(x, weight.shape[2:], self.strides, self.padding, pad, self.dilation)

    def operands(self, x: Array, weight: Array, pad: int) -> Array:
        """Return the same as rows: ``[1, N, oy, ox, C * fy * fx]``."""
        view = np.asarray(self.views(x, weight, pad), order="C")
        return view.reshape(1, *view.shape[:3], -1)

    def call(self, x: Expr, weight: Array) -> Expr:
        """Return the int32 product of ``x`` with a ``weight`` ``[K, C / groups, fy, fx]``."""
        kernel_layout = "OIHW"
        if self.layout == "NHWC":
            kernel_layout = "HWOI" if is_depthwise(weight, self.groups) else "HWIO"
        kernel = np.asarray(weight.transpose(KERNEL_AXES[kernel_layout]), order="C")
        return R.nn.conv2d(
            x,
            relax.const(kernel, str(kernel.dtype)),
            strides=self.strides,
            padding=self.padding,
            dilation=self.dilation,
            groups=self.groups,
            data_layout=self.layout,
            kernel_layout=kernel_layout,
            out_dtype="int32",
        )

    @classmethod
    def read(cls, conv: Expr) -> Window:
        """Return the window of a conv2d call.

        Raises:
            IntegerFormError: the layouts are not allowed in the integer form.
        """
        attrs = conv.attrs
        layout, kernel_layout = str(attrs.data_layout), str(attrs.kernel_layout)
        if layout not in ("NHWC", "NCHW") or kernel_layout not in KERNEL_AXES:
            raise IntegerFormError(
                f"layouts {layout} and {kernel_layout}",
                hint=f"NHWC or NCHW with one of {', '.join(KERNEL_AXES)}",
            )
        sy, sx = _integers(attrs.strides)
        top, left, bottom, right = _integers(attrs.padding)
        dy, dx = _integers(attrs.dilation)
        return cls((sy, sx), (top, left, bottom, right), (dy, dx), int(attrs.groups), layout)

    def image(self, name: str, kind: TensorType) -> Tensor:
        """Return feature maps without their batch axis: (C, y, x).

        Raises:
            IntegerFormError: the batch is not 1.
        """
        batch, *rest = kind.shape
        if batch != 1:
            raise IntegerFormError(f"batch size {batch}", hint="only 1 is supported")
        if self.layout == "NHWC":
            y, x, channels = rest
            return Tensor(name, (channels, y, x), kind.dtype, layout="NHWC")
        return Tensor(name, tuple(rest), kind.dtype, layout="NCHW")


def is_depthwise(weight: Array, groups: int) -> bool:
    """Whether every input channel is filtered separately into one output channel."""
    return groups > 1 and weight.shape[:2] == (groups, 1)


def read_weight(conv: Expr, constant: Expr) -> Array:
    """Return the weight of a conv2d call as ``[K, C / groups, fy, fx]``."""
    axes = KERNEL_AXES[str(conv.attrs.kernel_layout)]
    return np.asarray(constant.value.numpy().transpose(np.argsort(axes)), order="C")


def _integers(values: Any) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


@dataclass(frozen=True, eq=False)
class _Convolution(SummedOp):
    """Base of convolutions with and without requantization.

    Attributes:
        weight: int8 or int16 ``[K, C / groups, fy, fx]``; only hosts read int16.
        window: strides, padding, dilation, groups, layout.
    """

    operation = "relax.nn.conv2d"

    window: Window

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(self.window.result(inputs[0].shape, self.weight), "int32")

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        window = self.window
        if window.layout != "NHWC" or not has_rows(inputs[0].shape):
            return None
        size = (self.weight.shape[2] - 1) * window.dilation[0] + 1
        return (RowWindow(size, window.strides[0], *window.padding),)

    @property
    def unpadded(self) -> _Convolution:
        return replace(self, window=replace(self.window, padding=(0, 0, 0, 0)))

    def operands(self, x: Array, pad: int = 0) -> Array:
        """See `WeightedOp.operands`."""
        return self.window.operands(x, self.weight, pad)

    def sums(self, bb: BlockBuilder, x: Expr, name: str, *, last: bool) -> Var:
        """See `SummedOp.sums`."""
        acc = emit(bb, self.window.call(x, self.weight), name)
        shape = (len(self.bias),) if self.window.layout == "NHWC" else (len(self.bias), 1, 1)
        summand = int_constant(tuple(self.bias.tolist()), shape)
        return emit(bb, R.add(acc, summand), name, last=last)


@operator
@dataclass(frozen=True, eq=False)
class Conv2d(RequantizedOp, _Convolution):
    """A convolution of int8 or uint8 maps, requantized and clipped."""

    kind = "conv2d"
    scale = Scale.FREE

    @property
    def stem(self) -> str:
        groups = self.window.groups
        return "depthwise" if groups > 1 and groups == len(self.weight) else "conv2d"

    @property
    def prescribed(self) -> Layout:
        return "NHWC" if self.window.layout == "NHWC" else "NCHW"

    @property
    def channel_axis(self) -> int:
        return self.window.channel_axis

    @property
    def is_padded(self) -> bool:
        return any(self.window.padding)

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> Conv2d:
        weight, bias, window = _constants(slots)
        scaling = read_requantize(slots), read_clip(slots), dtype_of(slots["cast"])
        return conv2d_of(weight, bias, window, *scaling)

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Convolution:
        return image_layer(self.window, name, inputs, output, self.weight, self.bias, self.requant,
                           self.clip)  # fmt: skip


def _constants(slots: Mapping[str, Expr]) -> tuple[Array, Array, Window]:
    """Return weight, bias and window."""
    conv = slots["product"]
    bias = slots["bias"].value.numpy().reshape(-1)
    return read_weight(conv, slots["weight"]), bias, Window.read(conv)


@operator
@dataclass(frozen=True, eq=False)
class Depthwise(Conv2d):
    """A convolution that filters each channel separately into one output channel."""

    kind = "depthwise"
    form = Conv2d

    def operands(self, x: Array, pad: int = 0) -> Array:
        """See `WeightedOp.operands`: those of each channel."""
        view = np.moveaxis(self.window.views(x, self.weight, pad), 3, 0)
        return view.reshape(*view.shape[:4], -1)

    def accumulate(self, x: Array, pad: int = 0) -> Array:
        """See `WeightedOp.accumulate`: tap by tap, without a copy of the operands."""
        dtype = self._float(x)
        view = self.window.views(x.astype(dtype), self.weight, pad)
        taps = self.weight[:, 0].astype(dtype)
        out = np.zeros(view.shape[:4], dtype)
        for i, j in np.ndindex(*taps.shape[1:]):
            out += view[..., i, j] * taps[:, i, j]
        return out


def conv2d_of(
    weight: Array,
    bias: Array,
    window: Window,
    requant: Scaling,
    clip: Range = INT8,
    dtype: str = "int8",
) -> Conv2d:
    """Return the convolution with these fields: a `Depthwise` if it is one."""
    cls = Depthwise if is_depthwise(weight, window.groups) else Conv2d
    return cls(weight, bias, window, requant, clip, dtype)


def image_layer(
    window: Window,
    name: str,
    inputs: Operands,
    output: TensorType,
    weight: Array,
    bias: Array | None,
    requant: Requant,
    clip: Range,
) -> Convolution:
    """Return the layer of a convolution, with normalised axes.

    Raises:
        IntegerFormError: the batch is not 1.
    """
    return Convolution(
        name=name,
        inputs=tuple(window.image(*operand) for operand in inputs),
        output=window.image(name, output),
        stride=window.strides,
        pad=window.padding,
        weight=weight,
        bias=bias,
        requant=requant,
        clip=clip,
        dilation=window.dilation,
        groups=window.groups,
    )


@operator
@dataclass(frozen=True, eq=False)
class Conv2dSums(_Convolution):
    """A convolution with int32 sums that are not requantized."""

    kind = "conv2d_sums"

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> Conv2dSums:
        return cls(*_constants(slots))
