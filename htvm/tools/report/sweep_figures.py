"""Figures of explorations: values over budgets, what nothing beats, cycles over weights."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from byoc_dory.errors import InputError
from htvm.tools.plots.bars import SMALL, counted, draw_cells, draw_points, new_figure, readable
from htvm.tools.plots.colours import LIGHT
from htvm.tools.report.winners import Total, keep_best

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from byoc_dory.explore import Tried

_MOST_KEYS = 12  # objectives in a legend
_FRONT = "nothing is better in both"
# With more panels than this, they become too small to read.
_MOST_PANELS = 12
_MARKERS = "osD^vP*X"
_Labelled: TypeAlias = "Sequence[tuple[str, Tried]]"
_Value: TypeAlias = "Callable[[Tried], int | None]"


def pareto_figure(totals: Sequence[Total]) -> Figure:
    """Plot cycles, and energy if known, against bytes of L1 in use, each with its front.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    feasible = [each for each in totals if each.cycles is not None]
    panels: list[tuple[str, Callable[[Total], float]]] = [
        ("predicted cycles, all layers", lambda each: float(each.cycles or 0))
    ]
    if feasible and all(each.energy_uj is not None for each in feasible):
        panels.append(("energy in uJ, from published powers", lambda each: each.energy_uj or 0.0))
    figure = new_figure(6.4 * len(panels), 4.2)
    for number, (words, value) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), number)
        _points(axes, feasible, value)
        axes.set(xlabel="most L1 that a layer's tiles take, kB", ylabel=words)
        readable(axes.yaxis, [value(each) for each in feasible])
        if number == 1:
            if len(axes.collections) <= _MOST_KEYS:
                axes.legend(fontsize=SMALL)
    return figure


def _points(axes: Any, feasible: Sequence[Total], value: Callable[[Total], float]) -> None:
    """Draw the points of each objective, and steps through those that nothing beats."""
    for number, name in enumerate(dict.fromkeys(each.objective for each in feasible)):
        mine = [each for each in feasible if each.objective == name]
        places = [each.l1_bytes / 1000 for each in mine]
        draw_points(axes, places, [value(each) for each in mine], number, name)
    front: list[Total] = []
    for each in sorted(feasible, key=lambda each: (each.l1_bytes, value(each))):
        if not front or value(each) < value(front[-1]):
            front.append(each)
    axes.step(
        [each.l1_bytes / 1000 for each in front],
        [value(each) for each in front],
        where="post", color=LIGHT["dim"], linewidth=0.8, label=_FRONT,
    )  # fmt: skip


def heat_figure(rows: Sequence[Tried], heuristic: str | None) -> Figure:
    """Plot the network's cycles over alpha and the weight of one heuristic.

    Raises:
        DependencyError: matplotlib is not installed.
        InputError: no objective that was tried has this heuristic, or any.
    """
    name = heuristic or _swept(rows)
    selected = [row for row in rows if name in dict(row.betas) and row.alpha is not None]
    if not selected:
        known = sorted({each for row in rows for each, _ in row.betas})
        raise InputError(
            f"no objective that was tried has a heuristic {name!r}",
            where="exploration",
            hint=f"one of {', '.join(known)}" if known else "explore other objectives than latency",
        )
    budgets = list(dict.fromkeys(row.l1_budget for row in selected))
    alphas = sorted({row.alpha or 0 for row in selected})
    betas = sorted({dict(row.betas)[name] for row in selected})
    width, height = max(3.4, 1.4 + 0.7 * len(alphas)), max(3.0, 1.2 + 0.36 * len(betas))
    figure = new_figure(width * len(budgets), height)
    for number, budget in enumerate(budgets, start=1):
        cells = [[_sum(selected, budget, alpha, name, beta) for alpha in alphas] for beta in betas]
        axes = figure.add_subplot(1, len(budgets), number)
        values = [[np.nan if cell is None else cell for cell in row] for row in cells]
        image = draw_cells(axes, np.array(values), "no tile", counted, LIGHT["ink"])
        axes.set_xticks(range(len(alphas)), [str(alpha) for alpha in alphas])
        axes.set_yticks(range(len(betas)), [str(beta) for beta in betas])
        axes.set(xlabel="alpha", ylabel=name, title=f"L1 budget {budget / 1000:g} kB")
        figure.colorbar(image, ax=axes, label="predicted cycles", format=counted)
    return figure


def _swept(rows: Sequence[Tried]) -> str:
    """Return the first heuristic with more than one weight, or the first one."""
    weights: dict[str, set[int]] = {}
    for row in rows:
        for name, weight in row.betas:
            weights.setdefault(name, set()).add(weight)
    several = [name for name, found in weights.items() if len(found) > 1]
    return next(iter([*several, *weights]), "")


def _sum(
    rows: Sequence[Tried], budget: int, alpha: int, heuristic: str, beta: int
) -> int | None:  # fmt: skip
    """Return the cycles of all layers with these weights, each with its best other weights."""
    chosen_rows: dict[str, Tried] = {}
    for row in rows:
        weights = (row.l1_budget, row.alpha, dict(row.betas)[heuristic])
        if weights == (budget, alpha, beta):
            keep_best(chosen_rows, row)
    cycles = [row.cycles for row in chosen_rows.values() if row.cycles is not None]
    return sum(cycles) if cycles and len(cycles) == len(chosen_rows) else None


def layers_figure(title: str, axis: str, rows: _Labelled, value: _Value) -> Figure:
    """Plot a value against the L1 budget, one panel per layer; bars for one budget.

    Args:
        title: what the value is called in the title.
        axis: what the values are, with the unit.
        rows: all rows, each with what tells it from others of its layer and budget.
        value: the value of a row; None where no tile fits.

    Raises:
        DependencyError: matplotlib is not installed.
    """
    panels = _panels(rows)
    columns = min(3, len(panels)) or 1
    lines = -(-len(panels) // columns) or 1
    figure = new_figure(4.5 * columns, 3.2 * lines)
    figure.suptitle(f"{title} of {len({row.layer for _, row in rows})} layers")
    budgets = {row.l1_budget for _, row in rows}
    for number, (name, mine) in enumerate(panels):
        axes = figure.add_subplot(lines, columns, number + 1)
        (_lines if len(budgets) > 1 else _bars)(axes, mine, value)
        axes.set_title(name, fontsize=8)
        axes.set_ylabel(axis, fontsize=8)
        axes.tick_params(labelsize=7)
    below(figure)
    return figure


def _panels(rows: _Labelled) -> list[tuple[str, list[tuple[str, Tried]]]]:
    """Return (title, labelled rows) of each layer; layers of the same shape share a panel."""
    panels: dict[tuple[str, ...], list[tuple[str, Tried]]] = {}
    first: dict[tuple[str, ...], str] = {}
    for label, row in rows:
        key = (row.accelerator, row.op, row.shape)
        if first.setdefault(key, row.layer) == row.layer:
            panels.setdefault(key, []).append((label, row))
    titled = [(f"{first[key]}: {key[1]} {key[2]}", mine) for key, mine in panels.items()]
    # The longest-running layers matter most.
    titled.sort(key=lambda panel: -max((row.cycles or 0) for _, row in panel[1]))
    return titled[:_MOST_PANELS]


def _series(rows: _Labelled, value: _Value) -> Iterator[tuple[int, str, list[tuple[int, int]]]]:
    """Yield (number, label, points (budget, value)) per objective, without infeasible points."""
    for number, label in enumerate(dict.fromkeys(label for label, _ in rows)):
        selected = sorted(
            (row.l1_budget, found)
            for other, row in rows
            if other == label and (found := value(row)) is not None
        )
        yield number, label, selected


def _lines(axes: Axes, rows: _Labelled, value: _Value) -> None:
    """Plot values against the budget; marks get smaller, so that coinciding ones can be seen."""
    for number, label, points in _series(rows, value):
        axes.plot(
            [budget for budget, _ in points], [found for _, found in points],
            marker=_MARKERS[number % len(_MARKERS)], markersize=max(3, 9 - number), linewidth=1,
            label=label,
        )  # fmt: skip
    log_axes(axes, sorted({row.l1_budget for _, row in rows}))


def below(figure: Figure) -> None:
    """Draw the legend of the first panel, if there is any, for all panels, below them."""
    if figure.axes:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        columns = max(1, min(5, len(labels), int(1.4 * figure.get_figwidth() / 3)))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8)


def log_axes(axes: Axes, budgets: Sequence[int]) -> None:
    """Set logarithmic axes over L1 budgets (bytes), with readable ticks."""
    ticker = importlib.import_module("matplotlib.ticker")
    axes.set_xscale("log")
    axes.set_xticks(budgets, labels=[f"{budget / 1000:g}" for budget in budgets])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("L1 budget in kB", fontsize=8)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.grid(True, alpha=0.3)


def _bars(axes: Axes, rows: _Labelled, value: _Value) -> None:
    for number, label, points in _series(rows, value):
        axes.bar([number], [points[0][1] if points else 0], label=label)
    axes.set_xticks([])
