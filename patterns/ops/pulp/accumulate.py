"""The sum of the heads of an attention, with its own requantization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm import te, tirx

from byoc_dory.errors import IntegerFormError, UnsupportedError
from byoc_dory.layers import Add, MulShift
from patterns.op import INT8, Operands, Range, TensorType, Work, operator
from patterns.ops.integer.limits import INT32_MAX
from patterns.ops.rows import matrix_of
from patterns.primitive_op import Argument, Inputs, PrimitiveOp

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var


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

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        return tuple(Argument(f"part_{at}", part) for at, part in enumerate(inputs))

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        worst = len(tensors) * 128 * abs(self.mul) + abs(self.add)
        wide = "int32" if worst <= INT32_MAX else "int64"
        mul, add, shift, low, high = (
            tirx.const(number, wide) for number in (self.mul, self.add, self.shift, *self.clip)
        )

        def element(*index: Any) -> Any:
            total = tirx.Cast(wide, tensors[0](*index))
            for source in tensors[1:]:
                total = total + tirx.Cast(wide, source(*index))
            scaled = (total * mul + add) >> shift
            return tirx.Cast("int8", tirx.max(tirx.min(scaled, high), low))

        return te.compute(tensors[0].shape, element, name="accumulated")

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Add:
        requant = MulShift((self.mul,), (self.shift,), (self.add,))
        operands = tuple(matrix_of(*part) for part in inputs)
        result = matrix_of(name, output)
        return Add(name=name, inputs=operands, output=result, requant=requant, clip=self.clip)
