"""The maximum over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm.relax import op as R

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import Operands, Range, Scale, TensorType, Work, operator, union
from patterns.ops.layers import pool_layer
from patterns.ops.scaling import windows
from patterns.relax_op import CallOp
from patterns.rows import RowWindow, has_rows

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from byoc_dory.layers import Layout, Pool


@operator
@dataclass(frozen=True, eq=False)
class MaxPool(CallOp):
    """The maximum over windows, for any type; scale and zero point stay the same.

    Attributes:
        kernel, strides: sizes (y, x).
        padding: sizes (top, left, bottom, right); positions outside do not count.
        layout: layout of the maps, ``"NHWC"`` or ``"NCHW"``.
        dilation: distance (y, x) of the elements of a window.
    """

    kind = "max_pool"
    operation = "relax.nn.max_pool2d"
    work = Work.WINDOW
    scale = Scale.PASSES

    kernel: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    layout: str = "NHWC"
    dilation: tuple[int, int] = (1, 1)

    @property
    def prescribed(self) -> Layout:
        return "NHWC" if self.layout == "NHWC" else "NCHW"

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        """See `Op.row_windows`; the lowest number, as padding, never wins."""
        kind = inputs[0]
        if self.layout != "NHWC" or not has_rows(kind.shape) or "int" not in kind.dtype:
            return None
        size = (self.kernel[0] - 1) * self.dilation[0] + 1
        least = int(np.iinfo(kind.dtype).min)
        return (RowWindow(size, self.strides[0], *self.padding, least),)

    @property
    def unpadded(self) -> MaxPool:
        return replace(self, padding=(0, 0, 0, 0))

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Pool | None:
        if self.dilation != (1, 1):
            return None
        window = self.kernel, self.strides, self.padding
        return pool_layer(name, inputs[0], output, "max", self.layout, *window)

    def call(self, x: Expr) -> Call:
        return R.nn.max_pool2d(
            x,
            pool_size=self.kernel,
            strides=self.strides,
            padding=self.padding,
            dilation=self.dilation,
            layout=self.layout,
            out_layout=self.layout,
        )

    def compute(self, inputs: Sequence[Array]) -> Array:
        """See `Op.compute`; the lowest number, as padding, never wins."""
        least = np.iinfo(inputs[0].dtype).min
        shape = (self.kernel, self.strides, self.padding, least, self.dilation)
        return np.asarray(windows(inputs[0], *shape).max(axis=(-2, -1)))

    @classmethod
    def read(cls, call: Any) -> MaxPool:
        attrs = call.attrs
        if attrs.ceil_mode:
            raise IntegerFormError("a maximum pool with ceil_mode")
        fy, fx = _integers(attrs.pool_size)
        sy, sx = _integers(attrs.strides)
        top, left, bottom, right = _integers(attrs.padding)
        dy, dx = _integers(attrs.dilation)
        pads = (top, left, bottom, right)
        return cls((fy, fx), (sy, sx), pads, str(attrs.layout), (dy, dx))

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: that of the input."""
        return union(inputs)

    def elements_read(self, inputs: Sequence[TensorType], output: TensorType) -> int:
        """See `Op.elements_read`: all elements of each window."""
        return prod(self.kernel) * prod(output.shape)


def _integers(values: Any) -> tuple[int, ...]:
    return tuple(int(item) for item in values)
