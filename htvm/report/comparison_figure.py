"""The time of each configuration of a comparison, as one figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from htvm.report.html.parts import COLOURS
from htvm.report.table import milliseconds
from htvm.shown import optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Bar", "comparison_figure"]

_WIDTH = 8.0  # inches
_BAR = 0.42  # inches for each bar
_ROOM = 8  # times the longest bar: room for the words beside it


@dataclass(frozen=True)
class Bar:
    """One configuration.

    Attributes:
        name: its name.
        ms: time of one inference.
        speed_up: over the baseline; None for published ones.
        colour: name of its colour on the page.
        published: whether it is a published figure.
    """

    name: str
    ms: float
    speed_up: float | None
    colour: str
    published: bool = False

    @property
    def words(self) -> str:
        """What stands beside it."""
        times = "" if self.speed_up is None else f", {self.speed_up:.1f}x"
        return f"{milliseconds(self.ms)} ms{times}"


def comparison_figure(title: str, bars: Sequence[Bar]) -> Figure:
    """Draw bars of times on a logarithmic scale, published ones hatched.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    figures: Any = optional("matplotlib.figure", "figures")
    size = (_WIDTH, 1.2 + _BAR * len(bars))
    figure: Figure = figures.Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    for place, bar in enumerate(bars):
        colour = COLOURS[bar.colour]
        axes.barh(
            place, bar.ms, color="none" if bar.published else colour, edgecolor=colour,
            hatch="///" if bar.published else None,
        )  # fmt: skip
        axes.annotate(bar.words, (bar.ms, place), (4, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars])
    axes.invert_yaxis()
    axes.set_xscale("log")
    if bars:
        times = [bar.ms for bar in bars]
        axes.set_xlim(10 ** math.floor(math.log10(min(times) / 1.5)), _ROOM * max(times))
    axes.set_xlabel("ms of one inference, logarithmic")
    axes.set_title(title)
    return figure
