"""`ComposedOp`: an operator that consists of several Relax calls, found by a pattern."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from patterns.match import Match
from patterns.op import Op

if TYPE_CHECKING:
    from tvm.relax import Expr


@dataclass(frozen=True, eq=False)
class ComposedOp(Op):
    """Base of operators written as several calls; the class has the patterns that match them.

    Attributes:
        form: class whose patterns match it, if it has none of its own.
    """

    form: ClassVar[type[ComposedOp] | None] = None

    @classmethod
    @abstractmethod
    def matches(cls) -> tuple[Match, ...]:
        """Return the patterns of the forms that the operator may have."""

    @classmethod
    @abstractmethod
    def read(cls, slots: Mapping[str, Expr]) -> Op:
        """Return the operator matched, which may be of another class with the same form.

        Args:
            slots: the parts found by a pattern of `matches`, by name.

        Raises:
            IntegerFormError: its parameters are not allowed in the integer form.
        """


def compositions(classes: Iterable[type[Op]]) -> tuple[tuple[type[ComposedOp], Match], ...]:
    """Return every pattern that finds operators of these classes, those with a single form first.

    Operators that are one call need none.
    """
    forms = {cls.form or cls for cls in classes if issubclass(cls, ComposedOp)}
    ordered = sorted(forms, key=lambda cls: f"{cls.__module__}.{cls.__name__}")
    found = sorted(((cls, cls.matches()) for cls in ordered), key=lambda entry: len(entry[1]))
    return tuple((cls, match) for cls, matches in found for match in matches)
