"""PrimFuncs with attributes that identify them: operators, and parts of operators, as loop nests.

A PrimFunc carries its kind as an attribute (``htvm.kind``), so that readers need not analyse its
body.  One that is a whole operator (`PrimitiveOp`, which a tensor expression defines) also carries
the operator's fields as text (``htvm.fields``, see `patterns.fields`); parts of operators carry
their parameters one by one (``htvm.<parameter>``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from tvm import relax, te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.fields import decode, encode
from patterns.names import emit, located
from patterns.op import Op, TensorType

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Expr, Var
    from tvm.tirx import PrimFunc

    from byoc_dory.layers import Array


Parameter: TypeAlias = "int | str | tuple[int, ...]"
_PREFIX = "htvm."


def shape_of(expr: Expr) -> tuple[int, ...]:
    """Return the static shape of a tensor expression.

    Raises:
        IntegerFormError: it is not a tensor, or a size is unknown.
    """
    shape = expr.ty.shape if isinstance(expr.ty, relax.TensorType) else None
    if shape is None or not all(isinstance(size, tirx.IntImm) for size in shape):
        raise IntegerFormError(
            f"a value of type {expr.ty}", where=f"'{expr}'", hint="give all shapes statically"
        )
    return tuple(int(size) for size in shape)


def dtype_of(expr: Expr) -> str:
    """Return the element type of a tensor, or ``""`` if the expression is not a tensor."""
    return str(expr.ty.dtype) if isinstance(expr.ty, relax.TensorType) else ""


def sizes_of(tensor: te.Tensor) -> tuple[int, ...]:
    """Return the static shape of a TE tensor."""
    return tuple(int(size) for size in tensor.shape)


def extents(shape: tuple[int, ...]) -> list[Any]:
    """Return the shape in 64 bits, like those of Relax's own operators, which it is fused with."""
    return [tirx.const(size, "int64") for size in shape]


def primitive(
    kind: str,
    inputs: Sequence[tuple[str, tuple[int, ...], str]],
    body: Callable[..., te.Tensor],
    parameters: Mapping[str, Parameter],
) -> tirx.PrimFunc:
    """Return a PrimFunc that computes ``body`` of placeholders.

    Args:
        kind: name of the operator, kept as attribute ``htvm.kind``.
        inputs: (name, shape, dtype) of each argument.
        body: tensor expression of the placeholders.
        parameters: integers, strings and tuples of integers, kept as ``htvm.<name>``.
    """
    placeholders = [te.placeholder(extents(shape), dtype, name) for name, shape, dtype in inputs]
    func = te.create_prim_func([*placeholders, body(*placeholders)])
    func = func.without_attr("global_symbol").with_attr(f"{_PREFIX}kind", kind)
    for name, value in parameters.items():
        attribute = list(value) if isinstance(value, tuple) else value
        func = func.with_attr(f"{_PREFIX}{name}", attribute)
    return func


def call_primitive(
    bb: BlockBuilder,
    func: tirx.PrimFunc,
    args: Sequence[Expr],
    shape: tuple[int, ...],
    dtype: str,
    name: str,
    *,
    last: bool = False,
) -> Var:
    """Add ``func`` to the module (once) and bind its call as part of operator ``name``."""
    global_var = bb.add_func(func, str(func.attrs[f"{_PREFIX}kind"]))
    call = relax.call_tir(global_var, list(args), relax.TensorType(shape, dtype))
    return emit(bb, call, name, last=last)


def kind_of(module: IRModule, expr: Expr) -> str | None:
    """Return the ``htvm.kind`` of the PrimFunc that ``expr`` calls, or ``None``."""
    func = _callee(module, expr)
    if func is None or func.attrs is None or f"{_PREFIX}kind" not in func.attrs:
        return None
    return str(func.attrs[f"{_PREFIX}kind"])


def parameters_of(module: IRModule, expr: Expr) -> dict[str, Parameter]:
    """Return the parameters of the PrimFunc that ``expr`` calls, by name without the prefix."""
    func = _callee(module, expr)
    if func is None or func.attrs is None:
        return {}
    return {
        str(key)[len(_PREFIX) :]: _plain(value)
        for key, value in func.attrs.items()
        if str(key).startswith(_PREFIX) and str(key) != f"{_PREFIX}kind"
    }


def _callee(module: IRModule, expr: Expr) -> tirx.PrimFunc | None:
    if not isinstance(expr, relax.Call) or not isinstance(expr.args[0], relax.GlobalVar):
        return None
    func = module[expr.args[0]]
    return func if isinstance(func, tirx.PrimFunc) else None


def _plain(value: Any) -> Parameter:
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "__len__"):
        return tuple(int(item) for item in value)
    return int(value)


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
        """The PrimFunc's arguments: operands, then other fields that are arrays, then constants.

        Fields have their own names.
        """
        operands = self.operands(inputs)
        named = {part.field for part in operands}
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        return (
            *operands,
            *(
                Argument(name, part, name)
                for name, part in own.items()
                if isinstance(part, np.ndarray) and name not in named
            ),
            *(Argument(name, values) for name, values in self.constants().items()),
        )

    def operands(self, inputs: Inputs) -> Sequence[Argument]:
        """The first arguments: by default the inputs, named ``x``, or ``x0``, ``x1``..."""
        names = ["x"] if len(inputs) == 1 else [f"x{at}" for at in range(len(inputs))]
        return [Argument(name, value) for name, value in zip(names, inputs, strict=True)]

    def constants(self) -> Mapping[str, Array]:
        """The last arguments: arrays that are computed from fields, by name; none by default."""
        return {}

    def extents(self, tensors: Sequence[te.Tensor]) -> list[Any]:
        """Return the shape of the result for arguments of the PrimFunc, in 64 bits."""
        kinds = [TensorType(sizes_of(tensor), str(tensor.dtype)) for tensor in tensors]
        return extents(self.result(kinds).shape)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        """Return the definition: the result as a tensor expression of the arguments.

        By default, every `element` is an expression of its own.
        """
        name = self.tag or self.kind
        return te.compute(
            self.extents(tensors), lambda *index: self.element(index, *tensors), name=name
        )

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        """Return the element of the result at an index, as an expression of the arguments."""
        raise NotImplementedError

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `Op.result_of`."""
        return self.result([type_of(argument.value) for argument in self.arguments(inputs)])

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        """See `Op.write`: writes a call of the operator's PrimFunc."""
        with located(name):
            arguments = self.arguments(inputs)
            result = self.result([type_of(argument.value) for argument in arguments])
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
