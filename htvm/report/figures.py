"""The page's figures as one PNG, for papers and slides."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from htvm.errors import InputError
from htvm.report.html.parts import CAUSE_COLOURS, CAUSES, COLOURS, steps_by_name, unit_classes
from htvm.report.html.roofline import roofline_of
from htvm.report.html.timeline import MapRow, Timeline, timeline_of
from htvm.report.table import count, milliseconds
from htvm.shown import optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htvm.report.data import LayerRow, ReportData
    from htvm.report.html.svg import Drawing

__all__ = ["report_figure", "report_png"]

_WIDTH = 11.0  # inches
_DPI = 150
_SMALL = 7  # points of text
_DEAREST = 12  # steps that have a bar
# How the page mixes colours with its background: the colour, and its share.
_MIXED = {"m-tile": (COLOURS["u2"], 0.35), "m-stays": (COLOURS["u4"], 0.45)}


def report_png(report: ReportData) -> bytes:
    """Draw one figure: timeline, dearest steps, memory maps, and the roofline if there is one.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    figure = _figure(report, _panels(report))
    stream = io.BytesIO()
    # Without the date and version, so that the same report gives the same bytes.
    figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    return stream.getvalue()


def report_figure(report: ReportData, part: str) -> Figure:
    """Draw one part: ``"timeline"``, ``"layers"``, ``"memory"`` or ``"roofline"``.

    Raises:
        DependencyError: matplotlib is not installed.
        InputError: the report has nothing to show there.
    """
    panels = [panel for panel in _panels(report) if panel.part == part]
    if not panels:
        why = report.no_cycles or "no layer that could be shown"
        raise InputError(f"there is no {part} to plot: {why}", where="report")
    return _figure(report, panels)


def _figure(report: ReportData, panels: Sequence[_Panel]) -> Figure:
    figures: Any = optional("matplotlib.figure", "figures")
    heights = [panel.height for panel in panels]
    figure: Figure = figures.Figure(figsize=(_WIDTH, 0.7 + sum(heights)), layout="constrained")
    figure.suptitle(_title(report), fontsize=11)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for number, panel in enumerate(panels):
        panel.draw(figure.add_subplot(grid[number]))
    return figure


def _title(report: ReportData) -> str:
    summary = report.summary
    title = f"{summary.network} for {summary.target}"
    if summary.cycles is None:
        return f"{title}: no cycles, {report.no_cycles}"
    ms = milliseconds(summary.latency_ms)
    return f"{title}: {count(summary.cycles)} cycles, {ms} ms at {summary.clock_hz / 1e6:g} MHz"


@dataclass(frozen=True)
class _Panel:
    """A part of the figure: its name, height in inches, and what draws it on matplotlib's axes."""

    part: str
    height: float
    draw: Callable[[Any], None]


def _panels(report: ReportData) -> list[_Panel]:
    classes = unit_classes(report)
    timeline = timeline_of(report, classes)
    roofline = roofline_of(report, classes, steps_by_name(report))
    lanes = 1 + len(timeline.strips)
    found = [_Panel("timeline", 0.7 + 0.26 * lanes, lambda axes: _lanes(axes, timeline))]
    dearest = [row for row in report.layers if row.cycles and row.causes is not None]
    dearest = sorted(dearest, key=lambda row: -(row.cycles or 0))[:_DEAREST]
    if dearest:
        height = 0.7 + 0.2 * len(dearest)
        found.append(_Panel("layers", height, lambda axes: _bars(axes, dearest)))
    found += [
        _Panel("memory", 1.9, partial(_map, timeline=timeline, row=row)) for row in timeline.maps
    ]
    if roofline is not None:
        found.append(_Panel("roofline", 4.2, lambda axes: _paint(axes, roofline)))
    return found


def _colours(classes: Iterable[str]) -> list[Any]:
    """The colours of the page's classes: ``u-2`` and ``s-2`` have the colour ``u2``, and so on."""
    return [
        _MIXED.get(name) or COLOURS.get(name[2:]) or COLOURS[f"u{name[2:]}"] for name in classes
    ]


def _lanes(axes: Any, timeline: Timeline) -> None:
    scale = timeline.length / 100
    steps = [(box.left * scale, box.width * scale) for box in timeline.steps]
    colours = _colours(box.classes for box in timeline.steps)
    axes.broken_barh(steps, (-0.4, 0.8), facecolors=colours, edgecolors="white", linewidth=0.3)
    for number, strip in enumerate(timeline.strips, start=1):
        bars = [(start, end - start) for start, end in strip.spans]
        axes.broken_barh(bars, (number - 0.4, 0.8), facecolors=_colours([strip.classes]))
    names = ["steps", *(strip.name for strip in timeline.strips)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    _along(axes, timeline)


def _bars(axes: Any, rows: Sequence[LayerRow]) -> None:
    """Draw the steps that take longest, each a bar of its causes."""
    axes.set_title("the steps that take longest, by cause", fontsize=8, loc="left")
    names = [row.label for row in rows]
    left = [0] * len(rows)
    for field, (title, _) in CAUSES.items():
        values = [getattr(row.causes, field) for row in rows]
        axes.barh(range(len(rows)), values, left=left, color=CAUSE_COLOURS[field], label=title)
        left = [start + value for start, value in zip(left, values, strict=True)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("cycles", fontsize=_SMALL)
    axes.tick_params(labelsize=_SMALL)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(fontsize=_SMALL, loc="lower right", frameon=False)


def _along(axes: Any, timeline: Timeline) -> None:
    """Set up the common axis."""
    axes.set_xlim(0, timeline.length)
    axes.set_xlabel(timeline.unit, fontsize=_SMALL)
    axes.tick_params(labelsize=_SMALL)
    if timeline.unit == "cycles":
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _map(axes: Any, timeline: Timeline, row: MapRow) -> None:
    across, up = timeline.length / 100, row.peak / 100_000
    for box, colour in zip(row.boxes, _colours(box.classes for box in row.boxes), strict=True):
        left, width = box.left * across, box.width * across
        rows = (box.bottom * up, box.height * up)
        axes.broken_barh([(left, width)], rows, facecolors=[colour], edgecolors="white", lw=0.4)
        # Draw a name only where there is room: letters are about 0.5 % of the width, lines 8 % of
        # the height.
        if box.width > 0.55 * len(box.name) and box.height > 8:
            middle = (left + width / 2, rows[0] + rows[1] / 2)
            axes.text(*middle, box.name, ha="center", va="center", fontsize=6, clip_on=True)
    axes.set_ylim(0, row.peak / 1000)
    axes.set_ylabel("kB", fontsize=_SMALL)
    axes.set_title(f"{row.name}: {row.said}", fontsize=8, loc="left")
    _along(axes, timeline)


def _paint(axes: Any, drawing: Drawing) -> None:
    """Draw one of the page's figures: its lines, circles and words."""
    axes.set_title("roofline of the layers on accelerators", fontsize=8, loc="left")
    axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0), aspect="equal")
    axes.axis("off")
    for mark in drawing.marks:
        at: Mapping[str, Any] = mark.attributes
        words = mark.classes.split()
        if mark.tag == "line":
            heavy = "roof" in words
            (colour,) = _colours(words[-1:]) if heavy else [COLOURS["line"]]
            width = 1.5 if heavy else 0.6
            axes.plot([at["x1"], at["x2"]], [at["y1"], at["y2"]], color=colour, lw=width)
        elif mark.tag == "circle":
            (colour,) = _colours(words)
            axes.plot([at["cx"]], [at["cy"]], "o", color=colour, mec="white", ms=1.4 * at["r"])
        elif mark.tag == "text":
            side = "right" if "end" in words else "center" if "middle" in words else "left"
            colour = COLOURS["dim" if "tick" in words else "ink"]
            axes.text(at["x"], at["y"], mark.words, ha=side, color=colour, fontsize=_SMALL)
