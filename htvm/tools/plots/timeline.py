"""What lies along the steps of a run: their axis, lanes of who worked when, and memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from htvm.tools.plots.bars import SMALL, counted, new_figure
from htvm.tools.plots.colours import painted, unit_classes
from htvm.tools.plots.lanes import Span, Worked, coarse, folded, lanes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


_MOST = 20_000  # rectangles in all lanes
_WIDTH = 11.0  # inches


@dataclass(frozen=True)
class Strip:
    """One row over time.

    Attributes:
        name: what stands at its left end.
        spans: (start, length) of each rectangle.
        classes: class of each, or one for all.
    """

    name: str
    spans: tuple[tuple[float, float], ...]
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Worker:
    """A step of a program: its unit ("cpu", an accelerator), and when it ran, on the axis."""

    unit: str
    start: int
    length: int


def draw_strips(axes: Any, strips: Sequence[Strip]) -> None:
    """Draw rows of rectangles, the first on top; the first has thin gaps between rectangles."""
    for place, strip in enumerate(strips):
        colours = [painted(name) for name in strip.classes]
        edges = {} if place else {"edgecolors": "white", "linewidth": 0.3}
        axes.broken_barh(strip.spans, (place - 0.4, 0.8), facecolors=colours, **edges)
    axes.set_yticks(range(len(strips)), [strip.name for strip in strips])
    axes.invert_yaxis()


def along(axes: Any, length: float, unit: str) -> None:
    """Set up an axis over time."""
    axes.set_xlim(0, length)
    axes.set_xlabel(unit, fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    if unit != "steps":
        axes.xaxis.set_major_formatter(counted)


def timeline_figure(
    title: str,
    steps: Sequence[Worker],
    timeline: Iterable[Worked],
    length: int,
    unit: str = "cycles",
) -> Figure:
    """Draw when each step ran, and when the host, the DMA and each accelerator worked.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    lanes, _ = coarse(folded(lanes_of(timeline, length)), _MOST)
    classes = unit_classes([*(step.unit for step in steps), *(lane.name for lane in lanes)])
    strips = [
        Strip(
            "steps",
            tuple((step.start, step.length) for step in steps),
            tuple(classes[step.unit] for step in steps),
        )
    ]
    strips += [
        Strip(lane.name, tuple((start, end - start) for start, end in lane.spans),
              (classes[lane.name],))
        for lane in lanes
    ]  # fmt: skip
    figure = new_figure(_WIDTH, 1.2 + 0.26 * len(strips))
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=11)
    draw_strips(axes, strips)
    along(axes, length, unit)
    return figure


_WIDTH = 11.0  # inches
_HEIGHT = 1.9  # inches of each memory
# A name is drawn where there is room: letters are about this fraction of the width, lines this
# fraction of the height.
_LETTER, _LINE = 0.0055, 0.08


@dataclass(frozen=True)
class Area:
    """A tensor in a memory.

    Attributes:
        name: of the tensor.
        start, end: when it is there, in units of the axis.
        offset, size: where it is, in bytes.
        classes: class of its colour.
    """

    name: str
    start: float
    end: float
    offset: float
    size: float
    classes: str


def memory_title(name: str, peak: int, limit: int) -> str:
    """Say how full a memory is."""
    return f"{name}: {peak:,} B" if limit == peak else f"{name}: {peak:,} of {limit:,} B"


def draw_memory(
    axes: Any, title: str, areas: Sequence[Area], peak: int, length: float, unit: str
) -> None:
    """Draw one memory up to its peak, along an axis of ``length`` cycles or steps."""
    for area in areas:
        across, up = (area.start, area.end - area.start), (area.offset / 1000, area.size / 1000)
        colour = painted(area.classes)
        axes.broken_barh([across], up, facecolors=[colour], edgecolors="white", lw=0.4)
        if across[1] > _LETTER * length * len(area.name) and area.size > _LINE * peak:
            middle = (across[0] + across[1] / 2, up[0] + up[1] / 2)
            axes.text(*middle, area.name, ha="center", va="center", fontsize=6, clip_on=True)
    axes.set_ylim(0, peak / 1000)
    axes.set_ylabel("kB", fontsize=SMALL)
    axes.set_title(title, fontsize=8, loc="left")
    along(axes, length, unit)


def memory_figure(
    maps: Sequence[tuple[str, int, int, Sequence[Area]]], length: float, unit: str
) -> Figure:
    """Draw memories below each other.

    Args:
        maps: of each its name, peak and size in bytes, and what it holds.
        length, unit: of the axis: "cycles" or "steps".

    Raises:
        DependencyError: matplotlib is not installed.
    """
    figure = new_figure(_WIDTH, 0.4 + _HEIGHT * len(maps))
    for number, (name, peak, limit, areas) in enumerate(maps):
        axes = figure.add_subplot(len(maps), 1, number + 1)
        draw_memory(axes, memory_title(name, peak, limit), areas, peak, length, unit)
    return figure
