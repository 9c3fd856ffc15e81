"""`ElementWise`: the base of the PULP flow's functions of one integer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from tvm import sym, te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import TensorType
from patterns.ops.integer.limits import INT32_MAX, magnitude
from patterns.primitive_op import PrimitiveOp

__all__ = ["ElementWise", "check_fits"]


@dataclass(frozen=True, eq=False)
class ElementWise(PrimitiveOp):
    """Base of functions of each element of an integer tensor; the results are int32.

    Attributes:
        offered: whether it is offered to accelerators as a table of bytes, together with the
            requantization after it.
    """

    offered: ClassVar[bool] = False

    @abstractmethod
    def check(self, largest: int) -> None:
        """Refuse inputs of up to this magnitude if results could be wrong.

        Raises:
            UnsupportedError: a result may not fit int32, or a field is out of range.
        """

    @abstractmethod
    def of(self, value: Any) -> Any:
        """Return the function of an expression with the type that `working` returns."""

    def working(self, largest: int) -> str:
        """Return the type to compute in, for inputs of up to this magnitude."""
        return "int32"

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `PrimitiveOp.result`."""
        self.check(magnitude(inputs[0].dtype))
        return TensorType(inputs[0].shape, "int32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """See `PrimitiveOp.body`."""
        (source,) = tensors
        working = self.working(magnitude(str(source.dtype)))

        def element(*index: Any) -> Any:
            return tirx.Cast("int32", self.of(tirx.Cast(working, source(*index))))

        return te.compute(source.shape, element, name=self.tag)

    def tabulated(self, dtype: str) -> tuple[int, ...]:
        """Return the function's result for each byte of ``dtype``, int8 or uint8.

        Returns:
            256 integers, indexed by the byte of the argument in two's complement.
        """
        return _tabulated(self, dtype)


@lru_cache(maxsize=64)
def _tabulated(op: ElementWise, dtype: str) -> tuple[int, ...]:
    analyzer, working = sym.Analyzer(), op.working(magnitude(dtype))
    values = np.arange(256, dtype="uint8").view(dtype).tolist()
    return tuple(int(analyzer.simplify(op.of(tirx.const(value, working)))) for value in values)


def check_fits(worst: int, what: str) -> None:
    """Refuse results that may not fit int32.

    Args:
        worst: largest magnitude of a result.
        what: name of the function, for the message.

    Raises:
        UnsupportedError: the results may not fit.
    """
    if worst > INT32_MAX:
        raise UnsupportedError(
            f"{what} may reach {worst}",
            hint="its result is kept in 32 bits; narrow its input, or its factors",
        )
