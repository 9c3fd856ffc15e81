"""Maps of reals at another size, interpolated linearly along both axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers.tensor import Array
from patterns.op import TensorType, operator
from patterns.ops.float32.base import RealOp, check_reals

__all__ = ["RealBilinear"]


@operator
@dataclass(frozen=True, eq=False)
class RealBilinear(RealOp):
    """Weighted sums of four elements of each float32 map (N, C, y, x).

    Each element of the result has two rows and two columns of the source, each with a weight.  The
    sum goes over the first row's elements first, and a product's weights are multiplied first.

    Attributes:
        rows, columns: int32 [2, oy] and [2, ox], indices in the source.
        row_weights, column_weights: float32 of the same shapes.
    """

    kind = "real_bilinear"
    opaque = True

    rows: Array
    columns: Array
    row_weights: Array
    column_weights: Array

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        check_reals(inputs[:1])
        shape = inputs[0].shape
        for size, places in zip(shape[2:], (self.rows, self.columns), strict=True):
            if len(shape) != 4 or places.min() < 0 or places.max() >= size:
                raise IntegerFormError(f"rows or columns outside of a map of {list(shape)}")
        return TensorType((*shape[:2], self.rows.shape[1], self.columns.shape[1]), "float32")

    def elements_read(self, inputs: Sequence[TensorType], output: TensorType) -> int:
        """See `Op.elements_read`: four for each of the result."""
        n, c, y, x = output.shape
        return 4 * n * c * y * x

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        source, rows, columns, row_weights, column_weights = tensors

        def element(n: Any, c: Any, y: Any, x: Any) -> Any:
            terms = [
                column_weights[j, x] * row_weights[i, y] * source(n, c, rows[i, y], columns[j, x])
                for i in (0, 1)
                for j in (0, 1)
            ]
            return terms[0] + terms[1] + terms[2] + terms[3]

        return te.compute(self.extents(tensors), element, name="bilinear")
