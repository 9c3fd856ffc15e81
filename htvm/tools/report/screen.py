"""The first screen of a report: the answer in about 16 lines that fit a terminal.

It says how fast the network is, what it is compared with, what the accelerators do, how full the
memories are, which steps are slowest and why, what was lost in accuracy, and what to type next.
Everything else is in the tables of :mod:`htvm.tools.report.layers`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from htvm.result import Causes
from htvm.tools.report.data import BY_ROWS, NOT_RUN, LayerRow, ReportData
from htvm.tools.report.estimated import slowest_lines
from htvm.tools.report.table import count, milliseconds
from htvm.tools.report.verdicts import VerdictRow

_WARNING = "WARNING"
_WHOLE = (_WARNING, "estimate", "memory")  # facts that are never cut
_SLOWEST = 3  # number of steps that are shown with their reasons
_NAME = 21  # characters of a step's name
# Below either, the loss of accuracy gets a warning.
_SAME, _SQNR_DB = 0.9, 10.0
_NARROWEST = 60  # narrower terminals get lines of this width


def screen_text(report: ReportData, width: int = 80, hint: str = "") -> str:
    """Return the first screen.

    Args:
        report: the report; without cycles, what needs them is left out.
        width: characters per line, at least 60; longer lines are cut.
        hint: the next commands to type, separated by three blanks.
    """
    width = max(width, _NARROWEST)
    facts = [
        ("estimate", _estimate(report)),
        ("speed-up", _speed_up(report)),
        ("accelerated", accelerated_text(report)),
        ("memory", _memory(report)),
        ("by rows", _by_rows(report)),
        ("top-1", "" if report.decisions is None else report.decisions.words),
        ("accuracy", _accuracy(report)),
        (_WARNING, _loss(report)),
        ("energy", _energy(report)),
    ]
    longest = max(len(name) for name, value in facts if value)
    lines: list[str] = []
    for name, value in facts:
        head = f"{name:<{longest}}  "
        if value and name in _WHOLE:  # to its end: other lines say enough where they are cut
            lines += _hanging(head, value, width)
        elif value:
            lines.append(head + value)
    parts = [
        _headline(report, width),
        lines,
        cost_lines(report, width),
        slowest_lines(report),
        _hints(hint, width),
    ]
    return "\n\n".join("\n".join(_cut(line, width) for line in part) for part in parts if part)


def _by_rows(report: ReportData) -> str:
    """Return what is computed by rows."""
    found = [note for note in report.summary.notes if note.startswith(BY_ROWS)]
    return found[0].removeprefix(BY_ROWS).removesuffix(".") if found else ""


def _hints(hint: str, width: int) -> list[str]:
    """Return the next commands in one line if they fit, else one per line."""
    return [hint] if len(hint) <= width and hint else [part for part in hint.split("   ") if part]


def _hanging(head: str, words: str, width: int) -> list[str]:
    """Return words after a head, at most two lines of them below each other."""
    wrapped = textwrap.wrap(
        head + words, width, subsequent_indent=" " * len(head), max_lines=2, placeholder="..."
    )
    return wrapped


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 3].rstrip()}..."


def _headline(report: ReportData, width: int) -> list[str]:
    """Return the figures that matter most, in a line or two."""
    summary = report.summary
    line = f"{summary.network} on {summary.target}"
    if summary.instructions is not None:
        line += f": {count(summary.instructions)} instructions"
        beside = _beside(report)
        whole = f"{line}{' + ' if beside else ''}{beside} (emulated: no cycles)"
        if len(whole) <= width:
            return [whole]
        return [line, f"    + {beside}"] if beside else [line]
    if summary.cycles is None or summary.latency_ms is None:
        if report.no_cycles == NOT_RUN:
            return [f"{line}: built, {NOT_RUN}"]
        return [f"{line}, platform {summary.platform}: no cycles, {report.no_cycles}"]
    rate = 1000 / summary.latency_ms
    line += f": {milliseconds(summary.latency_ms)} ms, {rate:,.0f} inferences/s"
    cycles = f"({count(summary.cycles)} cycles at {summary.clock_hz / 1e6:g} MHz)"
    whole = f"{line} {cycles}"
    return [whole] if len(whole) <= width else [line, f"    {cycles}"]


def _beside(report: ReportData) -> str:
    """Return the predicted cycles of accelerators beside a core whose instructions are counted."""
    there = [row for row in report.layers if row.kind == "layer" and row.predicted_cycles]
    if not there:
        return ""
    names = " and ".join(dict.fromkeys(row.accelerator for row in there))
    return f"{count(sum(row.predicted_cycles or 0 for row in there))} cycles of {names}, predicted"


def _estimate(report: ReportData) -> str:
    """Return the time by the manual of a core whose cycles are not simulated."""
    summary = report.summary
    if summary.cycles is not None or summary.estimated_cycles is None:
        return ""
    times = [milliseconds(1000 * each / summary.clock_hz) for each in summary.estimated_cycles]
    rate = summary.clock_hz / summary.estimated_cycles[1]
    return (
        f"{times[0]} to {times[1]} ms at {summary.clock_hz / 1e6:g} MHz (core's manual), "
        f"about {rate:,.{0 if rate >= 10 else 1}f} inferences/s"
    )


def _speed_up(report: ReportData) -> str:
    found = speed_up_of(report)
    if found is None:
        unknown = unknown_on_cpu(report)
        return f"htvm compare measures it (no estimate for {unknown})" if unknown else ""
    return f"{found.times:.1f}x over one CPU core ({count(found.baseline)} cycles, estimated)"


def _memory(report: ReportData) -> str:
    """Return how full each memory is."""
    memory = report.summary.memory
    uses = [("L2", memory.total, memory.limit)]
    if memory.flash_limit is not None:
        # Emulators have no devices, so that their models are linked.
        modelled = "models of devices included" if _beside(report) else ""
        about = ", ".join(part for part in (memory.compiler, modelled) if part)
        name = f"flash ({about})" if about else "flash"
        flash = (name, memory.flash, memory.flash_limit)
        uses = [flash, ("RAM", memory.total, memory.limit)]
    if report.l1:
        fullest = max(report.l1, key=lambda use: use.peak)
        uses.append(("L1", fullest.peak, fullest.limit))
    uses += list(memory.apart)
    return "; ".join(f"{name} {_fill_text(used, limit)}" for name, used, limit in uses)


def _fill_text(used: int, limit: int | None) -> str:
    if not limit:
        return f"{count(used)} B"
    return f"{count(used)} of {count(limit)} B, {100 * used / limit:.1f} %"


def _accuracy(report: ReportData) -> str:
    if report.output_sqnr_db is None:
        return ""
    text = f"SQNR {report.output_sqnr_db:.1f} dB"
    if report.output_largest is None:  # saved before it was measured
        text += " against the source model"
    else:
        text += f", up to {report.output_largest} steps off the source"
    if report.same_decision is not None:
        text += f", same decision {100 * report.same_decision:.1f} %"
    return text


def _loss(report: ReportData) -> str:
    """Return a warning if the numbers of the build are far from the source's; else nothing."""
    same, sqnr = report.same_decision, report.output_sqnr_db
    if (same is None or same >= _SAME) and (sqnr is None or sqnr >= _SQNR_DB):
        return ""
    if report.summary.policy in ("latency", "mixed"):
        return "low accuracy: --policy bitwidth keeps 8 bits where it can"
    return "low accuracy: --data FILE fits the numbers to your own inputs"


def _energy(report: ReportData) -> str:
    if report.energy is None or not report.summary.cycles:
        return ""
    share = 100 * report.energy.cycles / report.summary.cycles
    return f"{report.energy.microjoules:.2f} uJ for {share:.1f} % of the cycles (published powers)"


def cost_lines(report: ReportData, width: int = 120) -> list[str]:
    """Return the slowest steps with their reasons, the slowest kind of layer, and an advice."""
    total = report.summary.cycles or report.summary.instructions
    costs = [(_cost(row), row) for row in report.layers if _cost(row)]
    if not total or not costs:
        return []
    slowest = sorted(costs, key=lambda entry: -entry[0])[:_SLOWEST]
    # What loses accuracy is not advice.
    advice = [("choice" if each.loses else "advice", each.short) for each in report.settings]
    advice += [("advice", change.short) for change in report.advice[:1]]
    return [
        *_heading(group_text(report), width),
        *_slowest_lines(slowest, total, report, width),
        *(line for kind, words in advice for line in _indented(kind, words, width)),
    ]


def _cost(row: LayerRow) -> int:
    """Return a step's cycles or, on cores whose cycles are not simulated, its instructions."""
    return row.cycles or row.instructions or 0


def _heading(group: str, width: int) -> list[str]:
    """Return the heading, with the kind of layer that stands out beside it if there is room."""
    if not group:
        return ["the slowest steps:"]
    line = f"the slowest steps ({group}):"
    return [line] if len(line) <= width else [f"{group};", "the slowest steps:"]


def _indented(kind: str, words: str, width: int) -> list[str]:
    return textwrap.wrap(
        f"{kind}: {words}", width, initial_indent="  ", subsequent_indent="    ",
        break_on_hyphens=False,
    )  # fmt: skip


def _slowest_lines(
    rows: Sequence[tuple[int, LayerRow]], total: int, report: ReportData, width: int
) -> list[str]:
    longest = min(_NAME, max(len(row.label) for _, row in rows))
    lines = []
    for cost, row in rows:
        share = 100 * cost / total
        head = f"  {_cut(row.label, longest):<{longest}}  {share:4.1f} %  "
        reason = reason_of(row, report.verdicts)
        lines += _hanging(head, reason, width)
    return lines


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
        return f"{row.accelerator}: {_causes_text(row.causes)}{_rewritten(row, verdicts)}"
    if row.kind == "layer":
        return f"{row.accelerator}: {count(row.predicted_cycles or 0)} cycles (predicted)"
    return _why_on_cpu(row, verdicts)


def _rewritten(row: LayerRow, verdicts: Sequence[VerdictRow]) -> str:
    """Return what is computed instead of the layer; empty if nothing is."""
    said = [verdict.rewritten for verdict in verdicts if verdict.layer == row.name]
    return f"; {said[0]}" if said and said[0] else ""


def _causes_text(causes: Causes) -> str:
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
            len({row.layer for row in same}),
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
