"""What a memory holds over time: boxes as high as the bytes of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from htvm.tools.plots.bars import SMALL, new_figure
from htvm.tools.plots.colours import painted
from htvm.tools.plots.strips import along

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
