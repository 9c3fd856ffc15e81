"""`RealOp`: the base of operators on float32 tensors; definitions and polynomials for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.op import TensorType, Work
from patterns.ops.broadcast import pair
from patterns.primitive import Argument, Inputs, PrimitiveOp


def check_reals(inputs: Sequence[TensorType]) -> None:
    """Refuse operands with a type other than float32.

    Raises:
        IntegerFormError: the message names the type.
    """
    for operand in inputs:
        if operand.dtype != "float32":
            raise IntegerFormError(f"an operand of type {operand.dtype}")


@dataclass(frozen=True, eq=False)
class RealOp(PrimitiveOp):
    """Base of operators on float32 tensors, which run on the host, possibly in software.

    By default, the result has the type of the first input.
    """

    work = Work.REAL

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        check_reals(inputs)
        return inputs[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class RealPair(RealOp):
    """Base of functions of two float32 tensors.

    Attributes:
        a, b: the first or second operand if it is constant, float32 with at least one axis; at most
            one of them is.
    """

    a: Array | None = None
    b: Array | None = None

    def operands(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.operands`: both, with a constant one in its place."""
        a, b = (None if part is None else np.asarray(part, "float32") for part in (self.a, self.b))
        return pair(inputs, a, b)


class Definitions:
    """Nested definitions; without them TVM would repeat an expression wherever a value is used."""

    def __init__(self) -> None:
        self._bound: list[tuple[Any, Any]] = []

    def bind(self, name: str, value: Any, dtype: str = "float32") -> Any:
        """Return a variable that has the value inside the block."""
        variable = tirx.Var(f"{name}{len(self._bound)}", dtype)
        self._bound.append((variable, value))
        return variable

    def around(self, result: Any) -> Any:
        """Return the result with all definitions in front of it."""
        for variable, value in reversed(self._bound):
            result = tirx.Let(variable, value, result)
        return result


def within(block: Definitions, x: Any, low: Any, high: Any) -> Any:
    """Clamp a number to ``low`` to ``high``."""
    # Written so that a NaN, for which all comparisons are false, goes to the upper end.
    x = block.bind("x", x)
    upper = block.bind("upper", tirx.Select(x < high, x, high))
    return block.bind("inside", tirx.Select(upper > low, upper, low))


def polynomial(x: Any, figures: te.Tensor, first: int, count: int) -> Any:
    """The polynomial with ``count`` coefficients from ``figures[first]``, highest power first."""
    result = figures[first]
    for place in range(first + 1, first + count):
        result = result * x + figures[place]
    return result
