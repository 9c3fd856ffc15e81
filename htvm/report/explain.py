"""Where each operator runs, why not elsewhere, and which changes would help.

Estimated times are in cycles of the SoC's clock; unknown values are ``None``, never zero.
"""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from byoc_dory.verdict import OperatorVerdict
from htvm.report.table import Column, Table, count, csv_text, short_source, text

__all__ = [
    "Explanation",
    "Improvement",
    "VerdictRow",
    "explain_csv",
    "explain_data",
    "explain_json",
    "explain_screen",
    "explain_text",
    "verdict_table",
]


@dataclass(frozen=True)
class VerdictRow:
    """The place where one operator runs, and the reasons.

    Attributes:
        layer: layer name.
        op: operator.
        placed: the accelerator that runs it, or "cpu".
        offers: the answers of the SoC's accelerators, one per accelerator.
        cpu_cycles: estimated cycles on the CPU; None if unknown.
        shape: sizes as text.
        source: name in the source file; empty if it has no name there.
    """

    layer: str
    op: str
    placed: str
    offers: tuple[OperatorVerdict, ...] = ()
    cpu_cycles: int | None = None
    shape: str = ""
    source: str = ""


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
    """

    layers: tuple[str, ...]
    change: str
    gain: int
    before: int
    after: int
    runs_on: str
    would_run_on: str
    note: str = ""

    @property
    def sentence(self) -> str:
        """The layers, the change, and its predicted gain."""
        names = ", ".join(self.layers)
        return f"{names}: {self.change}: -{count(self.gain)} cycles (predicted)"


@dataclass(frozen=True, repr=False)
class Explanation:
    """Everything that `Module.explain()` shows.

    Attributes:
        rows: one per operator, in execution order.
        improvements: the changes to the model that would gain most, the best first.
        total_cycles: predicted cycles of the unchanged model; None if a part is unknown.
    """

    rows: tuple[VerdictRow, ...]
    improvements: tuple[Improvement, ...] = ()
    total_cycles: int | None = None

    def __str__(self) -> str:
        """Return the verdicts as text."""
        return explain_text(self)

    __repr__ = __str__


def _says(offer: OperatorVerdict) -> str:
    """Return an accelerator's answer as the text of one cell."""
    if offer.accepted:
        return "yes" if offer.cycles is None else f"yes, {count(offer.cycles)} cycles"
    return f"no: {offer.reason}"


def verdict_table(rows: Sequence[VerdictRow]) -> Table:
    """Return one row per operator, and one column per accelerator that answered."""
    asked = tuple(dict.fromkeys(offer.accelerator for row in rows for offer in row.offers))
    columns = (
        Column("layer"),
        Column("op"),
        Column("shape"),
        Column("runs on"),
        Column("est. cycles on cpu", number=True),
        *(Column(f"{name}?") for name in asked),
        Column("source"),
    )
    body = []
    for row in rows:
        answers = {offer.accelerator: _says(offer) for offer in row.offers}
        body.append(
            (
                row.layer,
                row.op,
                row.shape,
                row.placed,
                count(row.cpu_cycles),
                *(answers.get(name, "not asked") for name in asked),
                short_source(row.source),
            )
        )
    return Table(columns, tuple(body))


def explain_text(found: Explanation) -> str:
    """The table of verdicts, the rules that objected, and the changes that would gain most."""
    rows = found.rows
    table = text(verdict_table(rows)) if rows else ""
    parts = [_placed(rows), table, _objections(rows), _gains(found)]
    return "\n\n".join(part for part in parts if part)


def explain_screen(found: Explanation, width: int = 80) -> str:
    """Return `explain_text` without its table, in lines of ``width`` characters."""
    parts = [_placed(found.rows), _objections(found.rows), _gains(found)]
    lines = [line for part in parts if part for line in (*part.split("\n"), "")]
    return "\n".join(
        part
        for line in lines[:-1]
        for part in textwrap.wrap(line, width, subsequent_indent="    ") or [""]
    )


def _placed(rows: Sequence[VerdictRow]) -> str:
    """Return how many operators run on each unit."""
    placed: dict[str, int] = {}
    for row in rows:
        placed[row.placed] = placed.get(row.placed, 0) + 1
    counts = ", ".join(f"{number} on {name}" for name, number in placed.items())
    return f"{len(rows)} operators: {counts}" if rows else "no operators"


def _objections(rows: Sequence[VerdictRow]) -> str:
    """Return the rules that objected to an operator."""
    objections = dict.fromkeys(
        (offer.accelerator, offer.rule)
        for row in rows
        for offer in row.offers
        if not offer.accepted and offer.rule
    )
    lines = [f"  {accelerator}: {rule}" for accelerator, rule in objections]
    return "\n".join(["rules that objected:", *lines]) if lines else ""


def _gains(found: Explanation) -> str:
    """Return the changes that would gain most."""
    lines = [_gain(entry, found.total_cycles) for entry in found.improvements]
    return "\n".join([_GAINS, *lines]) if lines else ""


_GAINS = (
    "changes to the model that would gain most, by the cost model (what is learned may change, "
    "too: train again):"
)


def _gain(entry: Improvement, total: int | None) -> str:
    """Return a change as one line."""
    share = "" if not total else f" ({100 * entry.gain / total:.1f} % of all)"
    where = "" if entry.runs_on == entry.would_run_on else f", runs on {entry.would_run_on}"
    note = f"; {entry.note}" if entry.note else ""
    return (
        f"  {', '.join(entry.layers)}: {entry.change}: -{count(entry.gain)} cycles{share}, "
        f"{count(entry.before)} -> {count(entry.after)}{where}{note}"
    )


def explain_json(rows: Sequence[VerdictRow]) -> str:
    """Return the verdicts as a JSON list (the fields of `VerdictRow`)."""
    return json.dumps([dataclasses.asdict(row) for row in rows], indent=2)


def explain_data(found: Explanation) -> dict[str, Any]:
    """Return everything for JSON: ``operators``, ``improvements`` and ``total_cycles``."""
    return {
        "operators": [
            {**dataclasses.asdict(row), "offers": [_offer_data(entry) for entry in row.offers]}
            for row in found.rows
        ],
        "improvements": [dataclasses.asdict(entry) for entry in found.improvements],
        "total_cycles": found.total_cycles,
    }


def _offer_data(offer: OperatorVerdict) -> dict[str, Any]:
    """Return a verdict without the fields that its row already has."""
    fields = ("accelerator", "accepted", "reason", "rule", "cycles")
    return {name: getattr(offer, name) for name in fields}


def explain_csv(rows: Sequence[VerdictRow]) -> str:
    """Return the verdicts as CSV, one line per operator and accelerator."""
    columns = ["layer", "op", "placed", "cpu_cycles", "accelerator", "accepted", "reason", "cycles"]
    lines = []
    for row in rows:
        head = [row.layer, row.op, row.placed, row.cpu_cycles]
        for offer in row.offers:
            tail = [offer.accelerator, offer.accepted, offer.reason, offer.cycles]
            lines.append([*head, *tail])
        if not row.offers:
            lines.append([*head, None, None, None, None])
    return csv_text(columns, lines)
