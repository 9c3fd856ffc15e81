"""`Rewrite`: the base of exact rewrites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from htvm.rewriting.filters import Filter, Rewritten


@dataclass(frozen=True)
class Rewrite(ABC):
    """A way to compute a convolution by other operators, with the same result for every input.

    Attributes:
        name: name in tests and messages.
        early: whether it applies before retargeting, because retargeting has no form of the
            layer; otherwise it applies to retargeted layers, whose numbers it does not change.
    """

    name: ClassVar[str]
    early: ClassVar[bool] = False

    @abstractmethod
    def of(self, it: Filter) -> Rewritten | None:
        """Return what replaces a convolution; ``None`` if the rewrite does not apply to it."""
