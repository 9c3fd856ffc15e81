"""Nested definitions and polynomials for building functions of reals."""

from __future__ import annotations

from typing import Any

from tvm import te, tirx


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
