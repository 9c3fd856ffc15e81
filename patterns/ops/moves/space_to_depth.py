"""Blocks of pixels moved into the channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.op import TensorType, operator
from patterns.ops.moves.base import Move
from patterns.primitive import sizes_of
from patterns.primitive_op import PrimitiveOp

if TYPE_CHECKING:
    from byoc_dory.layers import Array, Layout


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
