"""The axis that the steps of a run lie on: cycles, else instructions, else their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from htvm.tools.plots.lanes import Span


class Step(Protocol):
    """A step of a program, with what was counted of it."""

    @property
    def start(self) -> int | None:
        """First cycle, from the entry function's call."""

    @property
    def cycles(self) -> int | None:
        """Cycles that it took."""

    @property
    def instructions(self) -> int | None:
        """Instructions that it took."""


@dataclass(frozen=True)
class StepAxis:
    """An axis.

    Attributes:
        unit: "cycles", "instructions" or "steps".
        length: its length in its unit.
        spans: the interval of each step on it.
    """

    unit: str
    length: int
    spans: tuple[Span, ...]


def step_axis(steps: Sequence[Step], cycles: int | None, instructions: int | None) -> StepAxis:
    """Return the axis of a run's steps.

    Args:
        steps: the steps, in execution order.
        cycles, instructions: of the whole run, if counted.
    """
    if cycles:
        timed = ((step.start or 0, step.cycles or 0) for step in steps)
        return StepAxis("cycles", cycles, tuple((first, first + took) for first, took in timed))
    if instructions:
        # One after another; what is left at the end is the entry function's own.
        ends = list(accumulate(step.instructions or 0 for step in steps))
        length = max(instructions, *ends)
        return StepAxis("instructions", length, tuple(zip([0, *ends], ends, strict=False)))
    spans = tuple((index, index + 1) for index in range(len(steps)))
    return StepAxis("steps", max(1, len(steps)), spans)
