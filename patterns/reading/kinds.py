"""Lookup of operator classes by the names of PrimFuncs and Relax operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from byoc_dory.errors import IntegerFormError
from patterns.call_op import CallOp
from patterns.ops import classes
from patterns.primitive_op import PrimitiveOp

__all__ = ["calls", "primitive_kinds", "primitives"]

_Class = TypeVar("_Class")


@cache
def primitives() -> Mapping[str, type[PrimitiveOp]]:
    """Return the classes of operators that are PrimFuncs, by the PrimFunc's kind.

    Raises:
        IntegerFormError: two classes write PrimFuncs of the same kind.
    """
    return _by_name((cls.tag or cls.kind, cls) for cls in _derived(PrimitiveOp))


@cache
def primitive_kinds() -> frozenset[str]:
    """Return the kinds of operators that end in a PrimFunc."""
    return frozenset(cls.kind for cls in primitives().values())


@cache
def calls() -> Mapping[str, type[CallOp]]:
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
