"""What is said about where operators run: plain frozen values, drawn by `explain`.

Estimated times are in cycles of the SoC's clock; what is not known is ``None``, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Explanation",
    "Improvement",
    "Offer",
    "VerdictRow",
]


@dataclass(frozen=True)
class Offer:
    """What one accelerator said to one operator.

    Attributes:
        accelerator: short name.
        accepted: whether every rule is met.
        reason: the first objection in words; empty if accepted.
        rule: public statement of the rule that objects; empty if accepted, or if no pattern
            of this accelerator matches at all.
        cycles: estimated cycles there; None if refused or unknown.
    """

    accelerator: str
    accepted: bool
    reason: str = ""
    rule: str = ""
    cycles: int | None = None


@dataclass(frozen=True)
class VerdictRow:
    """Where one operator runs, and why.

    Attributes:
        layer: layer name.
        op: operator.
        placed: accelerator it runs on, or "cpu".
        offers: one per accelerator of the SoC.
        cpu_cycles: estimated cycles on the CPU; None if unknown.
        shape: sizes in words.
        source: name in the source file; empty if it has none.
    """

    layer: str
    op: str
    placed: str
    offers: tuple[Offer, ...] = ()
    cpu_cycles: int | None = None
    shape: str = ""
    source: str = ""


@dataclass(frozen=True)
class Improvement:
    """A change to the model and what it would gain, as the cost model says.

    Attributes:
        layers: whose change it is; several of one geometry are changed together.
        change: in the imperative.
        gain: cycles of all these layers together.
        before, after: their cycles as they are and as they would be, ``gain`` apart.
        runs_on: where they run.
        would_run_on: where they would run.
        note: what else changes with it.
    """

    layers: tuple[str, ...]
    change: str
    gain: int
    before: int
    after: int
    runs_on: str
    would_run_on: str
    note: str = ""


@dataclass(frozen=True, repr=False)
class Explanation:
    """Everything `Module.explain()` shows.

    Attributes:
        rows: one per operator, in execution order.
        improvements: the changes to the model that would gain most, the best first.
        total_cycles: predicted for the whole model as it is; None if a part is not known.
    """

    rows: tuple[VerdictRow, ...]
    improvements: tuple[Improvement, ...] = ()
    total_cycles: int | None = None

    def __str__(self) -> str:
        """The verdicts as text."""
        from htvm.report.explain import explain_text

        return explain_text(self)

    __repr__ = __str__
