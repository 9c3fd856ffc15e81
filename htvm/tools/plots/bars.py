"""Horizontal bars with words beside them."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from htvm.shown import optional
from htvm.tools.plots.colours import LIGHT, Painted, painted

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


SMALL = 7  # points of text
_WIDTH = 8.0  # inches
_DPI = 110  # in notebooks, and in files of sweeps
_BAR = 0.34  # inches for each bar
_ROOM = 1.3  # times the longest bar: room for the words beside it
_WIDE = 8  # times the least value: a linear axis would not show it
_PLAIN = 1000  # numbers below it need no separators, but perhaps a point
_MARKERS = "os^Dv*"  # of series
_WIDER = 8  # the same, on a logarithmic axis


@dataclass(frozen=True)
class Bar:
    """One bar.

    Attributes:
        name: what stands at its left end.
        value: its length; None for no bar, only words.
        words: what stands beside it.
        colour: its class or meaning (`htvm.tools.plots.colours`).
        hollow: whether only its outline is drawn: a limit, or a figure that is not ours.
    """

    name: str
    value: float | None
    words: str
    colour: str
    hollow: bool = False


def new_figure(width: float, height: float, extra: str = "explore") -> Figure:
    """Return an empty figure of a size in inches, which notebooks show without pyplot, too.

    Args:
        width, height: its size.
        extra: what to install if matplotlib is not there.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    figures: Any = optional("matplotlib.figure", "figures", extra)
    figure: Any = figures.Figure(figsize=(width, height), layout="constrained")
    figure._repr_png_ = partial(picture, figure)
    shown: Figure = figure
    return shown


def picture(figure: Figure, form: str = "png", dpi: int = _DPI) -> bytes:
    """Return a figure as a file's contents; as PNG the same bytes for the same figure."""
    stream = io.BytesIO()
    metadata = {"Software": None} if form == "png" else None  # without matplotlib's version
    figure.savefig(stream, format=form, dpi=dpi, metadata=metadata)
    return stream.getvalue()


def counted(value: float, _: object = None) -> str:
    """Return a number of an axis with separators."""
    return f"{value:,.0f}"


def readable(axis: Any, values: Sequence[float]) -> None:
    """Give an axis of a figure plain numbers, and a logarithmic scale where values need one."""
    low, high = min(values, default=0), max(values, default=0)
    if 0 < low and high > _WIDE * low:
        axis._set_axes_scale("log")
        ticker: Any = optional("matplotlib.ticker", "figures")
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(ticker.NullLocator())
    if high >= _PLAIN:
        axis.set_major_formatter(counted)
    elif 0 < low:
        axis.set_major_formatter(lambda value, _: f"{value:g}")


def draw_points(
    axes: Any, x: Sequence[float], y: Sequence[float], number: int, label: str | None
) -> None:
    """Draw the points of a series: hollow, of another form and size than those of other numbers.

    So that points of several series at one place are seen.
    """
    axes.scatter(
        x, y, s=16 + 22 * (number % 4), marker=_MARKERS[number % len(_MARKERS)],
        facecolors="none", edgecolors=f"C{number % 10}", label=label,
    )  # fmt: skip


def draw_cells(
    axes: Any, cells: NDArray[Any], empty: str, words: Callable[[float], str], ink: str
) -> Any:
    """Draw numbers as colours, large ones dark, with their words; return the image for a scale.

    Args:
        axes: matplotlib's axes.
        cells: the numbers [up, across]; NaN for none.
        empty: what is written where there is none.
        words: what is written of a number.
        ink: colour of words on light cells.
    """
    image = axes.imshow(cells, origin="lower", aspect="auto", cmap="viridis_r")
    numbers = cells[~np.isnan(cells)]
    for (up, across), value in np.ndenumerate(cells):
        some = not np.isnan(value)
        dark = some and 2 * value > numbers.min() + numbers.max()
        axes.annotate(
            words(value) if some else empty, (across, up), ha="center", va="center",
            fontsize=SMALL, color="white" if dark else ink,
        )  # fmt: skip
    return image


def bar_figure(
    title: str, bars: Sequence[Bar], axis: str, *, logarithmic: bool = False,
    keys: Mapping[str, str] | None = None,
) -> Figure:  # fmt: skip
    """Draw bars from the top down.

    Args:
        title: of the figure.
        bars: the bars.
        axis: what their lengths are, with the unit.
        logarithmic: whether the axis is; its lengths must be above 0.
        keys: meaning -> word for the legend; none by default.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    figure = new_figure(_WIDTH, 1.1 + _BAR * len(bars))
    axes = figure.add_subplot()
    for place, bar in enumerate(bars):
        colour = painted(bar.colour)
        length = bar.value or 0
        axes.barh(
            place, length, color="none" if bar.hollow else colour, edgecolor=colour,
            hatch="///" if bar.hollow else None,
        )  # fmt: skip
        axes.annotate(
            bar.words, (length, place), (4, 0), textcoords="offset points", va="center",
            fontsize=SMALL + 1, color=LIGHT["ink"],
        )  # fmt: skip
    axes.set_yticks(range(len(bars)), [bar.name for bar in bars])
    axes.invert_yaxis()
    lengths = [bar.value for bar in bars if bar.value]
    if logarithmic:
        axes.set_xscale("log")
    else:
        axes.xaxis.set_major_formatter(counted)
    if lengths:
        low = 10 ** math.floor(math.log10(min(lengths) / 1.5)) if logarithmic else 0
        axes.set_xlim(low, (_WIDER if logarithmic else _ROOM) * max(lengths))
    axes.set_xlabel(axis)
    axes.set_title(title, fontsize=11)
    if keys:
        _legend(axes, {painted(name): said for name, said in keys.items()})
    return figure


def _legend(axes: Any, said: Mapping[Painted, str]) -> None:
    """Say what the colours of bars mean."""
    patches = optional("matplotlib.patches", "figures")
    handles = [patches.Patch(color=colour, label=words) for colour, words in said.items()]
    axes.legend(handles=handles, fontsize=SMALL, loc="lower right", frameon=False)


CAUSES: Mapping[str, tuple[str, str]] = {
    "array": ("compute", "an accelerator's array computes"),
    "weights": ("weights", "an accelerator loads weights"),
    "trigger": ("trigger", "an accelerator is busy with anything else"),
    "dma_alone": ("DMA alone", "transfers that no accelerator hides"),
    "host_alone": ("host alone", "neither an accelerator nor the DMA is busy"),
}
"""Field of `htvm.result.Causes` -> its name and its meaning."""


def draw_causes(axes: Any, names: Sequence[str], causes: Sequence[Any]) -> None:
    """Draw bars of cycles, each of its causes, the first on top.

    Args:
        axes: matplotlib's axes.
        names: of the bars.
        causes: `htvm.result.Causes` of each.
    """
    left = [0] * len(names)
    for field, (title, _) in CAUSES.items():
        values = [getattr(each, field) for each in causes]
        colour = painted(f"c-{field}")
        axes.barh(range(len(names)), values, left=left, color=colour, label=title)
        left = [start + value for start, value in zip(left, values, strict=True)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("cycles", fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    axes.xaxis.set_major_formatter(counted)
    axes.legend(fontsize=SMALL, loc="lower right", frameon=False)
