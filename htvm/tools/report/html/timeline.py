"""The timeline, and the memory maps below it: rows over one axis that can be zoomed."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import commonprefix
from typing import TYPE_CHECKING

from htvm.tools.plots.lanes import Lane, Span, lanes_of, runs_of_cores
from htvm.tools.plots.timeline import shown_lanes, step_axis
from htvm.tools.report.html.drawings import Drawing
from htvm.tools.report.table import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from htvm.tools.report.data import LayerRow, ReportData
    from htvm.tools.report.parts import MemoryMap

_LANE = 10  # height of a lane in the drawing's units


@dataclass(frozen=True)
class Box:
    """A rectangle in a row; positions and sizes in percent of the row.

    Attributes:
        classes: class that sets its colour.
        name: text written on it.
        tip: text shown when the pointer rests on it.
        step: index of the step that it belongs to.
    """

    left: float
    width: float
    classes: str
    name: str
    tip: str
    bottom: float = 0.0
    height: float = 100.0
    step: int | None = None


@dataclass(frozen=True)
class Strip:
    """The activity of one unit.

    Attributes:
        name: name of the unit.
        said: text on how long it was busy.
        classes: class that sets its colour.
        spans: when it worked, in cycles.
        length: length of the axis, in cycles.
    """

    name: str
    said: str
    classes: str
    spans: tuple[Span, ...]
    length: int

    @property
    def drawing(self) -> Drawing:
        """One path for all spans, in cycles; the page stretches it."""
        drawing = Drawing(self.length, _LANE, f"{self.name} over time", "lane", stretch=True)
        parts, at = [], 0
        for start, end in self.spans:
            # Relative, from the corner the last rectangle was closed at.
            parts.append(f"m{start - at} 0h{end - start}v{_LANE}h{start - end}z")
            at = start
        if parts:
            drawing.add("path", self.classes, d="M0 0" + "".join(parts))
        return drawing


@dataclass(frozen=True)
class MapRow:
    """A memory map: boxes from the bottom of a memory up to its peak, in bytes."""

    name: str
    said: str
    peak: int
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Timeline:
    """All rows.

    Attributes:
        length: length of the axis in its unit.
        unit: "cycles"; where only instructions were counted, "instructions"; else "steps".
        clock_hz: clock of the cycles, in Hz.
        gap: intervals at most this many cycles apart are drawn as one.
    """

    length: int
    unit: str
    clock_hz: int
    steps: tuple[Box, ...]
    strips: tuple[Strip, ...]
    maps: tuple[MapRow, ...]
    gap: int

    @property
    def ticks(self) -> list[int]:
        """Round numbers along the axis, from 0, at most 8."""
        step = 1
        while self.length / step > 8:
            step = step * 5 // 2 if str(step)[0] == "2" else 2 * step
        return list(range(0, self.length + 1, step))

    @property
    def legend(self) -> list[tuple[str, str]]:
        """The colour classes that occur, with their names."""
        used = {box.classes for row in self.maps for box in row.boxes}
        known = [("m-tile", "tile buffer or arena"), ("m-stays", "stays in L1")]
        dma = [("u-dma", "DMA")] if any(strip.name == "dma" for strip in self.strips) else []
        return dma + [entry for entry in known if entry[0] in used]


def timeline_of(report: ReportData, classes: Mapping[str, str]) -> Timeline:
    """Return the rows of a report, over cycles, else over instructions, else over steps."""
    cycles = report.summary.cycles
    axis = step_axis(report.layers, cycles, report.summary.instructions)
    length, places = axis.length, axis.spans
    every = lanes_of(report.timeline, cycles)
    lanes, gap = shown_lanes(report.timeline, cycles)
    busy = _busy(every)
    steps = tuple(
        Box(
            *_across(start, end, length),
            classes.get(row.accelerator if row.kind in ("", "layer", "cpu") else "cpu", "u-host"),
            short,
            f"{row.label} on {row.accelerator}: {row.shape}" + _cost(row),
            step=index,
        )
        for index, (row, short, (start, end)) in enumerate(
            zip(report.layers, _short(report), places, strict=True)
        )
    )
    return Timeline(
        length=length,
        unit=axis.unit,
        clock_hz=report.summary.clock_hz,
        steps=steps,
        strips=tuple(_strip(lane, busy[lane.name], length, classes) for lane in lanes),
        maps=tuple(_map(entry, places, length) for entry in report.maps if entry.blocks),
        gap=gap,
    )


def _short(report: ReportData) -> list[str]:
    """Return the names on the steps' boxes: without the words that all of them begin with."""
    names = [row.label if row.kind not in ("", "layer", "cpu") else row.name
             for row in report.layers]  # fmt: skip
    known = commonprefix(names) if len(names) > 1 else ""
    cut = 1 + max(known.rfind("_"), known.rfind("."))
    return [name[cut:] if not name[cut:].isdigit() else name for name in names]


def _cost(row: LayerRow) -> str:
    if row.cycles is not None:
        return f", {count(row.cycles)} cycles"
    return f", {count(row.instructions)} instructions" if row.instructions is not None else ""


def _across(start: int, end: int, length: int) -> tuple[float, float]:
    return 100.0 * start / length, 100.0 * (end - start) / length


def _busy(lanes: tuple[Lane, ...]) -> dict[str, float]:
    """Return the busy cycles of each folded lane: of cores that are drawn as one, the average."""
    groups = runs_of_cores([(lane.name, lane.busy) for lane in lanes])
    return {name: sum(lanes[i].busy for i in group) / len(group) for name, group in groups}


def _strip(lane: Lane, busy: float, length: int, classes: Mapping[str, str]) -> Strip:
    share = 100.0 * busy / length
    colour = classes.get(lane.name, "u-host")
    return Strip(lane.name, f"{share:.1f} % busy", colour, tuple(lane.spans), length)


def _map(entry: MemoryMap, places: Sequence[Span], length: int) -> MapRow:
    """Return the map, as high as the memory in use."""
    boxes = []
    for block in entry.blocks:
        start, end = places[block.first][0], places[block.last][1]
        left, width = _across(start, end, length)
        boxes.append(
            Box(
                left,
                width,
                "m-stays" if block.resident else "m-tile",
                block.name,
                f"{block.name}: {count(block.bytes)} B at {count(block.offset)}"
                + (", stays in L1" if block.resident else ""),
                100.0 * block.offset / entry.peak,
                100.0 * block.bytes / entry.peak,
                block.first,
            )
        )
    said = f"{count(entry.peak)} B"
    if entry.limit != entry.peak:
        said = f"{count(entry.peak)} of {count(entry.limit)} B"
    return MapRow(entry.memory, said, entry.peak, tuple(boxes))
