"""`PrimitiveOp`: an operator defined by a tensor expression, with a loop nest of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from tvm import relax, te

from byoc_dory.errors import HtvmError, IntegerFormError
from patterns.fields import decode, encode
from patterns.op import Op, TensorType
from patterns.primitive import call_primitive, dtype_of, extents, primitive, shape_of, sizes_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var
    from tvm.tirx import PrimFunc

    from byoc_dory.layers import Array

FIELDS = "fields"
"""Parameter of a PrimFunc that carries the operator's fields."""

_OPAQUE = 8  # TVM's OpPatternKind


Inputs: TypeAlias = "Sequence[Expr | TensorType]"
"""The tensors that an operator reads, of which only the types may be known."""


@dataclass(frozen=True, eq=False)
class Argument:
    """An argument of the operator's PrimFunc.

    Attributes:
        name: name of the parameter.
        value: a tensor, of which only the type may be known, or a constant array.
        field: the operator's field that holds the array; ``""`` if it is computed from fields.
    """

    name: str
    value: Expr | TensorType | Array
    field: str = ""


def type_of(value: Expr | TensorType | Array) -> TensorType:
    """Return the shape and element type of a tensor, which may be known by them, or an array.

    Raises:
        IntegerFormError: it is not a tensor, or a size is unknown.
    """
    if isinstance(value, TensorType):
        return value
    if isinstance(value, np.ndarray):
        return TensorType(value.shape, value.dtype.name)
    return TensorType(shape_of(value), dtype_of(value))


@dataclass(frozen=True, eq=False)
class PrimitiveOp(Op):
    """Base of operators defined by a tensor expression.

    Attributes:
        tag: name of the PrimFunc in the module; ``kind`` by default.
        opaque: whether the PrimFunc must not be fused with its neighbours, because it reads
            elements several times, and recomputing them each time would be slow.
    """

    tag: ClassVar[str] = ""
    opaque: ClassVar[bool] = False

    @abstractmethod
    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        """Return the type of the result.

        Args:
            inputs: types of the PrimFunc's arguments, including constants.

        Raises:
            IntegerFormError: the inputs do not fit the fields.
            UnsupportedError: the result could not be computed exactly.
        """

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """The PrimFunc's arguments: by default the inputs, then the fields that are arrays.

        Inputs are named ``x``, or ``x0``, ``x1``...; fields have their own names.
        """
        names = ["x"] if len(inputs) == 1 else [f"x{at}" for at in range(len(inputs))]
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        return (
            *(Argument(name, value) for name, value in zip(names, inputs, strict=True)),
            *(
                Argument(name, part, name)
                for name, part in own.items()
                if isinstance(part, np.ndarray)
            ),
        )

    def extents(self, tensors: Sequence[te.Tensor]) -> list[Any]:
        """Return the shape of the result for arguments of the PrimFunc, in 64 bits."""
        kinds = [TensorType(sizes_of(tensor), str(tensor.dtype)) for tensor in tensors]
        return extents(self.result(kinds).shape)

    @abstractmethod
    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """Return the definition: the result as a tensor expression of the arguments."""

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `Op.result_of`."""
        return self.result([type_of(argument.value) for argument in self.arguments(inputs)])

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        """See `Op.write`: writes a call of the operator's PrimFunc."""
        try:
            arguments = self.arguments(inputs)
            result = self.result([type_of(argument.value) for argument in arguments])
        except HtvmError as error:
            where = error.where or f"operator '{name}'"
            raise type(error)(error.what, where=where, hint=error.hint) from error
        args = [
            relax.const(np.asarray(part.value, order="C"), part.value.dtype.name)
            if isinstance(part.value, np.ndarray)
            else part.value
            for part in arguments
        ]
        func = self._function(arguments)
        return call_primitive(bb, func, args, result.shape, result.dtype, name, last=True)

    def _function(self, arguments: Sequence[Argument]) -> PrimFunc:
        places = {part.field: at for at, part in enumerate(arguments) if part.field}
        inputs = []
        for part in arguments:
            kind = type_of(part.value)
            inputs.append((part.name, kind.shape, kind.dtype))
        parameters = {FIELDS: encode(self, places)}
        func = primitive(self.tag or self.kind, inputs, self.body, parameters)
        return func.with_attr("op_pattern", _OPAQUE) if self.opaque else func


def read_primitive(cls: type[PrimitiveOp], parameters: Mapping[str, Any], call: Any) -> PrimitiveOp:
    """Return the operator for a call of a PrimFunc.

    Args:
        cls: the class that writes such PrimFuncs.
        parameters: parameters of the PrimFunc.
        call: the call.

    Raises:
        IntegerFormError: the fields do not fit the class.
    """
    text = parameters.get(FIELDS)
    if not isinstance(text, str):
        raise IntegerFormError(
            "its PrimFunc carries no fields",
            where=f"operator '{cls.__name__}'",
            hint="write operators with the classes of the package 'patterns'",
        )
    found = decode(cls, text, call.args[1].fields)
    assert isinstance(found, cls)
    return found
