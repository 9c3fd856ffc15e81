"""Padding: of maps in height and width, which layers may take for their own, and of any axes.

Spreading maps over larger ones, which turns a transposed convolution into a convolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx
from tvm.relax import op as R

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Interleaving, Padding
from patterns.op import Operands, TensorType, operator
from patterns.ops.layers import map_of
from patterns.ops.moves.base import Filling, y_axis
from patterns.primitive import PrimitiveOp, sizes_of
from patterns.relax_op import CallOp

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from byoc_dory.layers import Array


@operator
@dataclass(frozen=True, eq=False)
class Pad(Filling, CallOp):
    """An int8 map padded with ``value`` in height and width.

    Attributes:
        value: value of the padding, usually the zero point.
        padding: number of elements (top, left, bottom, right).
        layout: layout of the maps, ``"NHWC"`` or ``"NCHW"``.
    """

    kind = "pad"
    operation = "relax.nn.pad"
    neutral = True

    padding: tuple[int, int, int, int]
    layout: str = "NHWC"

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Padding | None:
        source, result = map_of(*inputs[0], self.layout), map_of(name, output, self.layout)
        if source is None or result is None:
            return None
        return Padding(
            name=name, inputs=(source,), output=result, value=self.value, sizes=self.padding
        )

    def call(self, x: Expr) -> Call:
        widths = [width for pair in self._widths() for width in pair]
        return R.nn.pad(x, widths, "constant", self.value)

    def _widths(self) -> list[tuple[int, int]]:
        top, left, bottom, right = self.padding
        widths = [(0, 0)] * 4
        y = y_axis(self.layout)
        widths[y : y + 2] = [(top, bottom), (left, right)]
        return widths

    @classmethod
    def read(cls, call: Any) -> Pad:
        """See `CallOp.read`; a padding of only the third axis is read as NHWC."""
        widths = [int(width) for width in call.attrs.pad_width]
        if str(call.attrs.pad_mode) != "constant":
            raise IntegerFormError(f"a padding in mode {call.attrs.pad_mode}")
        layout = "NHWC" if not any(widths[6:]) else "NCHW"
        spatial = widths[2:6] if layout == "NHWC" else widths[4:8]
        if len(widths) != 8 or sum(spatial) != sum(widths):
            raise IntegerFormError(f"a padding of {widths}", hint="pad height and width only")
        top, bottom, left, right = spatial
        value = int(call.attrs.pad_value)
        if value != call.attrs.pad_value:
            raise IntegerFormError(f"a padding with {float(call.attrs.pad_value)}")
        return cls(value=value, padding=(top, left, bottom, right), layout=layout)

    def in_channels_first(self) -> Pad:
        """See `Op.in_channels_first`: the columns of NHWC are rows of NCHW."""
        top, left, bottom, right = self.padding
        if self.layout == "NHWC" and top == 0 == bottom:
            return replace(self, padding=(left, 0, right, 0), layout="NCHW")
        return self

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        return np.pad(parts[0], self._widths(), constant_values=fill)


@operator
@dataclass(frozen=True, eq=False)
class PadAxes(Filling, PrimitiveOp):
    """A tensor of any rank and type, padded with ``value``.

    Attributes:
        value: value of the padding, usually the zero point.
        widths: number of elements (before, after) per axis.
    """

    kind = "pad_axes"

    widths: tuple[tuple[int, int], ...]

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Padding | None:
        """See `Op.kept_layer`: rows and columns around a map."""
        source, result = map_of(*inputs[0], "NHWC"), map_of(name, output, "NHWC")
        if source is None or result is None or any(map(any, (self.widths[0], self.widths[3]))):
            return None
        _, (top, bottom), (left, right), _ = self.widths
        sizes = (top, left, bottom, right)
        return Padding(name=name, inputs=(source,), output=result, value=self.value, sizes=sizes)

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        sizes = (n + sum(pair) for n, pair in zip(inputs[0].shape, self.widths, strict=True))
        return TensorType(tuple(sizes), inputs[0].dtype)

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        (source,), widths = tensors, self.widths
        shape = sizes_of(source)
        places = [at - before for at, (before, _) in zip(index, widths, strict=True)]
        inside = []
        for place, size, (before, after) in zip(places, shape, widths, strict=True):
            inside += [place >= 0] if before else []
            inside += [place < size] if after else []
        taken = source(*places)
        if not inside:
            return taken
        return tirx.if_then_else(tirx.all(*inside), taken, tirx.const(self.value, source.dtype))

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        return np.pad(parts[0], self.widths, constant_values=fill)


@operator
@dataclass(frozen=True, eq=False)
class Interleave(Filling, PrimitiveOp):
    """A map filled with ``value``, with the elements of a map spread over it.

    It turns a transposed convolution into a convolution: instead of adding every element times the
    filter to the output, one sums over the filter taps that reach an output element.

    Attributes:
        value: value of all places in between, usually the zero point.
        size: size (y, x) of the result.
        start: position (y, x) of the first element.
        strides: distance (y, x) between elements; those beyond ``size`` are left out.
        layout: layout of the maps, ``"NHWC"`` or ``"NCHW"``.
    """

    kind = "interleave"

    size: tuple[int, int]
    start: tuple[int, int]
    strides: tuple[int, int]
    layout: str = "NHWC"

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Interleaving | None:
        source, result = map_of(*inputs[0], self.layout), map_of(name, output, self.layout)
        if source is None or result is None:
            return None
        return Interleaving(
            name=name, inputs=(source,), output=result, value=self.value, start=self.start,
            distance=self.strides,
        )  # fmt: skip

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        source, y = inputs[0].shape, y_axis(self.layout)
        return TensorType((*source[:y], *self.size, *source[y + 2 :]), inputs[0].dtype)

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        (source,) = tensors
        shape, y, start, strides = sizes_of(source), y_axis(self.layout), self.start, self.strides
        places, inside = [], []
        for axis in (0, 1):
            # Counted from a multiple of the stride, so that no dividend is negative.
            shift = math.ceil(start[axis] / strides[axis])
            distance = index[y + axis] + (shift * strides[axis] - start[axis])
            place = tirx.floordiv(distance, strides[axis]) - shift
            places.append(place)
            if strides[axis] > 1:
                inside.append(tirx.floormod(distance, strides[axis]) == 0)
            inside += [place >= 0, place < shape[y + axis]]
        taken = source(*index[:y], *places, *index[y + 2 :])
        return tirx.if_then_else(tirx.all(*inside), taken, tirx.const(self.value, source.dtype))

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        y, x = y_axis(self.layout), parts[0]
        out = np.full((*x.shape[:y], *self.size, *x.shape[y + 2 :]), fill, x.dtype)
        places: list[Array] = [np.arange(size) for size in x.shape]
        for at in (0, 1):
            target = self.start[at] + self.strides[at] * places[y + at]
            inside = (target >= 0) & (target < self.size[at])
            x = np.compress(inside, x, axis=y + at)
            places[y + at] = target[inside]
        out[np.ix_(*places)] = x
        return out
