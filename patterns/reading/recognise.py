"""Recognising the operator that a value belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from tvm import relax

from byoc_dory.errors import IntegerFormError
from patterns.composed_op import ComposedOp
from patterns.match import Match, find
from patterns.ops import classes
from patterns.primitive import kind_of, parameters_of
from patterns.primitive_op import read_primitive
from patterns.reading.kinds import calls, primitives

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Var

    from patterns.op import Op

__all__ = ["compositions", "has_pattern", "recognised"]

_ENDS = ("relax.astype", "relax.add")
"""Name of the operation or the PrimFunc of a composition's last call."""


@cache
def compositions() -> tuple[tuple[type[ComposedOp], Match], ...]:
    """Return every pattern of operators with several calls, those with a single form first."""
    found = [(cls, cls.matches()) for cls in classes() if issubclass(cls, ComposedOp)]
    found.sort(key=lambda entry: len(entry[1]))
    return tuple((cls, match) for cls, matches in found for match in matches)


def has_pattern(op: Op) -> bool:
    """Whether a pattern finds such operators in a module; what is one call needs none."""
    known = {cls for cls, _ in compositions()}
    return not isinstance(op, ComposedOp) or (type(op).form or type(op)) in known


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
        if (call := calls().get(operation)) is not None:
            return call.read(value)
        if (written := primitives().get(kind_of(module, value) or "")) is not None:
            return read_primitive(written, parameters_of(module, value), value)
        for cls, match in compositions() if operation in _ENDS else ():
            slots = find(match, value, values)
            if slots is not None:
                return cls.read(slots)
    raise IntegerFormError(
        "not an operator of the integer form",
        where=f"value '{_brief(value)}'",
        hint="write operators with the classes of the package 'patterns'",
    )


def _brief(value: Any) -> str:
    if isinstance(value, relax.Call):
        return str(getattr(value.op, "name", getattr(value.op, "name_hint", value.op)))
    return type(value).__name__
