"""Verdicts: whether a layer may run on an accelerator, and if not, why not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

CPU = "cpu"
"""Place of an operator that no accelerator takes, and name of the candidate that takes all."""


@dataclass(frozen=True)
class Accepted:
    """The rule has no objection."""

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True)
class Refused:
    """The rule objects to the layer.

    Attributes:
        reason: one sentence with the offending value.
        rule: identifier and public statement of the rule that objects (filled in by
            `byoc_dory.soc.base.Accelerator.judge`).
    """

    reason: str
    rule: str = ""

    def __bool__(self) -> bool:
        return False


Verdict: TypeAlias = Accepted | Refused


@dataclass(frozen=True)
class OperatorVerdict:
    """An accelerator's answer for an operator, or for a layer of several operators.

    Attributes:
        accelerator: name of the accelerator.
        accepted: whether the operator may run there.
        reason: if not, one sentence with the offending value; if it may run as a part of a layer,
            that layer.
        rule: identifier and public statement of the rule that objects, such as "DIGITAL-4: The
            stride is 1x1 or 2x2."; a statement alone for the tiler's objection; empty if no
            pattern matches.
        cycles: estimated cycles there; ``None`` if refused, unknown or not needed.
        layer: name of the operator.
        kind: conv2d, depthwise, dense, add, softmax, ...
    """

    accelerator: str
    accepted: bool
    reason: str = ""
    rule: str = ""
    cycles: int | None = None
    layer: str = ""
    kind: str = ""

    @property
    def objection(self) -> str:
        """The reason, with the identifier of the rule where one objects."""
        identifier = self.rule.partition(": ")[0]
        numbered = identifier.rpartition("-")[2].isdigit()
        return f"{self.reason} ({identifier})" if numbered else self.reason


def statement(rule: Callable[..., object]) -> str:
    """Return the public statement of a rule or policy: the first line of its docstring."""
    return (inspect.getdoc(rule) or str(getattr(rule, "__name__", "a rule"))).splitlines()[0]
