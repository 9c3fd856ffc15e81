"""What a program needs of each memory, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htvm.tools.plots.bars import Bar, bar_figure
from htvm.tools.plots.colours import LIGHT
from htvm.tools.report.table import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST = 150.0  # percent that the axis shows at least: room for words beside full bars


def memory_figure(title: str, levels: Sequence[tuple[str, int, int, int | None, str]]) -> Figure:
    """Draw needed and planned bytes in percent of each memory; a line marks the limit.

    Args:
        title: of the figure.
        levels: of each memory its name, limit, needed and planned bytes, and whether it fits.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    bars = []
    for name, limit, needed, planned, fits in levels:
        share = 100 / limit if limit else 0.0
        room = f"of {count(limit)} B"
        words = f"{count(needed)} {room}: {fits}"
        bars.append(Bar(f"{name}, needed", share * needed, words, "arena", hollow=True))
        if planned is not None:
            words = f"{count(planned)} {room}"
            bars.append(Bar(f"{name}, planned", share * planned, words, "arena"))
    figure = bar_figure(title, bars, "% of the memory")
    (axes,) = figure.axes
    axes.axvline(100, color=LIGHT["ink"], linestyle="--", linewidth=1)
    axes.set_xlim(0, max(_LEAST, axes.get_xlim()[1]))
    return figure
