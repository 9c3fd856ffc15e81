"""Functions of two float32 tensors: element by element, each rounded once as in IEEE 754, and
products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.op import TensorType, operator
from patterns.ops.broadcast import broadcast, broadcast_load
from patterns.ops.float32.base import RealPair, check_reals
from patterns.primitive import sizes_of

Function: TypeAlias = Literal["add", "subtract", "multiply", "divide", "minimum", "maximum"]

_COMBINE: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    # A NaN in the first operand is kept.
    "minimum": lambda x, y: tirx.Select(y < x, y, x),
    "maximum": lambda x, y: tirx.Select(y > x, y, x),
}


@operator
@dataclass(frozen=True, eq=False)
class RealCombine(RealPair):
    """A function of two float32 tensors, broadcast like in numpy.

    Attributes:
        function: name of the function.
    """

    kind = "real"
    tag = "real_combine"

    function: Function

    @property
    def stem(self) -> str:
        return f"real_{self.function}"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        check_reals(inputs)
        return TensorType(broadcast(*(part.shape for part in inputs)), "float32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        def element(*index: Any) -> Any:
            x, y = (broadcast_load(part, index) for part in tensors)
            return _COMBINE[self.function](x, y)

        return te.compute(self.extents(tensors), element, name="combined")


@operator
@dataclass(frozen=True, eq=False)
class RealMatmul(RealPair):
    """The product of two float32 tensors of matrices, broadcast like in numpy, summed in order."""

    kind = "real_matmul"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        check_reals(inputs)
        first, second = (part.shape for part in inputs)
        if min(len(first), len(second)) < 2 or first[-1] != second[-2]:
            raise IntegerFormError(f"a product of shapes {first} and {second}")
        outer = (int(size) for size in np.broadcast_shapes(first[:-2], second[:-2]))
        return TensorType((*outer, first[-2], second[-1]), "float32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        left, right = tensors
        k = te.reduce_axis((0, tirx.const(sizes_of(left)[-1], "int64")), "k")

        def element(*index: Any) -> Any:
            *batch, row, column = index
            x = broadcast_load(left, [*batch, row, k])
            return te.sum(x * broadcast_load(right, [*batch, k, column]), axis=[k])

        return te.compute(self.extents(tensors), element, name="matmul")
