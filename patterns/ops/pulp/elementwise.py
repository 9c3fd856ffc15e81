"""The PULP flow's functions of one integer: GELU, hard swish, and division by a constant.

Also quotients of two tensors, and the sum of the heads of an attention, with its own
requantization.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from tvm import sym, te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Add, MulShift
from patterns.op import INT8, Operands, Range, TensorType, Work, operator
from patterns.ops.broadcast import PairOp, broadcast, broadcast_load
from patterns.ops.integer.limits import INT32_MAX, magnitude
from patterns.ops.layers import matrix_of
from patterns.primitive import Argument, Inputs, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var


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

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        (source,) = tensors
        working = self.working(magnitude(str(source.dtype)))
        return tirx.Cast("int32", self.of(tirx.Cast(working, source(*index))))

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


@operator
@dataclass(frozen=True, eq=False)
class PulpQuotient(PairOp):
    """``(factor * a) / (eta * b + eps)`` as int32, rounded to the nearest integer.

    The operands are tensors of any integers, broadcast as in numpy.  Half the divisor, which
    rounds, is ``divisor >> 1`` with the dividend's sign; the division then truncates.  Where the
    divisor is zero, so is the result; results that do not fit 32 bits wrap.

    Attributes:
        factor: of the dividend.
        eta, eps: factor and summand of the divisor.
    """

    kind = "quotient"
    tag = "integer_quotient"

    factor: int
    eta: int
    eps: int

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        a, b = inputs
        dividend = abs(self.factor) * magnitude(a.dtype)
        divisor = abs(self.eta) * magnitude(b.dtype) + abs(self.eps)
        if dividend + divisor >= 2**62:
            raise UnsupportedError(
                f"a division of up to {dividend} by up to {divisor}",
                hint="both together must fit 62 bits; requantize before, or use smaller factors",
            )
        return TensorType(broadcast(a.shape, b.shape), "int32")

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: all of int32."""
        return -INT32_MAX - 1, INT32_MAX

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        zero, one, factor, eta, eps = (
            tirx.const(number, "int64") for number in (0, 1, self.factor, self.eta, self.eps)
        )
        a, b = (tirx.Cast("int64", broadcast_load(part, index)) for part in tensors)
        dividend, divisor = a * factor, b * eta + eps
        half = divisor >> one
        nearest = tirx.Select(dividend >= zero, dividend + half, dividend - half)
        # Both sides of a Select may be computed.
        safe = tirx.Select(divisor == zero, one, divisor)
        found = tirx.Select(divisor == zero, zero, tirx.truncdiv(nearest, safe))
        return tirx.Cast("int32", found)


@operator
@dataclass(frozen=True, eq=False)
class Accumulate(PrimitiveOp):
    """``clip((sum of all inputs * mul + add) >> shift)`` to int8; the shift floors.

    The inputs are two or more different int8 tensors of the same shape.

    Attributes:
        mul, add: integers that fit int32.
        shift: number of bits, 0 to 31.
        clip: inclusive range of the output.

    Raises:
        UnsupportedError: a number is out of range.
    """

    kind = "accumulate"
    work = Work.SUM

    mul: int
    add: int
    shift: int
    clip: Range = INT8

    def __post_init__(self) -> None:
        if max(abs(self.mul), abs(self.add)) > INT32_MAX or not 0 <= self.shift <= 31:
            raise UnsupportedError(
                f"mul {self.mul}, add {self.add} and shift {self.shift}",
                hint="the former fit int32, the latter is 0 to 31",
            )

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        if len(set(inputs)) != len(inputs):
            raise IntegerFormError(
                f"a sum of {len(inputs)} tensors, some of them the same",
                where=f"operator '{name}'",
                hint="two and more different int8 tensors of one shape",
            )
        return super().write(bb, inputs, name)

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        shapes, dtypes = {part.shape for part in inputs}, {part.dtype for part in inputs}
        if len(inputs) < 2 or len(shapes) != 1 or dtypes != {"int8"}:
            raise IntegerFormError(
                f"a sum of {len(inputs)} tensors of shapes {sorted(shapes)} and types "
                f"{sorted(dtypes)}",
                hint="two and more different int8 tensors of one shape",
            )
        return inputs[0]

    def operands(self, inputs: Inputs) -> Sequence[Argument]:
        return tuple(Argument(f"part_{at}", part) for at, part in enumerate(inputs))

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        worst = len(tensors) * 128 * abs(self.mul) + abs(self.add)
        wide = "int32" if worst <= INT32_MAX else "int64"
        mul, add, shift, low, high = (
            tirx.const(number, wide) for number in (self.mul, self.add, self.shift, *self.clip)
        )
        total = tirx.Cast(wide, tensors[0](*index))
        for source in tensors[1:]:
            total = total + tirx.Cast(wide, source(*index))
        scaled = (total * mul + add) >> shift
        return tirx.Cast("int8", tirx.max(tirx.min(scaled, high), low))

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Add:
        requant = MulShift((self.mul,), (self.shift,), (self.add,))
        operands = tuple(matrix_of(*part) for part in inputs)
        result = matrix_of(name, output)
        return Add(name=name, inputs=operands, output=result, requant=requant, clip=self.clip)
