"""Colours and words shared by the page's figures and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from htvm.tools.plots.bars import CAUSES
from htvm.tools.plots.colours import painted, unit_classes
from htvm.tools.plots.lanes import folded, lanes_of
from htvm.tools.report.layers import error_of
from htvm.tools.report.table import count, ratio

if TYPE_CHECKING:
    from htvm.result import Causes
    from htvm.tools.report.data import LayerRow, ReportData


@dataclass(frozen=True)
class BarPart:
    """One part of a bar.

    Attributes:
        classes: class that sets its colour.
        name: what it stands for.
        value: its size, in the bar's unit.
        percent: its width, in percent of the bar's full width.
        meaning: an explanation in one sentence.
    """

    classes: str
    name: str
    value: int
    percent: float
    meaning: str = ""


def stacked(parts: Sequence[tuple[str, str, int, str]], whole: float) -> tuple[BarPart, ...]:
    """The parts of a bar from (classes, name, value, meaning); ``whole`` is its full width."""
    return tuple(
        BarPart(classes, name, value, 100.0 * value / whole if whole else 0.0, meaning)
        for classes, name, value, meaning in parts
        if value > 0
    )


def cause_parts(causes: Causes, whole: float) -> tuple[BarPart, ...]:
    """Return the causes as a bar with ``whole`` cycles as its full width."""
    return stacked(
        [
            (f"c-{field}", name, getattr(causes, field), meaning)
            for field, (name, meaning) in CAUSES.items()
        ],
        whole,
    )


def cause_bar(report: ReportData) -> str:
    """Return the cycles by cause as HTML that needs no style sheet; empty without cycles."""
    causes = report.summary.causes
    if causes is None:
        return ""
    parts = [(painted(part.classes), part) for part in cause_parts(causes, causes.cycles)]
    bar = "".join(
        f'<i style="display:inline-block;height:14px;width:{part.percent:.2f}%;'
        f'background:{colour}" title="{part.name}: {part.value:,}"></i>'
        for colour, part in parts
    )
    keys = " ".join(
        f'<span style="white-space:nowrap"><i style="display:inline-block;width:10px;height:10px;'
        f'background:{colour}"></i> {part.name} {part.percent:.1f} %</span>'
        for colour, part in parts
    )
    return f'<div style="max-width:640px"><div>{bar}</div><div>{keys}</div></div>'


def steps_by_name(report: ReportData) -> dict[str, int]:
    """Map the names of layers to the index of their step; conversions beside them do not count."""
    return {
        name: index
        for index, row in enumerate(report.layers)
        if row.kind in ("", "layer", "cpu")
        for name in (row.name, row.label, *row.name.split(" + "))
    }


def unit_classes_of(report: ReportData) -> dict[str, str]:
    """Map the units of a report to their classes (`htvm.tools.plots.colours.unit_classes`)."""
    names = [core.name for core in report.machine.cores] if report.machine else []
    names += [row.accelerator for row in report.layers]
    names += [node.accelerator for node in report.graph]
    lanes = lanes_of(report.timeline, report.summary.cycles)
    names += [lane.name for lane in (*lanes, *folded(lanes))]
    return unit_classes(["cpu", "host", "dma", *names])


Kind: TypeAlias = Literal["text", "number", "unit", "bar", "name"]


@dataclass(frozen=True)
class HeadCell:
    """A heading: its words, alignment, colour class, and meaning."""

    title: str
    kind: Kind = "number"
    classes: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes:
        words: text of the cell.
        classes: classes that give it the colour of a unit.
        parts: parts of a bar.
        tip: text shown when the pointer rests on it.
    """

    words: str = ""
    classes: str = ""
    parts: tuple[BarPart, ...] = ()
    tip: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.parts)


@dataclass(frozen=True)
class Grid:
    """A table; each row has a cell for each heading, and so has the foot if there is one."""

    head: tuple[HeadCell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    foot: tuple[Cell, ...] = ()


def layers_grid(report: ReportData, classes: Mapping[str, str]) -> Grid:
    """Return the table of steps: where each runs, how, and how well."""
    head = (
        HeadCell("layer", "name"),
        HeadCell("runs on", "unit"),
        HeadCell("shape", "text"),
        HeadCell("tile k,c,y,x", "text"),
        HeadCell("tiles", meaning="×2: there are two buffers for them"),
        HeadCell("MACs"),
        HeadCell("cycles"),
        HeadCell("%", meaning="of all cycles"),
        HeadCell("causes", "bar"),
        HeadCell("MAC per cycle"),
        HeadCell("% of peak", meaning="utilisation of the array"),
        HeadCell("instructions"),
        HeadCell("per MAC", meaning="instructions of one multiply-accumulate"),
        HeadCell("predicted", meaning="cycles by the cost model"),
        HeadCell("off %", meaning="positive where too much was predicted"),
        HeadCell("µJ", meaning="derived from published average powers"),
    )
    return _used_columns(head, [_layer(report, row, classes) for row in report.layers])


def _layer(report: ReportData, row: LayerRow, classes: Mapping[str, str]) -> tuple[Cell, ...]:
    computes = row.kind in ("", "layer", "cpu")
    peak = report.machine.peak_of(row.accelerator) if report.machine and computes else None
    rate = row.macs / row.cycles if row.macs and row.cycles else None
    error = error_of(row)
    share = None if row.cycles is None else 100 * row.cycles
    return (
        Cell(row.label, tip=row.source),
        Cell(row.accelerator, classes.get(row.accelerator, "u-host") if computes else "u-host"),
        # As one character, which no line breaks within.
        Cell(row.shape.replace("->", "→")),
        Cell(row.tile),
        Cell(count(row.tiles) + (" ×2" if row.double_buffered else "")),
        Cell(count(row.macs) if row.macs else ""),
        Cell(count(row.cycles)),
        Cell(ratio(share, report.summary.cycles, 1)),
        Cell(parts=() if row.causes is None else cause_parts(row.causes, row.causes.cycles)),
        Cell("" if rate is None else f"{rate:.2f}"),
        Cell("" if rate is None or not peak else f"{100 * rate / peak:.1f}"),
        Cell(count(row.instructions)),
        Cell(ratio(row.instructions, row.macs) if row.macs else ""),
        Cell(count(row.predicted_cycles)),
        Cell("" if error is None else f"{100 * error:+.1f}".replace("-0.0", "0.0")),
        Cell("" if row.energy_uj is None else f"{row.energy_uj:.3f}"),
    )


def bytes_grid(report: ReportData) -> Grid:
    """Return the table of each step's cycles by cause, and the bytes that it moves and holds."""
    causes = [
        HeadCell(name, classes=f"c-{field}", meaning=said) for field, (name, said) in CAUSES.items()
    ]
    head = (
        HeadCell("layer", "name"),
        HeadCell("cycles"),
        *causes,
        HeadCell("DMA busy", meaning="cycles in which the DMA works, hidden or not"),
        HeadCell("host waits", meaning="cycles in which the host polls a device"),
        HeadCell("B from L2", meaning="activations read from L2"),
        HeadCell("B to L2", meaning="activations written to L2"),
        HeadCell("B of weights", meaning="weights read, as often as they are read"),
        HeadCell("B in L1", meaning="L1 in use while it runs"),
        HeadCell("stays in L1", "text", meaning="tensors that it finds in L1 or leaves there"),
    )
    rows = [_bytes(row) for row in report.layers]
    whole = report.summary.causes
    foot: tuple[Cell, ...] = ()
    if whole is not None:
        spent = [getattr(whole, field) for field in CAUSES]
        values = [report.summary.cycles, *spent, whole.dma, whole.waiting]
        foot = (Cell("the whole run"), *(Cell(count(value)) for value in values), *[Cell()] * 5)
    return _used_columns(head, rows, foot)


def _bytes(row: LayerRow) -> tuple[Cell, ...]:
    known = row.causes
    cause_cycles = [None if known is None else getattr(known, field) for field in CAUSES]
    busy = [None, None] if known is None else [known.dma, known.waiting]
    moved = [row.l2_read, row.l2_written, row.l2_weights, row.l1_bytes]
    held = row.resident.replace("input", "in").replace("output", "out").replace("ins", "in")
    numbers = [row.cycles, *cause_cycles, *busy, *moved]
    return (Cell(row.label), *(Cell(count(value)) for value in numbers), Cell(held))


def _used_columns(
    head: Sequence[HeadCell], rows: Sequence[tuple[Cell, ...]], foot: tuple[Cell, ...] = ()
) -> Grid:
    """Return the table without columns that are empty in all rows."""
    columns = [i for i in range(len(head)) if not rows or any(row[i] for row in rows)]
    return Grid(
        tuple(head[i] for i in columns),
        tuple(tuple(row[i] for i in columns) for row in rows),
        tuple(foot[i] for i in columns) if foot else (),
    )
