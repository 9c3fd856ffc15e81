"""Verdicts: may this layer run on that accelerator, and if not, why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from byoc_dory.layers.layer import Layer
    from byoc_dory.soc.base import Soc

__all__ = ["Accepted", "Refused", "Rule", "Verdict", "judge", "statement"]


@dataclass(frozen=True)
class Accepted:
    """The rule has no objection."""

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True)
class Refused:
    """The rule objects.

    Attributes:
        reason: one sentence with the offending value.
        rule: public statement of the rule that objects (filled in by `judge`).
    """

    reason: str
    rule: str = ""

    def __bool__(self) -> bool:
        return False


Verdict: TypeAlias = Accepted | Refused


class Rule(Protocol):
    """A small function whose docstring is the public statement of what the accelerator takes."""

    __name__: str
    __doc__: str | None

    def __call__(self, layer: Layer, core: Any, soc: Soc, /) -> Verdict:
        """Judge one layer for the accelerator ``core`` of ``soc``."""
        ...


def statement(rule: Rule) -> str:
    """The rule as the public reads it: the first line of its docstring."""
    return (rule.__doc__ or rule.__name__).strip().splitlines()[0]


def judge(layer: Layer, core: Any, soc: Soc, rules: tuple[Rule, ...]) -> Verdict:
    """The first objection of the accelerator's rules in order, or acceptance."""
    for rule in rules:
        verdict = rule(layer, core, soc)
        if isinstance(verdict, Refused):
            return Refused(verdict.reason, statement(rule))
    return Accepted()
