"""The page's figures as one PNG, for papers and slides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from htvm.errors import InputError
from htvm.tools.plots.bars import SMALL, Bar, bar_figure, draw_causes, new_figure, picture
from htvm.tools.plots.colours import LIGHT, painted
from htvm.tools.plots.timeline import draw_memory, draw_strips, shown_lanes, step_axis, strips_of
from htvm.tools.report.html.drawings import roofline_of
from htvm.tools.report.html.tables import steps_by_name, unit_classes_of
from htvm.tools.report.table import count, milliseconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htvm.tools.report.data import LayerRow, ReportData
    from htvm.tools.report.html.drawings import Drawing

_WIDTH = 11.0  # inches
_DPI = 150
_SLOWEST = 12  # steps that have a bar


def report_png(report: ReportData) -> bytes:
    """Draw one figure: timeline, slowest steps, memory maps, and the roofline if there is one.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    return picture(_figure(report, _panels(report)), dpi=_DPI)


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


def accuracy_figure(report: ReportData) -> Figure:
    """Draw the SQNR of each layer in dB, in the colours of the units that run them.

    Raises:
        DependencyError: matplotlib is not installed.
        InputError: no SQNR was measured.
    """
    if not report.sqnr:
        raise InputError(
            "there is no accuracy to plot: retargeting changed nothing, or it was not measured",
            where="report",
        )
    classes = unit_classes_of(report)
    homes = {node.name: node.accelerator for node in report.graph}
    bars = [
        Bar(row.layer, row.sqnr_db, f"{row.sqnr_db:.1f} dB", classes[homes.get(row.layer, "cpu")])
        for row in report.sqnr
    ]
    if report.output_sqnr_db is not None:
        bars.append(Bar("output", report.output_sqnr_db, f"{report.output_sqnr_db:.1f} dB", "ink"))
    used = dict.fromkeys(homes.get(row.layer, "cpu") for row in report.sqnr)
    title = f"{report.summary.network} for {report.summary.target}: SQNR against the source"
    return bar_figure(
        title, bars, "dB of SQNR, more is closer", keys={classes[unit]: unit for unit in used}
    )


def _figure(report: ReportData, panels: Sequence[_Panel]) -> Figure:
    heights = [panel.height for panel in panels]
    figure = new_figure(_WIDTH, 0.7 + sum(heights))
    figure.suptitle(_title(report), fontsize=11)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for number, panel in enumerate(panels):
        panel.draw(figure.add_subplot(grid[number]))
    return figure


def _title(report: ReportData) -> str:
    summary = report.summary
    title = f"{summary.network} for {summary.target}"
    if summary.instructions is not None:
        return f"{title}: {count(summary.instructions)} instructions"
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
    classes = unit_classes_of(report)
    axis = step_axis(report.layers, report.summary.cycles, report.summary.instructions)
    computing = ("", "layer", "cpu")
    units = [row.accelerator if row.kind in computing else "cpu" for row in report.layers]
    lanes, _ = shown_lanes(report.timeline, report.summary.cycles)
    strips = strips_of(units, axis, lanes, classes)
    roofline = roofline_of(report, classes, steps_by_name(report))
    found = [
        _Panel("timeline", 0.7 + 0.26 * len(strips), lambda axes: draw_strips(axes, strips, axis))
    ]
    slowest = [row for row in report.layers if row.cycles and row.causes is not None]
    slowest = sorted(slowest, key=lambda row: -(row.cycles or 0))[:_SLOWEST]
    if slowest:
        height = 0.7 + 0.2 * len(slowest)
        found.append(_Panel("layers", height, lambda axes: _bars(axes, slowest)))
    found += [
        _Panel("memory", 1.9, partial(draw_memory, entry=entry, axis=axis))
        for entry in report.maps
        if entry.blocks
    ]
    if roofline is not None:
        found.append(_Panel("roofline", 4.2, lambda axes: _paint(axes, roofline)))
    return found


def _bars(axes: Any, rows: Sequence[LayerRow]) -> None:
    """Draw the steps that take longest, each a bar of its causes."""
    axes.set_title("the steps that take longest, by cause", fontsize=8, loc="left")
    draw_causes(axes, [row.label for row in rows], [row.causes for row in rows])


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
            colour = painted(words[-1].replace("s-", "u-") if heavy else "line")
            width = 1.5 if heavy else 0.6
            axes.plot([at["x1"], at["x2"]], [at["y1"], at["y2"]], color=colour, lw=width)
        elif mark.tag == "circle":
            colour = painted(words[0])
            axes.plot([at["cx"]], [at["cy"]], "o", color=colour, mec="white", ms=1.4 * at["r"])
        elif mark.tag == "text":
            side = "right" if "end" in words else "center" if "middle" in words else "left"
            colour = LIGHT["dim" if "tick" in words else "ink"]
            axes.text(at["x"], at["y"], mark.words, ha=side, color=colour, fontsize=SMALL)
