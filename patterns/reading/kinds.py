"""Which operator each PrimFunc is, collected from the files that write them.

To add an operator that is a PrimFunc, give its file a table ``PRIMITIVES`` (kind of the PrimFunc ->
kind of the operator) and enter the file in `_FILES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from byoc_dory.errors import IntegerFormError
from patterns.call_op import CallOp
from patterns.ops import classes, integer, rescale
from patterns.ops.pulp import activation as integer_activation
from patterns.ops.pulp import ita
from patterns.ops.pulp import norm as integer_norm
from patterns.ops.pulp import softmax as integer_softmax
from patterns.primitive_op import PrimitiveOp

__all__ = ["PRIMITIVES", "calls", "primitives"]

_Class = TypeVar("_Class")

_FILES: tuple[Mapping[str, str], ...] = (
    integer.PRIMITIVES,
    integer_activation.PRIMITIVES,
    integer_norm.PRIMITIVES,
    integer_softmax.PRIMITIVES,
    ita.PRIMITIVES,
    rescale.PRIMITIVES,
)
PRIMITIVES: Mapping[str, str] = {
    **{kind: operator for table in _FILES for kind, operator in table.items()},
}
"""Kind of a PrimFunc (``htvm.kind``) -> kind of the operator it ends."""


@cache
def primitives() -> Mapping[str, type[PrimitiveOp]]:
    """The classes of operators that are PrimFuncs, by the PrimFunc's kind.

    Raises:
        IntegerFormError: if two classes write PrimFuncs of one kind.
    """
    return _by_name((cls.tag or cls.kind, cls) for cls in _derived(PrimitiveOp))


@cache
def calls() -> Mapping[str, type[CallOp]]:
    """The classes of operators that are calls of Relax's own, by the name of what they call.

    Raises:
        IntegerFormError: if two classes call the same.
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
