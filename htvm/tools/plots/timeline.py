"""What lies along the steps of a run: their axis, lanes of who worked when, and memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from htvm.tools.plots.bars import SMALL, counted, new_figure
from htvm.tools.plots.colours import painted, unit_classes
from htvm.tools.plots.lanes import Lane, Span, coarse, folded, lanes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from htvm.activity import Interval, MemoryMap


class Step(Protocol):
    """A step of a program, with what was counted of it."""

    @property
    def start(self) -> int | None:
        """First cycle, from the entry function's call."""

    @property
    def cycles(self) -> int | None:
        """Cycles that it took."""

    @property
    def instructions(self) -> int | None:
        """Instructions that it took."""


@dataclass(frozen=True)
class StepAxis:
    """An axis.

    Attributes:
        unit: "cycles", "instructions" or "steps".
        length: its length in its unit.
        spans: the interval of each step on it.
    """

    unit: str
    length: int
    spans: tuple[Span, ...]


def step_axis(steps: Sequence[Step], cycles: int | None, instructions: int | None) -> StepAxis:
    """Return the axis of a run's steps.

    Args:
        steps: the steps, in execution order.
        cycles, instructions: of the whole run, if counted.
    """
    if cycles:
        timed = ((step.start or 0, step.cycles or 0) for step in steps)
        return StepAxis("cycles", cycles, tuple((first, first + took) for first, took in timed))
    if instructions:
        # One after another; what is left at the end is the entry function's own.
        ends = list(accumulate(step.instructions or 0 for step in steps))
        length = max(instructions, *ends)
        return StepAxis("instructions", length, tuple(zip([0, *ends], ends, strict=False)))
    spans = tuple((index, index + 1) for index in range(len(steps)))
    return StepAxis("steps", max(1, len(steps)), spans)


_MOST = 20_000  # rectangles in all lanes: a page with more is large and slow to show
_WIDTH = 11.0  # inches
_HEIGHT = 1.9  # inches of each memory
# A name is drawn where there is room: letters are about this fraction of the width, lines this
# fraction of the height.
_LETTER, _LINE = 0.0055, 0.08


@dataclass(frozen=True)
class Strip:
    """One row over time.

    Attributes:
        name: what stands at its left end.
        spans: (start, length) of each rectangle.
        classes: class of each, or one for all.
    """

    name: str
    spans: tuple[Span, ...]
    classes: tuple[str, ...]


def shown_lanes(timeline: Iterable[Interval], cycles: int | None) -> tuple[tuple[Lane, ...], int]:
    """Return the lanes of a run that are drawn, and the gap in cycles that was closed in them."""
    return coarse(folded(lanes_of(timeline, cycles)), _MOST)


def strips_of(
    units: Sequence[str], axis: StepAxis, lanes: Sequence[Lane], classes: Mapping[str, str]
) -> list[Strip]:
    """Return when each step ran, and when the unit of each lane worked.

    Args:
        units: the unit of each step: "cpu", an accelerator.
        axis: the axis, with the steps' intervals.
        lanes: the units' work.
        classes: unit -> class of its colour.
    """
    steps = tuple(classes.get(unit, "u-host") for unit in units)
    rows = [("steps", axis.spans, steps)]
    rows += [(lane.name, lane.spans, (classes.get(lane.name, "u-host"),)) for lane in lanes]
    return [
        Strip(name, tuple((start, end - start) for start, end in spans), colours)
        for name, spans, colours in rows
    ]


def draw_strips(axes: Any, strips: Sequence[Strip], axis: StepAxis) -> None:
    """Draw rows of rectangles, the first on top; the first has thin gaps between rectangles."""
    for place, strip in enumerate(strips):
        colours = [painted(name) for name in strip.classes]
        edges = {} if place else {"edgecolors": "white", "linewidth": 0.3}
        axes.broken_barh(strip.spans, (place - 0.4, 0.8), facecolors=colours, **edges)
    axes.set_yticks(range(len(strips)), [strip.name for strip in strips])
    axes.invert_yaxis()
    _along(axes, axis)


def _along(axes: Any, axis: StepAxis) -> None:
    """Set up an axis over time."""
    axes.set_xlim(0, axis.length)
    axes.set_xlabel(axis.unit, fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    if axis.unit != "steps":
        axes.xaxis.set_major_formatter(counted)


def timeline_figure(
    title: str, units: Sequence[str], axis: StepAxis, timeline: Iterable[Interval]
) -> Figure:
    """Draw when each step ran, and when the host, the DMA and each accelerator worked.

    Args:
        title: of the figure.
        units, axis: as for `strips_of`.
        timeline: the work of every device.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    lanes, _ = shown_lanes(timeline, axis.length)
    classes = unit_classes([*units, *(lane.name for lane in lanes)])
    strips = strips_of(units, axis, lanes, classes)
    figure = new_figure(_WIDTH, 1.2 + 0.26 * len(strips))
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=11)
    draw_strips(axes, strips, axis)
    return figure


def draw_memory(axes: Any, entry: MemoryMap, axis: StepAxis) -> None:
    """Draw what a memory holds, up to its peak: boxes as high as the bytes of a tensor."""
    for block in entry.blocks:
        start, end = axis.spans[block.first][0], axis.spans[block.last][1]
        across, up = (start, end - start), (block.offset / 1000, block.bytes / 1000)
        colour = painted("m-stays" if block.resident else "m-tile")
        axes.broken_barh([across], up, facecolors=[colour], edgecolors="white", lw=0.4)
        wide = across[1] > _LETTER * axis.length * len(block.name)
        if wide and block.bytes > _LINE * entry.peak:
            middle = (across[0] + across[1] / 2, up[0] + up[1] / 2)
            axes.text(*middle, block.name, ha="center", va="center", fontsize=6, clip_on=True)
    axes.set_ylim(0, entry.peak / 1000)
    axes.set_ylabel("kB", fontsize=SMALL)
    limit = "" if entry.limit == entry.peak else f" of {entry.limit:,}"
    axes.set_title(f"{entry.memory}: {entry.peak:,}{limit} B", fontsize=8, loc="left")
    _along(axes, axis)


def memory_figure(maps: Sequence[MemoryMap], axis: StepAxis) -> Figure:
    """Draw memories below each other.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    figure = new_figure(_WIDTH, 0.4 + _HEIGHT * len(maps))
    for number, entry in enumerate(maps):
        draw_memory(figure.add_subplot(len(maps), 1, number + 1), entry, axis)
    return figure
