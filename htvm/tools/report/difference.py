"""`difference_of`: what changed between two reports, figure by figure and step by step.

Conditions on the figures, such as ``cycles > 200000``, are for checks in CI.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.errors import nearest
from htvm.errors import InputError
from htvm.public import boundary
from htvm.shown import Shown
from htvm.tools.plots.bars import Bar, bar_figure
from htvm.tools.report.table import Column, table_of, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htvm.tools.report.data import LayerRow, ReportData


_MOST_STEPS = 12
_LINE = 80  # characters per line


@dataclass(frozen=True)
class Change:
    """One figure before and after; None where a report does not have it.

    Attributes:
        name: name of the figure, or of the step.
        before, after: its values; those of steps are cycles.
        note: what else changed: where a step runs, its tile.
    """

    name: str
    before: float | None
    after: float | None
    note: str = ""

    @property
    def difference(self) -> float | None:
        """How much more it is after; None if one value is missing."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before


@dataclass(frozen=True, repr=False)
class ReportDifference(Shown):
    """What changed from one report to another.

    Attributes:
        before, after: what the reports are about: network and target.
        figures: every figure that one of them has.
        steps: the steps that changed, the largest change of cycles first.
    """

    before: str
    after: str
    figures: tuple[Change, ...]
    steps: tuple[Change, ...]

    def _rows(self) -> tuple[object, ...]:
        return (*self.figures, *self.steps)

    def __str__(self) -> str:
        """Return the changes as text."""
        parts = [f"{self.before} -> {self.after}", _table("figure", self.figures)]
        if self.steps:
            parts.append(_table("step", self.steps[:_MOST_STEPS]))
            left = len(self.steps) - _MOST_STEPS
            parts += [f"{left} more steps changed: --json lists them"] if left > 0 else []
        else:
            parts.append("no step changed")
        return "\n\n".join(parts)

    __repr__ = __str__

    def plot_steps(self, most: int = _MOST_STEPS) -> Figure:
        """Plot the cycles of the steps that changed most, before and after.

        Args:
            most: largest number of steps.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        bars = []
        for step in self.steps[:most]:
            more = _grown(step.difference) or step.note
            bars += [
                Bar(step.name, step.before, f"{_number(step.before)} before", "dim", hollow=True),
                Bar("", step.after, f"{_number(step.after)} after, {more}".strip(", "), "ink"),
            ]
        title = f"{self.before} -> {self.after}"
        return bar_figure(title, bars, "cycles", keys={"dim": "before", "ink": "after"})


@boundary
def difference_of(before: ReportData, after: ReportData) -> ReportDifference:
    """Compare two reports; steps are matched by name."""
    old, new = figures_of(before), figures_of(after)
    figures = [Change(name, old[name], new[name]) for name in old]
    steps = list(_steps(before, after))
    steps.sort(key=lambda change: -abs(change.difference or 0))
    return ReportDifference(
        _title(before),
        _title(after),
        tuple(each for each in figures if (each.before, each.after) != (None, None)),
        tuple(steps),
    )


def _title(report: ReportData) -> str:
    return f"{report.summary.network} on {report.summary.target}"


def _steps(before: ReportData, after: ReportData) -> list[Change]:
    old, new = _by_name(before), _by_name(after)
    differences = []
    for name in dict.fromkeys((*old, *new)):
        first, second = old.get(name), new.get(name)
        change = Change(name, _cost(first), _cost(second), _note(first, second))
        if change.note or change.before != change.after:
            differences.append(change)
    return differences


def _by_name(report: ReportData) -> dict[str, LayerRow]:
    rows: dict[str, LayerRow] = {}
    for row in report.layers:
        name, number = row.label, 1
        while name in rows:
            number += 1
            name = f"{row.label} #{number}"
        rows[name] = row
    return rows


def _cost(row: LayerRow | None) -> int | None:
    return None if row is None else row.cycles if row.cycles is not None else row.instructions


def _note(first: LayerRow | None, second: LayerRow | None) -> str:
    if first is None or second is None:
        return "new" if first is None else "gone"
    parts = []
    if first.accelerator != second.accelerator:
        parts.append(f"{first.accelerator} -> {second.accelerator}")
    if first.tile != second.tile:
        parts.append(f"tile {first.tile or 'none'} -> {second.tile or 'none'}")
    return ", ".join(parts)


def _table(what: str, changes: tuple[Change, ...]) -> str:
    table = table_of(
        changes,
        (Column(what, wraps=True), lambda change: change.name),
        (Column("before", number=True), lambda change: _number(change.before)),
        (Column("after", number=True), lambda change: _number(change.after)),
        (Column("change", number=True), lambda change: _grown(change.difference)),
        (Column("%", number=True), _share_text),
        (Column("", wraps=True), lambda change: change.note),
    )
    return text(table, _LINE)


def _share_text(change: Change) -> str:
    grown = change.difference
    return "" if grown is None or not change.before else f"{100 * grown / change.before:+.1f}"


def _grown(value: float | None) -> str:
    return "" if value is None else f"{'+' if value > 0 else ''}{_number(value)}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_FORM = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([+-]?[\d_.,]+)\s*(%?)\s*")
_NAMES = (
    "cycles", "latency_ms", "instructions", "memory_bytes", "flash_bytes", "arena_bytes",
    "energy_uj", "sqnr_db", "same_decision", "accuracy", "source_accuracy",
)  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A comparison of one figure with a limit.

    Attributes:
        text: as it was written.
        figure: name of the figure, one of `figures_of`.
        comparison: ``">"``, ``">="``, ``"<"`` or ``"<="``.
        limit: the number; in percent of growth if ``relative``.
        relative: whether it is about the change from an earlier report, not about the figure.
    """

    text: str
    figure: str
    comparison: str
    limit: float
    relative: bool = False

    def holds(
        self, figures: Mapping[str, float | None], before: Mapping[str, float | None] | None = None
    ) -> bool:
        """Whether the condition is met.

        Args:
            figures: of the report.
            before: of the earlier report, for conditions in percent.

        Raises:
            InputError: a report does not have the figure, or there is no earlier report.
        """
        value = self._known(figures)
        if self.relative:
            if before is None:
                raise no_earlier_report(self)
            old = self._known(before)
            value = 100.0 * (value - old) / old if old else (0.0 if value == old else float("inf"))
        return _OPERATORS[self.comparison](value, self.limit)

    def _known(self, figures: Mapping[str, float | None]) -> float:
        value = figures[self.figure]
        if value is None:
            have = [name for name, each in figures.items() if each is not None]
            raise InputError(
                f"the report has no {self.figure}",
                where=f"--fail-if '{self.text}'",
                hint=f"it has {', '.join(have)}",
            )
        return value


def no_earlier_report(condition: Condition) -> InputError:
    """Return the error for a condition in percent where there is only one report."""
    return InputError(
        f"'{condition.text}' compares with an earlier report",
        where="--fail-if",
        hint="leave out the %, or compare two reports: htvm diff BEFORE AFTER",
    )


def read_condition(text: str) -> Condition:
    """Read ``FIGURE > NUMBER``, or with ``%`` the growth over an earlier report.

    Raises:
        InputError: it has another form, or there is no such figure.
    """
    match = _FORM.fullmatch(text)
    try:
        limit = float(match[3].replace(",", "").replace("_", "")) if match else 0.0
    except ValueError:
        match = None
    if match is None:
        raise InputError(
            f"{text!r} is no condition", where="--fail-if", hint="e.g. 'cycles > 200000'"
        )
    if match[1] not in _NAMES:
        raise InputError(
            f"there is no figure {match[1]!r}",
            where="--fail-if",
            hint=f"{nearest(match[1], _NAMES)}one of {', '.join(_NAMES)}",
        )
    return Condition(text.strip(), match[1], match[2], limit, bool(match[4]))


def figures_of(report: ReportData) -> dict[str, float | None]:
    """Return the figures of a report by name: bytes, cycles, ms, microjoules; None if unknown.

    ``memory_bytes`` is all of L2 in use, of a microcontroller its RAM; ``same_decision``,
    ``accuracy`` and ``source_accuracy`` are in percent.
    """
    summary, memory = report.summary, report.summary.memory
    same, labelled = report.same_decision, report.decisions
    return {
        "cycles": summary.cycles,
        "latency_ms": summary.latency_ms,
        "instructions": summary.instructions,
        "memory_bytes": memory.total,
        "flash_bytes": memory.flash,
        "arena_bytes": memory.arena,
        "energy_uj": None if report.energy is None else report.energy.microjoules,
        "sqnr_db": report.output_sqnr_db,
        "largest_difference": report.output_largest,
        "same_decision": None if same is None else 100.0 * same,
        "accuracy": None if labelled is None else 100.0 * labelled.accuracy,
        "source_accuracy": None if labelled is None else 100.0 * labelled.source_accuracy,
    }
