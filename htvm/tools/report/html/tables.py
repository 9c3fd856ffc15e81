"""The page's tables of steps; columns without any known value are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from htvm.tools.plots.causes import CAUSES
from htvm.tools.report.accuracy import error_of
from htvm.tools.report.html.parts import BarPart, cause_parts
from htvm.tools.report.table import count, ratio

if TYPE_CHECKING:
    from htvm.tools.report.data import LayerRow, ReportData

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
    return _used(head, [_layer(report, row, classes) for row in report.layers])


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
    return _used(head, rows, foot)


def _bytes(row: LayerRow) -> tuple[Cell, ...]:
    known = row.causes
    spent = [None if known is None else getattr(known, field) for field in CAUSES]
    busy = [None, None] if known is None else [known.dma, known.waiting]
    moved = [row.l2_read, row.l2_written, row.l2_weights, row.l1_bytes]
    held = row.resident.replace("input", "in").replace("output", "out").replace("ins", "in")
    numbers = [row.cycles, *spent, *busy, *moved]
    return (Cell(row.label), *(Cell(count(value)) for value in numbers), Cell(held))


def _used(
    head: Sequence[HeadCell], rows: Sequence[tuple[Cell, ...]], foot: tuple[Cell, ...] = ()
) -> Grid:
    """Return the table without columns that are empty in all rows."""
    kept = [i for i in range(len(head)) if not rows or any(row[i] for row in rows)]
    return Grid(
        tuple(head[i] for i in kept),
        tuple(tuple(row[i] for i in kept) for row in rows),
        tuple(foot[i] for i in kept) if foot else (),
    )
