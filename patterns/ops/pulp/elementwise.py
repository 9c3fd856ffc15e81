"""The PULP flow's functions of one integer: GELU, hard swish, and division by a constant."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from tvm import sym, te, tirx

from byoc_dory.errors import UnsupportedError
from patterns.op import TensorType, operator
from patterns.ops.integer.limits import INT32_MAX, magnitude
from patterns.primitive_op import PrimitiveOp


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
        self.check(magnitude(inputs[0].dtype))
        return TensorType(inputs[0].shape, "int32")

    def body(self, *tensors: te.Tensor) -> te.Tensor:
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


@operator
@dataclass(frozen=True, eq=False)
class PulpGelu(ElementWise):
    """``x * ((one + L) >> 1)``, ``L = sgn(x) * (one - (min(|x|, -b) + b)**2)``; int32.

    Attributes:
        b: negated argument where the error function becomes flat; not positive.
        one: the integer that represents 1.0.
    """

    kind = "gelu"
    tag = "integer_gelu"
    offered = True

    b: int
    one: int

    def check(self, largest: int) -> None:
        if self.b > 0:
            raise UnsupportedError(f"b = {self.b}", hint="b is negative")
        check_fits(largest * (abs(self.one) + self.b * self.b), "a GELU")

    def of(self, value: Any) -> Any:
        zero, bit, one, b = (tirx.const(n, "int32") for n in (0, 1, self.one, self.b))
        inner = tirx.min(tirx.max(value, -value), tirx.const(-self.b, "int32")) + b
        flat = one - inner * inner
        signed = tirx.Select(value > 0, flat, tirx.Select(value < 0, -flat, zero))
        return value * ((one + signed) >> bit)


@operator
@dataclass(frozen=True, eq=False)
class PulpHardSwish(ElementWise):
    """``x * clip(x + three, 0, six) * sixth``, int32.

    Attributes:
        three, six, sixth: the integers that represent 3.0, 6.0 and 1 / 6.
    """

    kind = "hard_swish"
    tag = "integer_hard_swish"
    offered = True

    three: int
    six: int
    sixth: int

    def check(self, largest: int) -> None:
        check_fits(largest * max(self.six, 1) * max(abs(self.sixth), 1), "a hard swish")
        check_fits(largest + abs(self.three), "a hard swish")

    def of(self, value: Any) -> Any:
        zero, three, six, sixth = (
            tirx.const(n, "int32") for n in (0, self.three, self.six, self.sixth)
        )
        gate = tirx.max(tirx.min(value + three, six), zero)
        return value * gate * sixth


@operator
@dataclass(frozen=True, eq=False)
class PulpDivide(ElementWise):
    """``(numerator * x) // denominator``, which floors; int32.

    Its cycles have no estimate, because they depend on the input's type: where `working` is int64,
    an element takes about ten times as long as in int32.

    Attributes:
        numerator: its product with the input is below 2**62 in magnitude.
        denominator: positive integer that fits int32.
    """

    kind = "divide"
    tag = "integer_divide"
    offered = True

    numerator: int
    denominator: int

    def check(self, largest: int) -> None:
        worst = largest * abs(self.numerator)
        if not 0 < self.denominator <= INT32_MAX or worst + self.denominator >= 2**62:
            raise UnsupportedError(
                f"a division of up to {worst} by {self.denominator}",
                hint="the divisor must be positive and fit int32, the dividend 62 bits",
            )
        check_fits(-(-worst // self.denominator), "a quotient")

    def working(self, largest: int) -> str:
        worst = largest * abs(self.numerator)
        return "int32" if worst + self.denominator <= INT32_MAX else "int64"

    def of(self, value: Any) -> Any:
        working = str(value.ty.dtype)
        divisor, one = tirx.const(self.denominator, working), tirx.const(1, working)
        product = value * tirx.const(self.numerator, working)
        # TVM lowers this before C's division, which rounds toward zero.
        lowered = tirx.Select(product < 0, product - (divisor - one), product)
        return tirx.truncdiv(lowered, divisor)
