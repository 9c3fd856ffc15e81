"""Recognising the operator that a value belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from tvm import relax

from byoc_dory.errors import IntegerFormError
from patterns.ops import classes
from patterns.primitive import kind_of, parameters_of
from patterns.primitive_op import PrimitiveOp, read_primitive
from patterns.relax_op import CallOp, ComposedOp, Match, compositions, find

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Var

    from patterns.op import Op

_Class = TypeVar("_Class")

_ENDS = ("relax.astype", "relax.add")
"""Name of the operation or the PrimFunc of a composition's last call."""


@cache
def _compositions() -> tuple[tuple[type[ComposedOp], Match], ...]:
    return compositions(classes())


def recognised(module: IRModule, value: Expr, values: Mapping[Var, Expr]) -> Op:
    """Return the operator that ends in ``value``.

    Args:
        module: the module that contains it.
        value: the value of the operator's last binding.
        values: all bindings of ``main``.

    Raises:
        IntegerFormError: it is not part of the integer form, or its attributes do not fit its
            class.
    """
    if isinstance(value, relax.Call):
        operation = str(getattr(value.op, "name", ""))
        if (call := _calls().get(operation)) is not None:
            return call.read(value)
        if (written := primitives().get(kind_of(module, value) or "")) is not None:
            return read_primitive(written, parameters_of(module, value), value)
        for cls, match in _compositions() if operation in _ENDS else ():
            slots = find(match, value, values)
            if slots is not None:
                return cls.read(slots)
    raise IntegerFormError(
        "not an operator of the integer form",
        where=f"value '{_brief(value)}'",
        hint="write operators with the classes of the package 'patterns'",
    )


@cache
def primitives() -> Mapping[str, type[PrimitiveOp]]:
    """Return the classes of operators that are PrimFuncs, by the PrimFunc's kind.

    Raises:
        IntegerFormError: two classes write PrimFuncs of the same kind.
    """
    return _by_name((cls.tag or cls.kind, cls) for cls in _derived(PrimitiveOp))


@cache
def _calls() -> Mapping[str, type[CallOp]]:
    """Return the classes of operators that are Relax calls, by the name of the Relax operator.

    Raises:
        IntegerFormError: two classes write the same call.
    """
    return _by_name((cls.operation, cls) for cls in _derived(CallOp))


def _derived(base: Any) -> Iterator[type[Any]]:
    return (cls for cls in classes() if issubclass(cls, base))


def _by_name(named: Iterable[tuple[str, type[_Class]]]) -> Mapping[str, type[_Class]]:
    found: dict[str, type[_Class]] = {}
    for name, cls in named:
        other = found.setdefault(name, cls)
        if other is not cls:
            raise IntegerFormError(
                f"two classes of operators are '{name}' in a module",
                where=f"{other.__module__} and {cls.__module__}",
                hint="give one of them a name of its own",
            )
    return found


def _brief(value: Any) -> str:
    if isinstance(value, relax.Call):
        return str(getattr(value.op, "name", getattr(value.op, "name_hint", value.op)))
    return type(value).__name__
