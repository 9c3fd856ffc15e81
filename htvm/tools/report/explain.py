"""`Explanation`: where each operator runs and why, as text, figures, and data for JSON."""

from __future__ import annotations

import dataclasses
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from byoc_dory.verdict import OperatorVerdict
from htvm.errors import InputError
from htvm.shown import Shown
from htvm.tools.plots.bars import Bar, bar_figure
from htvm.tools.plots.colours import unit_classes
from htvm.tools.report.table import Column, Table, count, short_source, table_of, text
from htvm.tools.report.verdicts import (
    PLAIN,
    Improvement,
    RuleCost,
    Setting,
    StepCost,
    VerdictRow,
    rule_costs,
    settings_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_TEXT = 80  # characters per line of an explanation as text, outside of a terminal


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """Everything that `Module.explain()` shows.

    Attributes:
        rows: one per operator, in execution order.
        improvements: the changes to the model that would gain most, the best first.
        total_cycles: cycles of the unchanged model, those of its steps; None if one is unknown.
        steps: the cost of each step of the program, in execution order.
        missing: why the CPU's steps are only estimated; empty if they were measured.
        counted: "cycles", or "instructions" on cores whose cycles are not simulated.
        settings: settings that were tried and are quicker.
        clips: a sentence for each operator that clips a layer on the CPU, and why it has to.
        in_turn: why layers are computed one after another, of each region in which they are.
        state: where the inputs are that the caller keeps between runs, and why; empty without any.
    """

    rows: tuple[VerdictRow, ...]
    improvements: tuple[Improvement, ...] = ()
    total_cycles: int | None = None
    steps: tuple[StepCost, ...] = ()
    missing: str = ""
    counted: str = "cycles"
    settings: tuple[Setting, ...] = ()
    state: str = ""
    clips: tuple[str, ...] = ()
    in_turn: tuple[str, ...] = ()

    def _rows(self) -> tuple[object, ...]:
        return self.rows

    @property
    def totals(self) -> dict[str, int | None]:
        """What all steps take, by what it is counted in; None if a step's is unknown.

        Accelerators' cycles and the instructions of a core beside them are no sum.
        """
        kinds = {self.unit_of(step.kind == "layer") for step in self.steps}
        if len(kinds) < 2:
            return {kind: self.total_cycles for kind in kinds or {self.counted}}
        found: dict[str, int | None] = {}
        for kind in ("cycles", self.counted):
            each = [s.cycles for s in self.steps if self.unit_of(s.kind == "layer") == kind]
            found[kind] = None if None in each else sum(cycles or 0 for cycles in each)
        return found

    def unit_of(self, accelerated: bool) -> str:
        """Return what a step's cost is counted in; accelerators' are always cycles."""
        return "cycles" if accelerated else self.counted

    @property
    def rules(self) -> tuple[RuleCost, ...]:
        """The rules that objected, and what each costs: for those who design an accelerator."""
        return rule_costs(self.rows)

    def __str__(self) -> str:
        """Return the costs, the answers and the changes as text."""
        return explain_text(self, _TEXT)

    def __repr__(self) -> str:
        """Return the text without its table."""
        return explain_screen(self, _TEXT)

    def plot_units(self) -> Figure:
        """Plot the cycles (on Cortex-M cores: instructions) that each unit takes.

        Conversions of layouts and copies count as the CPU's.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: the costs of all steps are unknown.
        """
        spent: Counter[str] = Counter()
        for step in self.steps:
            spent[step.runs_on if step.kind in ("layer", "cpu") else "cpu"] += step.cycles or 0
        whole = spent.total()
        if not whole:
            raise _unknown("units")
        classes = self._unit_classes()
        bars = [
            Bar(unit, cycles, f"{cycles:,} ({100 * cycles / whole:.1f} %)", classes[unit])
            for unit, cycles in spent.most_common()
        ]
        return bar_figure(f"{whole:,} {self.counted} by unit", bars, self.counted)

    def plot_layers(self, most: int = 20) -> Figure:
        """Plot the layers that take longest, in the colours of the units that run them.

        Args:
            most: largest number of layers.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: the costs of all layers are unknown.
        """
        rows = sorted(self.rows, key=lambda row: -(row.cycles or 0))[:most]
        known = [row for row in rows if row.cycles]
        if not known:
            raise _unknown("layers")
        classes = self._unit_classes()
        bars = [
            Bar(row.layer, row.cycles, f"{row.cycles:,}, {row.basis}", classes[row.placed])
            for row in known
        ]
        keys = {classes[unit]: unit for unit in dict.fromkeys(row.placed for row in known)}
        title = f"the layers that take most {self.counted}"
        return bar_figure(title, bars, self.counted, keys=keys)

    def _unit_classes(self) -> dict[str, str]:
        """Map the SoC's units, the accelerators first, to the classes of their colours."""
        asked = [offer.accelerator for row in self.rows for offer in row.offers]
        placed = [row.placed for row in self.rows]
        return unit_classes([*asked, *placed, *(step.runs_on for step in self.steps), "cpu"])


def _answer_of(accelerator: str) -> Callable[[VerdictRow], str]:
    """Return what tells an accelerator's answers as the text of one cell."""

    def answer(row: VerdictRow) -> str:
        said = [_says(offer) for offer in row.offers if offer.accelerator == accelerator]
        return said[-1] if said else "not asked"

    return answer


def _says(offer: OperatorVerdict) -> str:
    if offer.accepted:
        return "yes" if offer.cycles is None else f"yes, {count(offer.cycles)} cycles"
    return f"no: {offer.objection}"


def verdict_table(rows: Sequence[VerdictRow]) -> Table:
    """Return one row per operator, and one column per accelerator that answered.

    Without accelerators there is a column for the kernel instead.
    """
    asked = dict.fromkeys(offer.accelerator for row in rows for offer in row.offers)
    answers = [(Column(f"{name} alone?"), _answer_of(name)) for name in asked]
    return table_of(
        rows,
        (Column("layer"), lambda row: row.layer),
        (Column("op"), lambda row: row.op),
        (Column("shape"), lambda row: row.shape),
        (Column("runs on"), lambda row: row.placed),
        (Column("cycles", number=True), lambda row: row.cycles),
        (Column("basis"), lambda row: row.basis),
        (Column("est. on one CPU core", number=True), lambda row: row.cpu_cycles),
        *(answers or [(Column("kernel"), lambda row: row.kernel)]),
        (Column("source"), lambda row: short_source(row.source)),
    )


def explain_text(explanation: Explanation, width: int | None = None) -> str:
    """Return the table of operators, the rules that objected, and the changes that gain most.

    Args:
        explanation: the explanation.
        width: characters per line: the most important columns, and reasons wrapped; by default
            all columns, in lines as long as they need.
    """
    wide, rows = width is None, explanation.rows
    table = text(verdict_table(rows) if wide else cost_table(explanation), width) if rows else ""
    parts = (
        _placement_text(explanation), table, _legend(explanation, wide), _rewritten(rows),
        _plain_rows(rows), _objections(explanation) if wide else "",
        settings_text(explanation.settings), _clips(explanation), explanation.state,
        _in_turn(explanation), _gains(explanation),
    )  # fmt: skip
    return _joined_parts(parts, width)


def _plain_rows(rows: Sequence[VerdictRow]) -> str:
    """Return which operators run as TVM's own loops, on a core without accelerators."""
    names = [row.layer for row in rows if row.kernel.startswith(PLAIN) and not row.offers]
    return f"no kernel of their own, {PLAIN}: {', '.join(names)}" if names else ""


def explain_screen(explanation: Explanation, width: int = 80) -> str:
    """Return `explain_text` without its table, in lines of ``width`` characters."""
    parts = (
        _placement_text(explanation), _rewritten(explanation.rows), _objections(explanation),
        settings_text(explanation.settings), _clips(explanation), explanation.state,
        _in_turn(explanation), _gains(explanation),
    )  # fmt: skip
    return _joined_parts(parts, width)


def cost_table(explanation: Explanation) -> Table:
    """Return one row per operator with code: where it runs, its cost there, why not elsewhere."""
    totals = explanation.totals
    columns = (
        Column("layer"),
        Column("runs on"),
        *(Column(unit, number=True) for unit in totals),
        Column("%", number=True),
        Column("elsewhere", wraps=True),
    )

    def costs(cycles: int | None, basis: str, own: str) -> tuple[str, ...]:
        mark = _MARKS.get(basis, "")
        known = "" if cycles is None else f"{count(cycles)}{mark}"
        share = _share_text(cycles, totals.get(own))
        return (*(known if unit == own else "" for unit in totals), share)

    rows = []
    for row in explanation.rows:
        if _is_part(row, explanation):
            continue
        cost = costs(row.cycles, row.basis, explanation.unit_of(row.placed != "cpu"))
        rows.append((row.layer, row.placed, *cost, _elsewhere(row)))
    moved = [step for step in explanation.steps if step.kind not in ("layer", "cpu")]
    if any(step.cycles for step in moved):
        taken = sum(step.cycles or 0 for step in moved)
        cost = costs(taken, moved[0].basis, explanation.counted)
        rows.append(("layouts, copies", "cpu", *cost, ""))
    whole = ("unknown " if total is None else f"{count(total)} " for total in totals.values())
    return Table(columns, tuple(rows), footer=("total", "", *whole, "", ""))


def _is_part(row: VerdictRow, explanation: Explanation) -> bool:
    """Whether an operator has no code of its own: a reshape, or a part of another layer."""
    return bool(explanation.steps) and row.cycles is None and not row.basis


_BASES = {
    "predicted": "predicted by the accelerator's cost model",
    "measured": "measured: the CPU's own code, simulated apart",
    "estimated": "estimated from sizes",
}
# The padding keeps the digits of all bases below each other.
_MARKS = {"measured": "*", "estimated": "?", "predicted": " "}


def _share_text(cycles: int | None, total: int | None) -> str:
    return f"{100 * cycles / total:.1f}" if cycles and total else ""


def _elsewhere(row: VerdictRow) -> str:
    """Return what other accelerators would take, and for the CPU's layers why they cannot."""
    others = [offer for offer in row.offers if offer.accelerator != row.placed]
    said = [
        f"{offer.accelerator}: {count(offer.cycles)} alone"
        for offer in others
        if offer.accepted and offer.cycles is not None
    ]
    refused = [offer for offer in others if not offer.accepted] if row.placed == "cpu" else []
    reasons: dict[str, list[str]] = {}
    for offer in refused:
        reasons.setdefault(offer.objection, []).append(offer.accelerator)
    said += [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return "; ".join(said)


def _legend(explanation: Explanation, wide: bool) -> str:
    """Return what the numbers are based on."""
    used = {row.basis for row in explanation.rows} | {step.basis for step in explanation.steps}
    explanations = [
        f"{'' if wide else _MARKS[basis].strip()} {words}".strip()
        for basis, words in _BASES.items()
        if basis in used
    ]
    parts = sum(_is_part(row, explanation) for row in explanation.rows)
    lines = (
        f"{', '.join(explanation.totals)}: {'; '.join(explanations)}" if explanations else "",
        _QUICKER_ALONE if any(map(_is_quicker_alone, explanation.rows)) else "",
        f"not shown: {parts} without code of their own (names, parts of others): --wide"
        if parts and not wide
        else "",
        f"not measured: {explanation.missing}" if explanation.missing else "",
    )
    return "\n".join(line for line in lines if line)


_QUICKER_ALONE = (
    "a core that is quicker alone was not chosen: the policy goes by the bits of the weights, "
    "which keeps accuracy, or the way there costs more than it gains; --policy latency goes by "
    "cycles"
)


def _is_quicker_alone(row: VerdictRow) -> bool:
    """Whether an accelerator that would take the layer needs fewer cycles than its own."""
    own = row.cycles
    return own is not None and any(
        offer.accelerator != row.placed and offer.accepted and (offer.cycles or own) < own
        for offer in row.offers
    )


def _joined_parts(parts: Iterable[str], width: int | None) -> str:
    """Return the parts that say something, with their lines wrapped to a width if there is one."""
    texts = [part for part in parts if part]
    if width is not None:
        texts = [
            "\n".join(
                piece
                for line in part.split("\n")
                for piece in textwrap.wrap(line, width, subsequent_indent="    ") or [""]
            )
            for part in texts
        ]
    return "\n\n".join(texts)


def _placement_text(explanation: Explanation) -> str:
    """Return how many operators run on each unit, and what all take."""
    rows = explanation.rows
    placed = Counter(row.placed for row in rows)
    counts = ", ".join(f"{number} on {name}" for name, number in placed.items())
    known = [(number, unit) for unit, number in explanation.totals.items() if number is not None]
    total = "; " + " and ".join(f"{count(each)} {unit}" for each, unit in known) if known else ""
    # A run beside it counts slightly others.
    if total and any(step.basis == "predicted" for step in explanation.steps):
        total += " (predicted)"
    return f"{len(rows)} operators: {counts}{total}" if rows else "no operators"


def _rewritten(rows: Sequence[VerdictRow]) -> str:
    """Return the layers that are computed by other operators."""
    lines = [f"  {row.layer}: {row.rewritten}" for row in rows if row.rewritten]
    title = "computed otherwise, with the same results (--rewrites off leaves it):"
    return "\n".join([title, *lines]) if lines else ""


def _in_turn(explanation: Explanation) -> str:
    """Return why no layers are computed at once."""
    title = "accelerators compute their layers one after another:"
    lines = [f"  {sentence}" for sentence in explanation.in_turn]
    return "\n".join([title, *lines]) if lines else ""


def _clips(explanation: Explanation) -> str:
    """Return which activations are clipped apart from their layers."""
    title = "clipped by operators of their own, so that no bound of the source is lost:"
    return (
        "\n".join([title, *(f"  {sentence}" for sentence in explanation.clips)])
        if explanation.clips
        else ""
    )


def _gains(explanation: Explanation) -> str:
    """Return the changes that would gain most."""
    lines = [_gain_text(entry, explanation.total_cycles) for entry in explanation.improvements]
    return "\n".join([_GAINS, *lines]) if lines else ""


_GAINS = (
    "changes to the model that would gain most, by the cost model (what is learned may change, "
    "too: train again):"
)


def _gain_text(entry: Improvement, total: int | None) -> str:
    """Return a change as one line."""
    share = "" if not total else f" ({100 * entry.gain / total:.1f} % of all)"
    where = "" if entry.runs_on == entry.would_run_on else f", runs on {entry.would_run_on}"
    note = f"; {entry.note}" if entry.note else ""
    return (
        f"  {', '.join(entry.layers)}: {entry.change}: "
        f"-{count(entry.gain)} {entry.counted}{share}, "
        f"{count(entry.before)} -> {count(entry.after)}{where}{note}"
    )


def explain_data(explanation: Explanation) -> dict[str, Any]:
    """Return everything for JSON: ``operators``, ``improvements``, ``steps``, their total."""
    return {
        "operators": [
            {**dataclasses.asdict(row), "offers": [_offer_data(entry) for entry in row.offers]}
            for row in explanation.rows
        ],
        "improvements": [dataclasses.asdict(entry) for entry in explanation.improvements],
        "settings": [
            {**dataclasses.asdict(each), "same_accuracy": each.same, "loses": each.loses}
            for each in explanation.settings
        ],
        "total_cycles": explanation.total_cycles,
        "totals": explanation.totals,
        "counted": explanation.counted,
        "steps": [dataclasses.asdict(step) for step in explanation.steps],
        "not_measured": explanation.missing,
        "state": explanation.state,
        "clips": list(explanation.clips),
        "in_turn": list(explanation.in_turn),
        "rules": [dataclasses.asdict(cost) for cost in explanation.rules],
    }


def _offer_data(offer: OperatorVerdict) -> dict[str, Any]:
    """Return a verdict without the fields that its row already has."""
    fields = ("accelerator", "accepted", "reason", "rule", "cycles")
    return {name: getattr(offer, name) for name in fields}


def _objections(explanation: Explanation) -> str:
    """Return the rules that objected, each with what it costs; empty if none did."""
    lines = []
    for cost in explanation.rules:
        several = "operator" if cost.operators == 1 else "operators"
        said = f"{cost.operators} {several}, {count(cost.cycles)} cycles"
        kept = said if cost.operators else "nothing"
        lines.append(f"  {cost.accelerator}: {cost.rule} {kept}")
    title = "rules that objected, and what runs on the CPU for it:"
    return "\n".join([title, *lines]) if lines else ""


def _unknown(part: str) -> InputError:
    return InputError(
        f"there are no {part} to plot: no costs are known",
        where="explanation",
        hint="explain a module whose build was complete",
    )
