"""Why a step costs what it costs, in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htvm.result import Causes
from htvm.tools.report.data import LayerRow, ReportData
from htvm.tools.report.explain import VerdictRow

# A kind of layer is named if it takes this fraction of the cycles, and this many times its fraction
# of the multiply-accumulates.
_NOTABLE = 0.1
_OUT_OF_PROPORTION = 1.5

_CONVERSIONS = {
    "prologue": "CPU: converts the input to the core's layout",
    "epilogue": "CPU: converts the output from the core's layout",
    "copy": "CPU: copies",
}

_CAUSES = {
    "array": "computing",
    "weights": "loading weights",
    "trigger": "starting the core",
    "dma_alone": "waiting for transfers",
    "host_alone": "work of the host",
}


@dataclass(frozen=True)
class Group:
    """All layers of one kind, and their fractions (0 to 1) of the cycles and of the MACs."""

    op: str
    layers: int
    cycles: float
    macs: float


@dataclass(frozen=True)
class SpeedUp:
    """How many times faster a run is than the CPU alone, whose cycles are an estimate."""

    times: float
    baseline: int


def speed_up_of(report: ReportData) -> SpeedUp | None:
    """Return the speed-up over one CPU core; None without cycles, accelerators or an estimate."""
    cycles, verdicts = report.summary.cycles, report.verdicts
    if not cycles or all(row.placed == "cpu" for row in verdicts):
        return None
    apart = [row.cpu_cycles for row in verdicts]
    known = [value for value in apart if value is not None]
    if len(known) != len(apart):
        return None
    return SpeedUp(sum(known) / cycles, sum(known))


def unknown_on_cpu(report: ReportData) -> str:
    """Return the kinds of operator that keep a speed-up from being estimated, by name."""
    if not report.summary.cycles or all(row.placed == "cpu" for row in report.verdicts):
        return ""
    kinds = sorted({row.op for row in report.verdicts if row.cpu_cycles is None})
    more = f" and {len(kinds) - 3} more" if len(kinds) > 3 else ""
    return ", ".join(kinds[:3]) + more


def accelerated_text(report: ReportData) -> str:
    """Return the share of MACs on accelerators, and of the cycles they take; empty without MACs."""
    rows = report.layers
    macs, cycles = sum(row.macs for row in rows), report.summary.cycles
    there = [row for row in rows if row.kind == "layer"]
    if not macs or not there:
        return ""
    share = f"{100 * sum(row.macs for row in there) / macs:.1f} % of the MACs"
    if cycles is None:
        return share
    spent = sum(row.cycles or 0 for row in there)
    return f"{share}, in {100 * spent / cycles:.1f} % of the cycles"


def reason_of(row: LayerRow, verdicts: Sequence[VerdictRow]) -> str:
    """Return what explains a step's cycles: who refused it, or what it spends its cycles on."""
    if row.kind in _CONVERSIONS:
        return _CONVERSIONS[row.kind]
    if row.causes is not None and row.accelerator != "cpu":
        return f"{row.accelerator}: {_spent(row.causes)}{_rewritten(row, verdicts)}"
    return _why_on_cpu(row, verdicts)


def _rewritten(row: LayerRow, verdicts: Sequence[VerdictRow]) -> str:
    """Return what is computed instead of the layer; empty if nothing is."""
    said = [verdict.rewritten for verdict in verdicts if verdict.layer == row.name]
    return f"; {said[0]}" if said and said[0] else ""


def _spent(causes: Causes) -> str:
    """Return the two largest causes of a layer's cycles."""
    parts = {name: getattr(causes, name) for name in _CAUSES}
    largest = sorted(parts, key=lambda name: -parts[name])[:2]
    total = max(1, sum(parts.values()))
    return ", ".join(
        f"{100 * parts[name] / total:.0f} % {_CAUSES[name]}"
        for name in largest
        if 200 * parts[name] >= total
    )


def _why_on_cpu(row: LayerRow, verdicts: Sequence[VerdictRow]) -> str:
    """Return an accelerator's objection to a step on the CPU, or that it could have run there."""
    names = row.name.split(" + ")
    offers = [
        (offer.accelerator, offer)
        for verdict in verdicts
        if verdict.layer in names
        for offer in verdict.offers
    ]
    if not offers:
        return f"CPU{_rate(row)}"
    for name, offer in offers:
        if not offer.accepted:
            return f"CPU, not {name}: {offer.objection}"
    return f"CPU, though {offers[0][0]} could: the policy chose so"


def _rate(row: LayerRow) -> str:
    """Return what a multiply-accumulate costs; empty without any."""
    cost, counted = (row.cycles, "cycles") if row.cycles else (row.instructions, "instructions")
    return f": {cost / row.macs:.2f} {counted} per MAC" if cost and row.macs else ""


def slowest_group(rows: Sequence[LayerRow], total: int) -> Group | None:
    """Return the kind of layer whose cycles are most out of proportion to its MACs.

    Args:
        rows: the steps with cycles.
        total: cycles of the whole run.

    Returns:
        The group; None if no kind of layer with several layers stands out.
    """
    macs = sum(row.macs for row in rows)
    if not macs:
        return None
    groups = []
    for op in dict.fromkeys(row.op for row in rows if row.macs):
        same = [row for row in rows if row.op == op]
        group = Group(
            op,
            len(same),
            sum(row.cycles or 0 for row in same) / total,
            sum(row.macs for row in same) / macs,
        )
        notable = group.layers > 1 and group.cycles >= _NOTABLE
        if notable and group.cycles >= _OUT_OF_PROPORTION * group.macs:
            groups.append(group)
    return max(groups, key=lambda group: group.cycles - group.macs, default=None)


def group_text(report: ReportData) -> str:
    """Return the sentence on :func:`slowest_group`; empty if no kind of layer stands out."""
    total = report.summary.cycles
    group = slowest_group([row for row in report.layers if row.cycles], total) if total else None
    if group is None:
        return ""
    return (
        f"{group.layers} {group.op} layers: {100 * group.cycles:.0f} % of the cycles, "
        f"{100 * group.macs:.0f} % of the MACs"
    )
