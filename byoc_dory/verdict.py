"""Verdicts: may this layer run on that accelerator, and if not, why not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Accepted", "OperatorVerdict", "Refused", "Verdict", "statement"]


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
        rule: public statement of the rule that objects (filled in by `byoc_dory.soc.base.judge`).
    """

    reason: str
    rule: str = ""

    def __bool__(self) -> bool:
        return False


Verdict: TypeAlias = Accepted | Refused


@dataclass(frozen=True)
class OperatorVerdict:
    """What an accelerator says to an operator, or to a layer of several.

    Attributes:
        accelerator: its name.
        accepted: whether the operator may run there.
        reason: if not, one sentence with the offending value; if it does as a part of a layer,
            which one.
        rule: public statement of the rule that objects; empty where no pattern matches.
        cycles: estimated cycles there; ``None`` if refused, unknown or not asked for.
        layer: the operator's name.
        kind: conv2d, depthwise, dense, add, softmax, ...
    """

    accelerator: str
    accepted: bool
    reason: str = ""
    rule: str = ""
    cycles: int | None = None
    layer: str = ""
    kind: str = ""


def statement(rule: Callable[..., Verdict]) -> str:
    """The rule as the public reads it: the first line of its docstring."""
    return (inspect.getdoc(rule) or str(getattr(rule, "__name__", "a rule"))).splitlines()[0]
