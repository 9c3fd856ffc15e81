"""Figures of sweeps, drawn with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from htvm.shown import optional
from htvm.tools.plots.bars import MARKERS, counted, new_figure, readable
from htvm.tools.plots.colours import LIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from htvm.tools.sweeping.space import Axis, Space

_LABELS = {
    "area": "area, in the unit of the costs",
    "cycles": "cycles, all networks",
    "ms": "ms, all networks",
    "energy_uj": "energy in µJ, all networks",
    "moved_bytes": "bytes to and from L2, all networks",
}


def pareto(
    totals: DataFrame,
    values: np.ndarray,
    names: tuple[str, str],
    colour: str | None,
    best: np.ndarray,
) -> Figure:
    """Draw designs as points, and the front as steps through those that nothing beats."""
    figure = new_figure(6.4, 4.2, "sweep")
    axes = figure.add_subplot()
    groups: Any = [("", totals.index)] if colour is None else totals.groupby(colour).groups.items()
    for number, (label, rows) in enumerate(groups):
        shown = None if colour is None else f"{colour}={label}"
        # Hollow, of different forms and sizes: equal designs lie on top of each other.
        axes.scatter(
            values[rows, 0], values[rows, 1], s=16 + 22 * (number % 4), label=shown,
            marker=MARKERS[number % len(MARKERS)], facecolors="none", edgecolors=f"C{number % 10}",
        )  # fmt: skip
    order = np.argsort(values[best, 0], kind="stable")
    axes.step(
        *values[best][order].T, where="post", color=LIGHT["ink"], lw=1.2, label="Pareto front"
    )
    axes.set_xlabel(_LABELS.get(names[0], names[0]))
    axes.set_ylabel(_LABELS.get(names[1], names[1]))
    readable(axes.xaxis, list(values[:, 0]))
    readable(axes.yaxis, list(values[:, 1]))
    if len(groups) <= 10:
        axes.legend(fontsize=8)
    return figure


def parallel(totals: DataFrame, space: Space, chosen: Sequence[str]) -> Figure:
    """Draw one line for each design over parameters and figures, coloured by the last figure."""
    colours = optional("matplotlib", "figures", "sweep").colormaps["viridis"]
    columns: list[tuple[str, np.ndarray, list[tuple[float, str]]]] = []
    for axis in space.axes:
        levels = {value: number for number, value in enumerate(_ordered(axis))}
        top = max(len(levels) - 1, 1)
        places = np.array([levels[value] / top for value in totals[axis.parameter.name]])
        ticks = [(number / top, axis.parameter.text(value)) for value, number in levels.items()]
        columns.append((axis.parameter.name, places, ticks[:: max(1, len(ticks) // 8)]))
    for name in chosen:
        values = totals[name].to_numpy(dtype=float)
        low, high = values.min(), values.max()
        places = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
        columns.append((_named(name), places, [(0.0, _number(low)), (1.0, _number(high))]))
    figure = new_figure(1.5 * len(columns) + 1.5, 4.0, "sweep")
    axes = figure.add_subplot()
    for number in np.argsort(-columns[-1][1], kind="stable"):
        line = [places[number] for _, places, _ in columns]
        axes.plot(range(len(columns)), line, color=colours(1 - columns[-1][1][number]), lw=1, alpha=0.6)  # fmt: skip  # noqa: E501
    for number, (_, _, ticks) in enumerate(columns):
        axes.axvline(number, color="0.6", lw=0.8)
        for place, label in ticks:
            axes.annotate(label, (number, place), fontsize=7, xytext=(3, 2),
                          textcoords="offset points")  # fmt: skip
    axes.set_xticks(range(len(columns)), [name for name, _, _ in columns])
    axes.set_yticks([])
    axes.set_xlim(-0.2, len(columns) - 0.5)
    return figure


def heat(totals: DataFrame, x: Axis, y: Axis, name: str) -> Figure:
    """Draw the smallest value of a figure for each pair of values of two parameters."""
    across, up = _ordered(x), _ordered(y)
    least = totals.groupby([x.parameter.name, y.parameter.name])[name].min()
    cells = np.array([[float(least.get((a, b), np.nan)) for a in across] for b in up])
    figure = new_figure(1.2 + 0.8 * max(len(across), 4), 1.2 + 0.5 * max(len(up), 4), "sweep")
    axes = figure.add_subplot()
    image = axes.imshow(cells, origin="lower", aspect="auto", cmap="viridis_r")
    axes.set_xticks(range(len(across)), [x.parameter.text(value) for value in across])
    axes.set_yticks(range(len(up)), [y.parameter.text(value) for value in up])
    axes.set_xlabel(x.parameter.name)
    axes.set_ylabel(y.parameter.name)
    for row, column in np.ndindex(cells.shape):
        value = cells[row, column]
        # Large values are dark.
        dark = 2 * value > np.nanmin(cells) + np.nanmax(cells)
        axes.annotate("nothing\nran" if np.isnan(value) else _number(value), (column, row),
                      ha="center", va="center", fontsize=7,
                      color="white" if dark else "0.15")  # fmt: skip
    figure.colorbar(image, label=f"least {_LABELS.get(name, name)}", format=counted)
    return figure


def _named(name: str) -> str:
    """Return the name of a figure over its unit, in lines of few letters."""
    return _LABELS.get(name, name).replace(", ", "\n").replace(" in ", "\nin ", 1)


def _number(value: float) -> str:
    """Return a number with all digits of its integer part."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _ordered(axis: Axis) -> list[Any]:
    """Return the values of an axis: numbers by size, others as given."""
    values: list[Any] = list(axis.values)
    return values if axis.parameter.kind in ("text", "switch") else sorted(values)
