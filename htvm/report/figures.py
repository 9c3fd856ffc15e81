"""The report's figures for papers and slides: timeline, memory maps and roofline as PNG."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from htvm.errors import DependencyError
from htvm.report.lanes import HOST, coarse, lanes_of
from htvm.report.roof import points_of
from htvm.report.table import count, milliseconds

if TYPE_CHECKING:
    from htvm.report.data import ReportData
    from htvm.report.picture_types import MemoryMap

__all__ = ["report_png"]

_MOST = 20_000  # rectangles of all lanes together
_WIDTH = 11.0  # inches
_DPI = 150
_HOST, _DMA = "#8a93a3", "#e08a1e"
_HUES = ("#2f6fde", "#c2497f", "#1c9a7c", "#b8860b", "#6a5acd", "#c4552d")
_TILE, _STAYS = "#8fcfc0", "#a99fe3"
_SMALL = 7  # points of text


def report_png(report: ReportData) -> bytes:
    """One figure: timeline and maps over one axis, below them the roofline where there is one.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    try:
        figures: Any = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise DependencyError(
            "figures need the package 'matplotlib', which is not installed",
            where="report as .png",
            hint="pip install 'htvm[explore]'",
        ) from error
    panels = _panels(report)
    heights = [height for height, _ in panels]
    figure = figures.Figure(figsize=(_WIDTH, 0.7 + sum(heights)), layout="constrained")
    figure.suptitle(_title(report), fontsize=11)
    grid = figure.add_gridspec(len(panels), 1, height_ratios=heights)
    for number, (_, draw) in enumerate(panels):
        draw(figure.add_subplot(grid[number]))
    stream = io.BytesIO()
    # Without the date and version, so that the same report gives the same bytes.
    figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    return stream.getvalue()


def _title(report: ReportData) -> str:
    summary = report.summary
    title = f"{summary.network} for {summary.target}"
    if summary.cycles is None:
        return f"{title}: no cycles, {report.no_cycles}"
    ms = milliseconds(summary.latency_ms)
    return f"{title}: {count(summary.cycles)} cycles, {ms} ms at {summary.clock_hz / 1e6:g} MHz"


def _panels(report: ReportData) -> list[tuple[float, Callable[[Any], None]]]:
    """(height in inches, what draws it) of each panel."""
    colours = _colours(report)
    lanes = 1 + len(lanes_of(report))
    found: list[tuple[float, Callable[[Any], None]]] = [
        (0.7 + 0.26 * lanes, lambda axes: _timeline(axes, report, colours))
    ]
    for entry in report.maps:
        if entry.blocks:
            found.append((1.9, lambda axes, entry=entry: _map(axes, report, entry)))  # type: ignore[misc]
    if points_of(report) and report.machine is not None:
        found.append((3.6, lambda axes: _roofline(axes, report, colours)))
    return found


def _colours(report: ReportData) -> dict[str, str]:
    """The colour of each unit: the host grey, the DMA that of transfers, cores of a kind alike."""
    names = [core.name for core in report.machine.cores] if report.machine else []
    names += [row.accelerator for row in report.layers]
    names += [lane.name for lane in lanes_of(report)]
    colours = {"cpu": _HOST, HOST: _HOST, "dma": _DMA}
    kinds: dict[str, str] = {}
    for name in names:
        if name not in colours:
            kind = name.rstrip("0123456789") or name
            colours[name] = kinds.setdefault(kind, _HUES[len(kinds) % len(_HUES)])
    return colours


def _spans(report: ReportData) -> list[tuple[int, int]]:
    """(start, length) of each step, in cycles, or in steps where there are none."""
    if report.summary.cycles is None:
        return [(index, 1) for index in range(len(report.layers))]
    return [(row.start or 0, row.cycles or 0) for row in report.layers]


def _timeline(axes: Any, report: ReportData, colours: dict[str, str]) -> None:
    spans = _spans(report)
    computes = ("", "layer", "cpu")
    steps = [colours[row.accelerator if row.kind in computes else "cpu"] for row in report.layers]
    axes.broken_barh(spans, (-0.4, 0.8), facecolors=steps, edgecolors="white", linewidth=0.3)
    lanes, _ = coarse(lanes_of(report), _MOST)
    for number, lane in enumerate(lanes, start=1):
        bars = [(start, end - start) for start, end in lane.spans]
        axes.broken_barh(bars, (number - 0.4, 0.8), facecolors=colours[lane.name])
    axes.set_yticks(range(len(lanes) + 1), ["steps", *(lane.name for lane in lanes)])
    axes.invert_yaxis()
    _along(axes, report, spans)


def _along(axes: Any, report: ReportData, spans: Sequence[tuple[int, int]]) -> None:
    """The common axis."""
    cycles = report.summary.cycles
    axes.set_xlim(0, cycles or len(spans))
    axes.set_xlabel("steps" if cycles is None else "cycles", fontsize=_SMALL)
    axes.tick_params(labelsize=_SMALL)
    if cycles is not None:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _map(axes: Any, report: ReportData, entry: MemoryMap) -> None:
    patches: Any = importlib.import_module("matplotlib.patches")
    spans = _spans(report)
    whole = report.summary.cycles or len(spans)
    for block in entry.blocks:
        start, end = spans[block.first][0], sum(spans[block.last])
        colour = _STAYS if block.resident else _TILE
        corner, height = (start, block.offset / 1000), block.bytes / 1000
        axes.add_patch(
            patches.Rectangle(corner, end - start, height, fc=colour, ec="white", lw=0.4)
        )
        # A name where it has room: letters are about 0.5 % of the width, lines 8 % of the height.
        fits = end - start > 0.0055 * whole * len(block.name)
        if fits and block.bytes > 0.08 * entry.peak:
            axes.text(
                start + (end - start) / 2, corner[1] + height / 2, block.name,
                ha="center", va="center", fontsize=6, clip_on=True,
            )  # fmt: skip
    axes.set_ylim(0, entry.peak / 1000)
    of = "" if entry.limit == entry.peak else f" of {count(entry.limit)}"
    axes.set_ylabel("kB", fontsize=_SMALL)
    axes.set_title(f"{entry.memory}: {count(entry.peak)}{of} B", fontsize=8, loc="left")
    _along(axes, report, spans)


def _roofline(axes: Any, report: ReportData, colours: dict[str, str]) -> None:
    points, machine = points_of(report), report.machine
    assert machine is not None
    used = dict.fromkeys(point.accelerator for point in points)
    low = min(point.intensity for point in points) / 2
    high = max(point.intensity for point in points) * 2
    width = machine.dma_bytes_per_cycle
    peaks = {name: peak for name in used if (peak := machine.peak_of(name))}
    if width:
        high = max([high, *(2 * peak / width for peak in peaks.values())])
        top = max([high * width / 8, *peaks.values()])
        end = min(high, top / width)
        axes.plot([low, end], [low * width, end * width], color=_DMA, lw=1.5)
        axes.annotate(f"DMA, {width:g} B/cycle", (low, low * width), fontsize=_SMALL,
                      xytext=(14, 2), textcoords="offset points", va="top")  # fmt: skip
    for name, peak in peaks.items():
        start = max(low, peak / width) if width else low
        axes.plot([start, high], [peak, peak], color=colours[name], lw=1.5)
        axes.text(high, peak * 1.1, f"{name}, {peak:,.0f} MAC/cycle ", ha="right", fontsize=_SMALL)
    for name in used:
        mine = [point for point in points if point.accelerator == name]
        axes.scatter(
            [point.intensity for point in mine], [point.rate for point in mine],
            s=20, color=colours[name], edgecolors="white", linewidths=0.5, zorder=3, label=name,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(low, high))
    axes.set_ylim(top=3 * max([*peaks.values(), *(point.rate for point in points)]))
    axes.set_xlabel("MAC per byte from L2", fontsize=_SMALL)
    axes.set_ylabel("MAC per cycle", fontsize=_SMALL)
    axes.tick_params(labelsize=_SMALL)
    axes.grid(True, alpha=0.25)
    axes.set_title("roofline of the layers on accelerators", fontsize=8, loc="left")
    axes.legend(loc="lower right", fontsize=_SMALL)
