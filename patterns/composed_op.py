"""`ComposedOp`: an operator that consists of several of Relax's calls, found by a pattern."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patterns.match import Match
from patterns.op import Op

if TYPE_CHECKING:
    from tvm.relax import Expr

__all__ = ["ComposedOp"]


@dataclass(frozen=True, eq=False)
class ComposedOp(Op):
    """Base of operators that are written as a composition: what is written is what is matched."""

    @classmethod
    @abstractmethod
    def matches(cls) -> tuple[Match, ...]:
        """What the operator may look like."""

    @classmethod
    @abstractmethod
    def read(cls, slots: Mapping[str, Expr]) -> Op:
        """The operator that was matched, which may be of a class that looks alike.

        Args:
            slots: the parts that a pattern of `matches` found, by name.

        Raises:
            IntegerFormError: if its parameters are none of the integer form's.
        """
