"""`Designs`: the results of a sweep, as a data frame, a Pareto front and figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import TargetError
from htvm.files import write_folder
from htvm.public import public
from htvm.shown import Shown, optional
from htvm.tools.plots.bars import counted, draw_cells, draw_points, new_figure, picture, readable
from htvm.tools.plots.colours import LIGHT
from htvm.tools.report.table import Column, frame_csv, table_of, text, wrapped
from htvm.tools.sweeping.row import COLUMNS, Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from htvm.tools.sweeping.space import Axis, Space


_MOST_ROWS = 40  # rows of a table for people
_BRIEF = 8  # rows of the first look
_TYPES = {"bytes": "int64", "integer": "int64", "number": "float64", "switch": "bool"}
_SUMMED = ("cycles", "ms", "instructions", "network_macs", "moved_bytes", "energy_uj")


@public
@dataclass(frozen=True, repr=False)
class Designs(Shown):
    """The results of a sweep.

    Attributes:
        rows: one for each design and network, in this order.
        space: the designs that were to choose from.
        interrupted: whether the user ended the sweep; if so, the rows are those done until then.
    """

    rows: tuple[Row, ...]
    space: Space
    interrupted: bool = False

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        """Return how many designs ran, and the quickest, in lines of 80 characters."""
        return self.table(_BRIEF, 80)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the swept parameters."""
        return tuple(axis.parameter.name for axis in self.space.axes)

    # ------------------------------------------------------------------ data

    @property
    def records(self) -> list[dict[str, Any]]:
        """All rows as plain values; missing ones are None."""
        return [row.record for row in self.rows]

    @property
    def frame(self) -> DataFrame:
        """All rows as a pandas data frame; see `htvm.tools.sweeping.row.Row` for the columns.

        Raises:
            DependencyError: pandas is not installed.
        """
        pandas = optional("pandas", "data frames", "sweep")
        kinds = {
            axis.parameter.name: _TYPES.get(axis.parameter.kind, "string")
            for axis in self.space.axes
        }
        types = {**dict(list(COLUMNS.items())[:3]), **kinds, **COLUMNS}
        frame = pandas.DataFrame(self.records, columns=list(types))
        found: DataFrame = frame.astype(types)
        return found

    @property
    def totals(self) -> DataFrame:
        """One row for each design on which every network ran: figures summed over the networks.

        Raises:
            DependencyError: pandas is not installed.
        """
        frame = self.frame
        networks = frame["model"].nunique()
        ran = frame[frame["status"] == "ok"]
        keys = ["design", *self.axes]
        figures = ran.groupby(keys, sort=True, dropna=False)
        summed: DataFrame = figures[list(_SUMMED)].sum(min_count=1)
        summed["area"] = figures["area"].first()
        return summed[figures.size() == networks].reset_index()

    def pareto(self, *objectives: str) -> DataFrame:
        """Return the designs that no other one beats in all of these columns of `totals`.

        Args:
            objectives: columns to minimise: figures, ``"area"``, or swept numbers.

        Raises:
            TargetError: there is no such column of numbers.
            DependencyError: pandas is not installed.
        """
        totals = self.totals
        values = np.stack([self._numbers(totals, name) for name in objectives], axis=1)
        return totals[front(values)].reset_index(drop=True)

    def _numbers(self, totals: DataFrame, name: str) -> np.ndarray:
        numeric = [
            column for column in totals.columns
            if column != "design" and totals[column].dtype.kind in "iuf"
            and not totals[column].isna().any()
        ]  # fmt: skip
        if name not in numeric:
            raise TargetError(
                f"the designs have no numbers called {name!r}",
                where="results of htvm.sweep",
                hint=f"one of {', '.join(numeric) or 'none: no design ran'}",
            )
        return np.asarray(totals[name].to_numpy(dtype=float))

    # ------------------------------------------------------------------ for people

    def table(self, most: int = _MOST_ROWS, width: int | None = None) -> str:
        """Return the rows as text, the quickest first, and what did not run.

        Args:
            most: largest number of rows.
            width: characters per line; by default as many as they need.
        """
        completed = sorted(
            (row for row in self.rows if row.status == "ok"),
            key=lambda row: (row.model, row.cycles or row.instructions or 0, row.design),
        )
        costs: list[tuple[Column, Callable[[Row], str | int | None]]] = [
            (Column("cycles", number=True), lambda row: row.cycles or 0),
            (Column("ms", number=True), lambda row: f"{row.ms or 0:.3f}"),
        ]
        if any(row.instructions is not None for row in completed):
            costs = [(Column("instructions", number=True), lambda row: row.instructions)]
        table = table_of(
            completed[:most],
            (Column("network", wraps=True), lambda row: row.model),
            *(
                (Column(axis.parameter.name, axis.parameter.kind != "text", wraps=True), axis.cell)
                for axis in self.space.axes
            ),
            *costs,
            (Column("moved bytes", number=True, spare=True), lambda row: row.moved_bytes or None),
            (Column("outputs"), lambda row: "exact" if row.exact else "WRONG"),
        )
        parts = [text(table, width)]
        if len(completed) > most:
            parts.append(f"... and {len(completed) - most:,} more")
        notes = self.notes if width is None else wrapped(self.notes, width)
        return "\n".join([*parts, "", *notes])

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences: how many ran, and the reasons why others did not."""
        completed = [row for row in self.rows if row.status == "ok"]
        wrong = sum(not row.exact for row in completed)
        notes = [
            f"{len(self.rows):,} rows: {len(completed):,} ran, "
            f"{len(completed) - wrong:,} with exact outputs"
        ]
        for status in ("infeasible", "failed"):
            rows = [row for row in self.rows if row.status == status]
            if rows:
                first = rows[0]
                parts = (first.reason, first.where, first.levers)
                notes.append(
                    f"{len(rows):,} {status}; the first, {first.model} on {first.target}: "
                    + "; ".join(part for part in parts if part)
                )
        if self.interrupted:
            notes.append("interrupted: not everything was tried; the same sweep goes on from here")
        return tuple(notes)

    # ------------------------------------------------------------------ figures

    def plot_pareto(self, x: str = "area", y: str = "cycles", colour: str | None = None) -> Figure:
        """Plot two columns of `totals`, with the front.

        Args:
            x, y: figures, ``"area"`` or swept numbers; smaller is better.
            colour: a swept parameter that colours the designs; by default one that is not drawn.

        Raises:
            TargetError: there is no such column of numbers.
            DependencyError: matplotlib is not installed.
        """
        totals = self.totals
        values = np.stack([self._numbers(totals, x), self._numbers(totals, y)], axis=1)
        left = [name for name in self.axes if name not in (x, y)]
        colour = colour or (left[0] if left else None)
        figure = new_figure(6.4, 4.2, "sweep")
        axes = figure.add_subplot()
        groups: Any = {"": totals.index} if colour is None else totals.groupby(colour).groups
        for number, (label, rows) in enumerate(groups.items()):
            shown = None if colour is None else f"{colour}={label}"
            draw_points(axes, values[rows, 0], values[rows, 1], number, shown)
        best = values[front(values)]
        steps = best[np.argsort(best[:, 0], kind="stable")]
        axes.step(*steps.T, where="post", color=LIGHT["ink"], lw=1.2, label="Pareto front")
        axes.set(xlabel=_LABELS.get(x, x), ylabel=_LABELS.get(y, y))
        readable(axes.xaxis, list(values[:, 0]))
        readable(axes.yaxis, list(values[:, 1]))
        if len(groups) <= 10:
            axes.legend(fontsize=8)
        return figure

    def plot_parallel(self, *figures: str) -> Figure:
        """Plot every design as a line over all parameters and figures (``"cycles"`` by default).

        Raises:
            TargetError: there is no such column of numbers.
            DependencyError: matplotlib is not installed.
        """
        totals = self.totals
        colours = optional("matplotlib", "figures", "sweep").colormaps["viridis"]
        columns: list[tuple[str, np.ndarray, list[tuple[float, str]]]] = []
        for axis in self.space.axes:
            levels = {value: number for number, value in enumerate(_ordered(axis))}
            top = max(len(levels) - 1, 1)
            places = np.array([levels[value] / top for value in totals[axis.parameter.name]])
            ticks = [(number / top, axis.parameter.text(value)) for value, number in levels.items()]
            columns.append((axis.parameter.name, places, ticks[:: max(1, len(ticks) // 8)]))
        for name in figures or ("cycles",):
            values = self._numbers(totals, name)
            low, high = values.min(), values.max()
            places = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
            columns.append((_axis_title(name), places, [(0.0, _number(low)), (1.0, _number(high))]))
        figure = new_figure(1.5 * len(columns) + 1.5, 4.0, "sweep")
        axes = figure.add_subplot()
        for number in np.argsort(-columns[-1][1], kind="stable"):
            line = [places[number] for _, places, _ in columns]
            colour = colours(1 - columns[-1][1][number])
            axes.plot(range(len(columns)), line, color=colour, lw=1, alpha=0.6)
        for number, (_, _, ticks) in enumerate(columns):
            axes.axvline(number, color="0.6", lw=0.8)
            for place, label in ticks:
                axes.annotate(label, (number, place), fontsize=7, xytext=(3, 2),
                              textcoords="offset points")  # fmt: skip
        axes.set_xticks(range(len(columns)), [name for name, _, _ in columns])
        axes.set_yticks([])
        axes.set_xlim(-0.2, len(columns) - 0.5)
        return figure

    def plot_heat(self, x: str, y: str, figure: str = "cycles") -> Figure:
        """Plot a figure's smallest value over two swept parameters; empty where nothing ran.

        Raises:
            TargetError: a parameter was not swept, or there is no such figure.
            DependencyError: matplotlib is not installed.
        """
        totals = self.totals
        self._numbers(totals, figure)
        known = {axis.parameter.name: axis for axis in self.space.axes}
        for name in (x, y):
            if name not in known:
                raise TargetError(
                    f"{name!r} was not swept",
                    where="results of htvm.sweep",
                    hint=f"one of {', '.join(known)}",
                )
        across, up = _ordered(known[x]), _ordered(known[y])
        least = totals.groupby([x, y])[figure].min()
        cells = np.array([[float(least.get((a, b), np.nan)) for a in across] for b in up])
        drawn = new_figure(1.2 + 0.8 * max(len(across), 4), 1.2 + 0.5 * max(len(up), 4), "sweep")
        axes = drawn.add_subplot()
        image = draw_cells(axes, cells, "nothing\nran", _number, "0.15")
        axes.set_xticks(range(len(across)), [known[x].parameter.text(value) for value in across])
        axes.set_yticks(range(len(up)), [known[y].parameter.text(value) for value in up])
        axes.set(xlabel=x, ylabel=y)
        drawn.colorbar(image, label=f"least {_LABELS.get(figure, figure)}", format=counted)
        return drawn

    def save(self, folder: str | Path) -> list[Path]:
        """Write ``rows.csv`` and figures, as PNG, into a folder; return their paths.

        Raises:
            DependencyError: matplotlib or pandas is not installed; nothing is written.
            ExportError: the folder cannot be written.
        """
        files = {"rows.csv": frame_csv(self.frame).encode()}
        if len(self.totals):
            numbers = [axis.parameter.name for axis in self.space.axes
                       if axis.parameter.kind in ("integer", "bytes", "number")]  # fmt: skip
            priced = not self.totals["area"].isna().any()
            if priced or numbers:
                files["pareto.png"] = picture(self.plot_pareto("area" if priced else numbers[0]))
            files["parallel.png"] = picture(self.plot_parallel())
            if len(self.axes) > 1:
                files["heat.png"] = picture(self.plot_heat(*self.axes[:2]))
        return write_folder(Path(folder), files, "the sweep", str(folder))


def front(values: np.ndarray) -> np.ndarray:
    """Return which rows no other row dominates: (n, objectives), smaller is better.

    A row dominates another if it is nowhere worse and somewhere better.
    """
    on_front = np.ones(len(values), dtype=bool)
    for number, row in enumerate(values):
        better = (values <= row).all(axis=1) & (values < row).any(axis=1)
        on_front[number] = not better.any()
    return on_front


_LABELS = {
    "area": "area, in the unit of the costs",
    "cycles": "cycles, all networks",
    "ms": "ms, all networks",
    "energy_uj": "energy in µJ, all networks",
    "moved_bytes": "bytes to and from L2, all networks",
}


def _axis_title(name: str) -> str:
    """Return the name of a figure over its unit, in lines of few letters."""
    return _LABELS.get(name, name).replace(", ", "\n").replace(" in ", "\nin ", 1)


def _number(value: float) -> str:
    """Return a number with all digits of its integer part."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _ordered(axis: Axis) -> list[Any]:
    """Return the values of an axis: numbers by size, others as given."""
    values: list[Any] = list(axis.values)
    return values if axis.parameter.kind in ("text", "switch") else sorted(values)
