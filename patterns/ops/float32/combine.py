"""Functions of two float32 tensors, element by element; each rounds once, as in IEEE 754."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tvm import te, tirx

from patterns.op import TensorType, operator
from patterns.ops.broadcast import broadcast, broadcast_load
from patterns.ops.float32.base import RealPair, check_reals

__all__ = ["Function", "RealCombine"]

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
        """See `Op.stem`."""
        return f"real_{self.function}"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        check_reals(inputs)
        return TensorType(broadcast(*(part.shape for part in inputs)), "float32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""

        def element(*index: Any) -> Any:
            x, y = (broadcast_load(part, index) for part in tensors)
            return _COMBINE[self.function](x, y)

        return te.compute(self.extents(tensors), element, name="combined")
