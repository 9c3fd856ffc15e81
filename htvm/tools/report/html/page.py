"""Fills the page's template with the figures and rows of a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byoc_dory.plain import plain
from htvm.tools.plots.colours import CLASSES, DARK, LIGHT
from htvm.tools.plots.lanes import runs_of_cores
from htvm.tools.report.estimated import accesses_text, estimates_table
from htvm.tools.report.html.drawings import graph_of, roofline_of
from htvm.tools.report.html.tables import (
    BarPart,
    bytes_grid,
    cause_parts,
    layers_grid,
    stacked,
    steps_by_name,
    unit_classes_of,
)
from htvm.tools.report.html.timeline import timeline_of
from htvm.tools.report.layers import accuracy_text, overlap_text
from htvm.tools.report.screen import accelerated_text, group_text, reason_of, speed_up_of
from htvm.tools.report.table import count, milliseconds, percent, ratio

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2

    from htvm.tools.report.data import ReportData

_LONGEST = 12  # number of steps that have a bar of their own under "where the cycles go"


@dataclass(frozen=True)
class _Tile:
    """A figure of the summary: its name, the number, and a remark."""

    title: str
    value: str
    said: str = ""


def report_html(report: ReportData) -> str:
    """Return the page with styles, figures and script inside; it fetches nothing."""
    classes, steps = unit_classes_of(report), steps_by_name(report)
    template = _environment().get_template("page.html.jinja")
    return template.render(
        report=report,
        summary=report.summary,
        classes=classes,
        light=LIGHT,
        dark=DARK,
        painted=CLASSES,
        legend=_legend(report, classes),
        tiles=_tiles(report),
        whole=_whole_parts(report),
        charged=_charged(report, classes),
        details=_details(report),
        longest=_longest(report),
        group=group_text(report),
        overlap=overlap_text(report.summary.causes).replace("\n", "; "),
        units=_units(report, classes),
        shared=sum(unit.charged for unit in report.summary.units) > (report.summary.cycles or 0),
        layers=layers_grid(report, classes),
        bytes=bytes_grid(report),
        estimates=estimates_table(report),
        accesses=accesses_text(report).replace("\n", "; "),
        accuracy=accuracy_text(report.layers),
        timeline=timeline_of(report, classes),
        roofline=roofline_of(report, classes, steps),
        graph=graph_of(report.graph, classes, steps),
        memory=_memory(report),
    )


def _plain_value(value: object) -> object:
    """Return what a page shows of a value; drawings are marked as safe, and no `str`."""
    return "\n".join(map(plain, value.split("\n"))) if type(value) is str else value


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_plain_value,
    )
    environment.filters.update(count=count, milliseconds=milliseconds, pc=lambda v: f"{v:.4f}")
    return environment


def _legend(report: ReportData, classes: Mapping[str, str]) -> dict[str, str]:
    """Return the legend of the boxes' colours: name of a core -> class."""
    names = [core.name for core in report.machine.cores] if report.machine else []
    used = {row.accelerator for row in report.layers} | {n.accelerator for n in report.graph}
    names += sorted(used - {"cpu", *names})
    return {"cpu": "u-host"} | {name: classes[name] for name in names if name in used}


def _tiles(report: ReportData) -> list[_Tile]:
    summary, memory = report.summary, report.summary.memory
    clock = f"at {summary.clock_hz / 1e6:g} MHz"
    if summary.latency_ms:
        clock = f"{1000 / summary.latency_ms:,.0f} inferences/s {clock}"
    macs = sum(row.macs for row in report.layers)
    tiles = [_Tile("latency", "–", f"no cycles: {report.no_cycles}")]
    if summary.instructions is not None:
        said = "of one inference, counted by an emulator"
        tiles = [_Tile("instructions", count(summary.instructions), said)]
        if summary.estimated_cycles is not None:
            low, high = (1000 * each / summary.clock_hz for each in summary.estimated_cycles)
            said = f"{clock}, by the manual of the core: not measured"
            tiles.append(_Tile("estimate", f"{milliseconds(low)} to {milliseconds(high)} ms", said))
    if summary.cycles is not None:
        tiles = [
            _Tile("cycles", count(summary.cycles), "of one inference, simulated"),
            _Tile("latency", f"{milliseconds(summary.latency_ms)} ms", clock),
        ]
    rate = ratio(macs, summary.cycles)
    tiles.append(_Tile("MACs", count(macs), f"{rate} per cycle" if rate else "of one inference"))
    if report.energy is not None:
        share = percent(report.energy.cycles, summary.cycles)
        said = f"of {share} % of the cycles, derived from published average powers"
        tiles.append(_Tile("energy", _energy(report.energy.microjoules), said))
    if memory.flash_limit is not None:
        tiles.append(_room_tile("flash", memory.flash, memory.flash_limit))
    if memory.limit is not None:
        name = "L2" if memory.flash_limit is None else "RAM"
        tiles.append(_room_tile(name, memory.total, memory.limit))
    else:
        tiles.append(_Tile("L2", f"{count(memory.total)} B", "no limit"))
    speed_up = speed_up_of(report)
    if speed_up is not None:
        said = f"over one CPU core: {count(speed_up.baseline)} cycles, estimated"
        tiles.append(_Tile("speed-up", f"{speed_up.times:.1f}x", said))
    share = accelerated_text(report)
    if share:
        tiles.append(
            _Tile("accelerated", share.split(" of ")[0], f"of {share.split(' of ', 1)[1]}")
        )
    return tiles


def _room_tile(name: str, used: int, limit: int) -> _Tile:
    """Return how full a memory is."""
    free = limit - used
    title, word = (f"{name} fits", "free") if free >= 0 else (f"{name} overflows", "too many")
    said = f"of {count(limit)} B, {count(abs(free))} B {word}"
    return _Tile(title, f"{count(used)} B", said)


def _energy(microjoules: float) -> str:
    return f"{microjoules:.2f} µJ" if microjoules < 1000 else f"{microjoules / 1000:.2f} mJ"


def _whole_parts(report: ReportData) -> tuple[BarPart, ...]:
    causes = report.summary.causes
    return () if causes is None else cause_parts(causes, causes.cycles)


def _charged(report: ReportData, classes: Mapping[str, str]) -> tuple[BarPart, ...]:
    """Return the cycles by the unit they are charged to."""
    units = report.summary.units
    return stacked(
        [(classes.get(unit.name, "u-host"), unit.name, unit.charged, unit.what) for unit in units],
        report.summary.cycles or 0,
    )


def _details(report: ReportData) -> list[dict[str, Any]]:
    """Return what the page says of a step when a reader picks it, in the order of steps."""
    return [
        {
            "name": row.label,
            "facts": [
                [title, value]
                for title, value in (
                    ("runs on", row.accelerator),
                    ("why", reason_of(row, report.verdicts)),
                    ("shape", row.shape),
                    ("tile k,c,y,x", row.tile),
                    ("tiles", count(row.tiles)),
                    ("cycles", count(row.cycles)),
                    ("MACs", count(row.macs) if row.macs else ""),
                    ("B of L1", count(row.l1_bytes)),
                    ("in the file", row.source),
                )
                if value
            ],
        }
        for row in report.layers
    ]


def _longest(report: ReportData) -> list[dict[str, Any]]:
    """Return the steps that cost most, each as a bar relative to the first one."""
    whole = report.summary.cycles or report.summary.instructions
    known = [
        (step, row, row.cycles or row.instructions or 0) for step, row in enumerate(report.layers)
    ]
    known = sorted((each for each in known if each[2]), key=lambda entry: -entry[2])
    top = known[0][2] if known else 1
    return [
        {
            "step": step,
            "name": row.label,
            "cost": cost,
            "share": percent(cost, whole),
            "parts": stacked([("u-host", "instructions", cost, "")], top)
            if row.causes is None
            else cause_parts(row.causes, top),
            "reason": reason_of(row, report.verdicts),
        }
        for step, row, cost in known[:_LONGEST]
    ]


def _units(report: ReportData, classes: Mapping[str, str]) -> list[dict[str, Any]]:
    cycles, units = report.summary.cycles, report.summary.units
    rows = []
    for name, group in runs_of_cores([(unit.name, unit.cycles) for unit in units]):
        first, each = units[group[0]], [units[index] for index in group]
        busy = sum(unit.cycles for unit in each) // len(each)
        charged = sum(unit.charged for unit in each)
        rows.append(
            {
                "name": name,
                "what": first.what + (", each" if len(each) > 1 else ""),
                "busy": busy,
                "share": percent(busy, cycles),
                "charged": charged,
                "charged_share": percent(charged, cycles),
                "classes": classes.get(name, "u-host"),
            }
        )
    return rows


def _memory(report: ReportData) -> tuple[BarPart, ...]:
    memory = report.summary.memory
    whole = max(memory.total, memory.limit or 0)
    there = [
        ("b-code", "code", memory.code, "instructions and their read-only data"),
        ("b-constants", "constants", memory.constants, "weights, biases, tables"),
    ]
    return stacked(
        [
            *(there if memory.flash_limit is None else []),
            ("b-arena", "arena", memory.arena, "intermediates and workspaces"),
            ("b-io", "inputs and outputs", memory.io, "the caller's, and the runtime's variables"),
            (
                "b-stack",
                "stack",
                memory.stack,
                "reserved"
                if memory.stack_used is None
                else f"reserved; a run used {memory.stack_used:,} B",
            ),
            (
                "b-free",
                "free",
                whole - memory.total,
                "of RAM" if memory.flash_limit is not None else "of L2",
            ),
        ],
        whole,
    )
