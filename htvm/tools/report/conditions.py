"""Conditions on the figures of a report, such as ``cycles > 200000``, for checks in CI."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.errors import nearest
from htvm.errors import InputError

if TYPE_CHECKING:
    from htvm.tools.report.data import ReportData

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
    found = _FORM.fullmatch(text)
    try:
        limit = float(found[3].replace(",", "").replace("_", "")) if found else 0.0
    except ValueError:
        found = None
    if found is None:
        raise InputError(
            f"{text!r} is no condition", where="--fail-if", hint="e.g. 'cycles > 200000'"
        )
    if found[1] not in _NAMES:
        raise InputError(
            f"there is no figure {found[1]!r}",
            where="--fail-if",
            hint=f"{nearest(found[1], _NAMES)}one of {', '.join(_NAMES)}",
        )
    return Condition(text.strip(), found[1], found[2], limit, bool(found[4]))


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
