"""Lanes over time: who worked when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from htvm.tools.plots.bars import SMALL, counted, new_figure
from htvm.tools.plots.colours import painted, unit_classes
from htvm.tools.plots.lanes import Worked, coarse, folded, lanes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
