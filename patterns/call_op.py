"""`CallOp`: an operator that is one call of a Relax operator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tvm import relax

from patterns.names import emit
from patterns.op import Op, TensorType
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Call, Expr, Var
    from typing_extensions import Self


@dataclass(frozen=True, eq=False)
class CallOp(Op):
    """Base of operators that correspond to one Relax operator.

    Attributes:
        operation: name of the Relax operator, such as ``relax.reshape``.
    """

    operation: ClassVar[str] = ""

    @abstractmethod
    def call(self, x: Expr) -> Call:
        """Return the call, for one tensor."""

    @classmethod
    @abstractmethod
    def read(cls, call: Any) -> Self:
        """Return the operator for a call.

        Raises:
            IntegerFormError: the call has attributes that the operator does not support.
        """

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `Op.result_of`."""
        (item,) = inputs
        x = relax.Var("x", relax.TensorType(item.shape, item.dtype))
        made = relax.BlockBuilder().normalize(self.call(x))
        return TensorType(shape_of(made), dtype_of(made))

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        """See `Op.write`."""
        return emit(bb, self.call(inputs[0]), name, last=True)
