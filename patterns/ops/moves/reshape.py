"""Other shapes of the same elements: reshaped, with permuted axes, in blocks, and parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx
from tvm.relax import op as R

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Reshaping, Slicing, Tensor
from patterns.op import Operands, Range, Scale, TensorType, Work, operator, union
from patterns.ops.layers import of_stored, stored
from patterns.ops.moves.base import Move
from patterns.primitive import PrimitiveOp, shape_of, sizes_of
from patterns.relax_op import CallOp

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from byoc_dory.layers import Array, Layout


@operator
@dataclass(frozen=True, eq=False)
class Reshape(CallOp):
    """The same elements in the same order, in another shape (including the batch)."""

    kind = "reshape"
    operation = "relax.reshape"
    work = Work.NOTHING
    scale = Scale.PASSES

    shape: tuple[int, ...]

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Reshaping:
        ((source, kind),) = inputs
        size = (prod(self.shape),)
        return Reshaping(
            name=name,
            inputs=(Tensor(source, size, kind.dtype, "C"),),
            output=Tensor(name, size, output.dtype, "C"),
        )

    def call(self, x: Expr) -> Call:
        return R.reshape(x, self.shape)

    @classmethod
    def read(cls, call: Any) -> Reshape:
        return cls(shape_of(call))

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: that of the input."""
        return union(inputs)


@operator
@dataclass(frozen=True, eq=False)
class Transpose(Move, PrimitiveOp):
    """Axis ``i`` of the result is axis ``axes[i]`` of the input."""

    kind = "transpose"

    axes: tuple[int, ...]

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = tuple(inputs[0].shape[axis] for axis in self.axes)
        return TensorType(shape, inputs[0].dtype)

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        (source,), axes = tensors, self.axes
        return source(*(index[axes.index(axis)] for axis in range(len(axes))))

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        return parts[0].transpose(self.axes)


@operator
@dataclass(frozen=True, eq=False)
class Slice(Move, PrimitiveOp):
    """``sizes`` elements starting at ``begin``, every ``strides``-th one, along each axis.

    Attributes:
        begin, sizes, strides: one number per axis; strides may be negative, not zero.
    """

    kind = "slice"

    begin: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def every(cls, begin: Sequence[int], sizes: Sequence[int]) -> Slice:
        """Return the slice that skips nothing between its ends."""
        return cls(tuple(begin), tuple(sizes), (1,) * len(begin))

    @classmethod
    def along(cls, shape: Sequence[int], axis: int, places: range) -> Slice:
        """Return the slice of a tensor of this shape at places along an axis, not empty."""
        begin, sizes, strides = [0] * len(shape), list(shape), [1] * len(shape)
        begin[axis], sizes[axis], strides[axis] = places.start, len(places), places.step
        return cls(tuple(begin), tuple(sizes), tuple(strides))

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape = inputs[0].shape
        parts = zip(shape, self.begin, self.sizes, self.strides, strict=True)
        for size, first, count, step in parts:
            last = first + (count - 1) * step
            if count < 1 or step == 0 or not (0 <= first < size and 0 <= last < size):
                raise IntegerFormError(
                    f"a slice of {shape} from {self.begin}, {self.sizes} elements in steps of "
                    f"{self.strides}"
                )
        return TensorType(self.sizes, inputs[0].dtype)

    def kept_layer(self, name: str, inputs: Operands, output: TensorType) -> Slicing | None:
        source, result = stored(*inputs[0]), stored(name, output)
        if source is None or result is None or any(step != 1 for step in self.strides):
            return None
        begin = of_stored(self.begin)
        return Slicing(name=name, inputs=(source,), output=result, begin=begin)

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        parts = zip(index, self.begin, self.strides, strict=True)
        return tensors[0](*(at * step + first for at, first, step in parts))

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        bounds = zip(self.begin, self.sizes, self.strides, strict=True)
        places = [begin + np.arange(size) * stride for begin, size, stride in bounds]
        return np.asarray(parts[0][np.ix_(*places)])


@operator
@dataclass(frozen=True, eq=False)
class SpaceToDepth(Move, PrimitiveOp):
    """A map (N, y, x, C) of which each block of pixels becomes one pixel.

    Channel ``(dy * block + dx) * C + c`` of pixel (y, x) is channel c of the source's pixel
    (``y * block + dy``, ``x * block + dx``).

    Attributes:
        block: height and width of a block, which divide those of the map.
    """

    kind = "space_to_depth"

    block: int

    @property
    def prescribed(self) -> Layout:
        return "NHWC"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shape, block = inputs[0].shape, self.block
        if len(shape) != 4 or block < 1 or shape[1] % block or shape[2] % block:
            raise IntegerFormError(f"blocks of {block}x{block} of a map of shape {list(shape)}")
        n, y, x, channels = shape
        blocks = (n, y // block, x // block, channels * block**2)
        return TensorType(blocks, inputs[0].dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,) = tensors
        shape, block = sizes_of(source), self.block

        def element(n: Any, y: Any, x: Any, k: Any) -> Any:
            place, channel = tirx.floordiv(k, shape[3]), tirx.floormod(k, shape[3])
            dy, dx = tirx.floordiv(place, block), tirx.floormod(place, block)
            return source(n, y * block + dy, x * block + dx, channel)

        return te.compute(self.extents(tensors), element, name="blocks")

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        (n, y, x, _), block = parts[0].shape, self.block
        rows = parts[0].reshape(n, y // block, block, x // block, block, -1)
        return rows.transpose(0, 1, 3, 2, 4, 5).reshape(n, y // block, x // block, -1)
