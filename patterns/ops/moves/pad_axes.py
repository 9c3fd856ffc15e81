"""Padding of any axes; `patterns.ops.moves.pad` pads height and width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import te, tirx

from patterns.op import TensorType, operator
from patterns.ops.moves.base import Filling
from patterns.primitive import sizes_of
from patterns.primitive_op import PrimitiveOp

if TYPE_CHECKING:
    from byoc_dory.layers import Array

__all__ = ["PadAxes"]


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

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        sizes = (n + sum(pair) for n, pair in zip(inputs[0].shape, self.widths, strict=True))
        return TensorType(tuple(sizes), inputs[0].dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        (source,), widths = tensors, self.widths
        shape = sizes_of(source)

        def element(*index: Any) -> Any:
            places = [at - before for at, (before, _) in zip(index, widths, strict=True)]
            inside = []
            for place, size, (before, after) in zip(places, shape, widths, strict=True):
                inside += [place >= 0] if before else []
                inside += [place < size] if after else []
            taken = source(*places)
            if not inside:
                return taken
            return tirx.if_then_else(tirx.all(*inside), taken, tirx.const(self.value, source.dtype))

        return te.compute(self.extents(tensors), element, name="padded")

    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        """See `Move.moved`."""
        return np.pad(parts[0], self.widths, constant_values=fill)
