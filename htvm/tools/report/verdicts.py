"""Where each operator runs, why not elsewhere, and which changes would help: the answers.

Estimated times are in cycles of the SoC's clock; unknown values are ``None``, never zero.
`htvm.tools.report.explain` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.verdict import OperatorVerdict
from htvm.tools.report.table import count

if TYPE_CHECKING:
    from byoc_dory.cost import Basis

PLAIN = "TVM's plain C"
"""How `VerdictRow.kernel` begins if no schedule is for an operator."""


@dataclass(frozen=True)
class VerdictRow:
    """The place where one operator runs, and the reasons.

    Attributes:
        layer: layer name.
        op: operator.
        placed: the accelerator that runs it, or "cpu".
        offers: the answers of the SoC's accelerators, one per accelerator.
        cpu_cycles: estimated cycles on one core of the CPU; None if unknown.
        shape: sizes as text.
        source: name in the source file; empty if it has no name there.
        cycles: of the operator where it runs in this build, conversions of layouts not counted;
            None if unknown, or if it has no code of its own.
        basis: as for `StepCost`: "predicted", "measured" or "estimated"; empty without cycles.
        rewritten: what is computed instead, with the same result; empty if nothing is.
        kernel: how its loops on the CPU were made; empty if it needs none, or runs elsewhere.
    """

    layer: str
    op: str
    placed: str
    offers: tuple[OperatorVerdict, ...] = ()
    cpu_cycles: int | None = None
    shape: str = ""
    source: str = ""
    cycles: int | None = None
    basis: str = ""
    rewritten: str = ""
    kernel: str = ""


@dataclass(frozen=True)
class StepCost:
    """What one step of the entry function costs.

    Attributes:
        layers: names of its layers.
        runs_on: the accelerator that it belongs to, or "cpu".
        kind: "layer" and "cpu" compute; "prologue" and "epilogue" convert layouts; "copy" copies.
        cycles: its cycles (on Cortex-M cores: instructions); None if unknown.
        basis: "predicted" by an accelerator's cost model; "measured", the CPU's own code in the
            simulator; or "estimated" from sizes, where it could not be measured.
    """

    layers: tuple[str, ...]
    runs_on: str
    kind: str
    cycles: int | None
    basis: Basis


@dataclass(frozen=True)
class Improvement:
    """A change to the model, and what the cost model says it would gain.

    Attributes:
        layers: names of the layers to change; layers of the same geometry are changed together.
        change: the change, as an imperative phrase.
        gain: cycles saved over all these layers.
        before, after: cycles of these layers without and with the change, ``gain`` apart.
        runs_on: the core they run on now.
        would_run_on: the core they would run on.
        note: side effects of the change.
        counted: what is saved: "cycles", or "instructions" on cores whose cycles are not simulated.
    """

    layers: tuple[str, ...]
    change: str
    gain: int
    before: int
    after: int
    runs_on: str
    would_run_on: str
    note: str = ""
    counted: str = "cycles"

    @property
    def sentence(self) -> str:
        """The layers, the change, and its predicted gain."""
        return self._said(", ".join(self.layers))

    @property
    def short(self) -> str:
        """The same with at most two layers by name."""
        first, *others = self.layers
        if len(others) < 2:
            return self.sentence
        return self._said(f"{first} and {len(others)} more")

    def _said(self, names: str) -> str:
        return f"{names}: {self.change}: -{count(self.gain)} {self.counted} (predicted)"


@dataclass(frozen=True)
class RuleCost:
    """A rule that objected to operators of a network.

    Attributes:
        accelerator: whose rule it is.
        rule: the rule in a sentence.
        operators: number of operators on the CPU that it refused; operators that another
            accelerator took do not count.
        cycles: what these operators cost where they run; unknown costs count as none.
    """

    accelerator: str
    rule: str
    operators: int
    cycles: int


def rule_costs(rows: Sequence[VerdictRow]) -> tuple[RuleCost, ...]:
    """Return all rules that objected, those that keep most cycles on the CPU first."""
    rows_by_rule: dict[tuple[str, str], list[VerdictRow]] = {}
    for row in rows:
        for offer in row.offers:
            if not offer.accepted and offer.rule:
                rows_by_rule.setdefault((offer.accelerator, offer.rule), []).append(row)
    costs = [
        RuleCost(accelerator, rule, len(kept), sum(row.cycles or 0 for row in kept))
        for (accelerator, rule), refused in rows_by_rule.items()
        for kept in [[row for row in refused if row.placed == "cpu"]]
    ]
    return tuple(sorted(costs, key=lambda cost: -cost.cycles))


_LOSS_DB = 3.0
"""A loss of SQNR that is called a warning: half the signal's share of the noise."""


@dataclass(frozen=True)
class Numbers:
    """How a build's numbers agree with the source's.

    Attributes:
        sqnr_db: at the output, in dB; None if the numbers are the source's.
        agreement: fraction of the inputs with the same decision, 0 to 1; None without decisions.
    """

    sqnr_db: float | None = None
    agreement: float | None = None

    def __str__(self) -> str:
        """Return them in words."""
        if self.sqnr_db is None:
            return "the source's numbers"
        same = "" if self.agreement is None else f", same decision {100 * self.agreement:.1f} %"
        return f"SQNR {self.sqnr_db:.1f} dB{same}"


@dataclass(frozen=True)
class Setting:
    """A setting that was tried, and is quicker.

    Attributes:
        option: as it is typed, e.g. ``--policy latency``.
        before, after: predicted cycles of the network without and with it.
        moved: layers that run elsewhere with it.
        numbers, changed: accuracy without and with it, on the same inputs.
    """

    option: str
    before: int
    after: int
    moved: tuple[str, ...]
    numbers: Numbers
    changed: Numbers

    @property
    def gain(self) -> int:
        """Cycles saved."""
        return self.before - self.after

    @property
    def same(self) -> bool:
        """Whether the measured accuracy is the same."""
        return self.numbers == self.changed

    @property
    def loses(self) -> bool:
        """Whether it loses so much accuracy that it needs a warning."""
        if self.changed.sqnr_db is None:
            return False
        return self.numbers.sqnr_db is None or (
            self.numbers.sqnr_db - self.changed.sqnr_db >= _LOSS_DB
        )

    @property
    def sentence(self) -> str:
        """What it gains, and what it costs."""
        share = 100 * self.gain / self.before
        gains = f"-{count(self.gain)} cycles ({share:.1f} % of all), "
        gains += f"{count(self.before)} -> {count(self.after)}"
        if self.same:
            return f"{self.option}: {gains}; {self.changed}, as now"
        warning = "LOSES ACCURACY: " if self.loses else ""
        return f"{self.option}: {gains}; {warning}{self.changed}, now {self.numbers}"

    @property
    def short(self) -> str:
        """The same on one line of a terminal."""
        gains = f"-{count(self.gain)} cycles ({100 * self.gain / self.before:.1f} %)"
        if self.same:
            return f"{self.option}: {gains}, the same accuracy"
        sqnr = "the source's numbers"
        if self.changed.sqnr_db is not None:
            sqnr = f"SQNR {self.changed.sqnr_db:.1f} dB"
        return f"{self.option}: {gains}, {'LOSES ACCURACY: ' if self.loses else ''}{sqnr}"


_NAMED = 6  # layers whose names are said


def settings_text(settings: tuple[Setting, ...]) -> str:
    """Return the settings that are quicker, one line each with the layers it moves; "" if none."""
    if not settings:
        return ""
    lines = ["settings that are quicker, each tried:"]
    for each in settings:
        names = ", ".join(each.moved[:_NAMED])
        more = f" and {len(each.moved) - _NAMED} more" if len(each.moved) > _NAMED else ""
        lines.append(f"  {each.sentence}; moves {names}{more}")
    return "\n".join(lines)
