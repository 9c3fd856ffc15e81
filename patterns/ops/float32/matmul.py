"""Products of float32 matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.op import TensorType, operator
from patterns.ops.broadcast import broadcast_load
from patterns.ops.float32.base import RealPair, check_reals
from patterns.primitive import sizes_of

__all__ = ["RealMatmul"]


@operator
@dataclass(frozen=True, eq=False)
class RealMatmul(RealPair):
    """The product of two float32 tensors of matrices, broadcast like in numpy, summed in order."""

    kind = "real_matmul"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        check_reals(inputs)
        first, second = (part.shape for part in inputs)
        if min(len(first), len(second)) < 2 or first[-1] != second[-2]:
            raise IntegerFormError(f"a product of shapes {first} and {second}")
        outer = (int(size) for size in np.broadcast_shapes(first[:-2], second[:-2]))
        return TensorType((*outer, first[-2], second[-1]), "float32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        left, right = tensors
        k = te.reduce_axis((0, tirx.const(sizes_of(left)[-1], "int64")), "k")

        def element(*index: Any) -> Any:
            *batch, row, column = index
            x = broadcast_load(left, [*batch, row, k])
            return te.sum(x * broadcast_load(right, [*batch, k, column]), axis=[k])

        return te.compute(self.extents(tensors), element, name="matmul")
