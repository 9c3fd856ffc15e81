"""`Exploration`: the results of a sweep over tilings, as a table, a data frame and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from byoc_dory.explore import Tried
from byoc_dory.options import ScheduleKind, TilingOptions
from htvm.files import write_whole
from htvm.shown import Shown, optional
from htvm.tools.report.sweep_figures import heat_figure, layers_figure, pareto_figure
from htvm.tools.report.table import Column, Table, table_of, text
from htvm.tools.report.winners import (
    Total,
    best_of,
    tiling_of,
    totals_of,
    winners_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, repr=False)
class Exploration(Shown):
    """The results of a sweep.

    Attributes:
        rows: one per layer, budget, objective and choice of weights, in this order.
        clock_hz: clock for converting cycles to times.
        interrupted: whether the user ended the sweep; if so, the rows are those done until then.
        schedule: the schedule that cycles were predicted for.
    """

    rows: tuple[Tried, ...]
    clock_hz: int
    interrupted: bool = False
    schedule: ScheduleKind = "overlapped"

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        """Return how much was tried, and what wins."""
        layers = len({row.layer for row in self.rows})
        head = f"Exploration: {len(self.rows)} tilings of {layers} layers"
        return "\n\n".join([head, *winners_text(self.totals, 80)])

    def _repr_html_(self) -> str:
        """What wins, and all rows as a table, for notebooks."""
        return "".join(f"<pre>{escape(note)}</pre>" for note in winners_text(self.totals)) + (
            self._table_html()
        )

    # ------------------------------------------------------------------ tables

    def table(self, width: int | None = None) -> str:
        """Return everything as text.

        Args:
            width: characters per line, in which the most important columns are shown; by default
                all, in lines as long as they need.
        """
        table = _table(self._labelled)
        lacking = {row.shortage.layer: row.shortage for row in self.rows if row.shortage}
        notes = [str(shortage.error()) for shortage in lacking.values()]
        notes += winners_text(self.totals, width)
        if self.interrupted:
            notes.append("interrupted: not everything was tried")
        return "\n".join([text(table, width), *(f"\n{note}" for note in notes)])

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that tell rows of one layer and budget apart: objective, and weights swept."""
        weights: dict[str, set[tuple[object, ...]]] = {}
        for row in self.rows:
            weights.setdefault(row.objective, set()).add((row.alpha, *row.betas))
        return tuple(
            row.objective if len(weights[row.objective]) == 1 else _weighted(row, self.rows)
            for row in self.rows
        )

    @property
    def records(self) -> list[dict[str, object]]:
        """All rows as plain values, with the columns of `frame`; missing values are None."""
        names = dict.fromkeys(name for row in self.rows for name, _ in row.betas)
        return [
            {**_record(row), **{f"beta: {name}": dict(row.betas).get(name) for name in names}}
            for row in self.rows
        ]

    @property
    def frame(self) -> DataFrame:
        """All rows as a pandas data frame, one column per figure.

        Sizes and budgets are in bytes; ``gap`` is relative to the fastest tile; weights are
        ``alpha`` and one column ``beta: <heuristic>`` each; infeasible rows have no other values.

        Raises:
            DependencyError: pandas is not installed.
        """
        pandas = optional("pandas", "data frames")
        frame = pandas.DataFrame(self.records)
        whole = [name for name in frame.columns if name in _WHOLE or name.startswith("beta: ")]
        # These columns are integers that may be missing; as floats they would print differently and
        # lose digits if large.
        return frame.astype({name: "Int64" for name in whole})

    # ------------------------------------------------------------------ winners

    @property
    def totals(self) -> tuple[Total, ...]:
        """The whole network under each budget and each objective, and with each layer's best."""
        return totals_of(self.rows)

    def best(self, budget: int | None = None) -> Total:
        """Return what takes the fewest predicted cycles; of several, with the smallest budget.

        Args:
            budget: L1 budget in bytes, one of those explored; any if not given.

        Raises:
            InputError: no tiles fit under this budget.
        """
        return best_of(self.totals, budget)

    def tiling(self, budget: int | None = None) -> TilingOptions:
        """Return the options that build the network as `best` says, for `htvm.build`.

        Raises:
            InputError: no tiles fit under this budget.
        """
        return tiling_of(self.best(budget), self.schedule)

    def save(self, path: str | Path) -> Path:
        """Write everything as JSON, which `htvm.report.load_exploration` reads.

        Raises:
            ExportError: the file cannot be written.
        """
        data = msgspec.json.format(msgspec.json.encode(self), indent=1)
        return write_whole(Path(path), data, "the exploration", str(path))

    # ------------------------------------------------------------------ figures

    def plot_pareto(self) -> Figure:
        """Plot the network's predicted cycles against the bytes of L1 in use, with the front.

        Where the SoC's powers are published, a second panel has the energy in microjoules.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        return pareto_figure(self.totals)

    def plot_heat(self, heuristic: str | None = None) -> Figure:
        """Plot the network's cycles over alpha and one heuristic's weight, a panel per budget.

        Args:
            heuristic: name of a heuristic of an objective that was tried; by default the first
                whose weights were swept.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: no objective that was tried has this heuristic.
        """
        return heat_figure(self.rows, heuristic)

    def plot_latency(self) -> Figure:
        """Plot predicted cycles against the L1 budget, one panel per layer; bars for one budget.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        return layers_figure("cycles", "predicted cycles", self._labelled, lambda row: row.cycles)

    def plot_memory(self) -> Figure:
        """Plot L1 bytes of one input and output tile against the budget, one panel per layer.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        return layers_figure("L1", "bytes of L1", self._labelled, _l1_bytes)

    @property
    def _labelled(self) -> list[tuple[str, Tried]]:
        return list(zip(self.labels, self.rows, strict=True))


def _table(rows: Sequence[tuple[str, Tried]]) -> Table:
    """Return the table of labelled rows."""
    return table_of(
        rows,
        (Column("layer", wraps=True), lambda each: each[1].layer),
        (Column("shape", spare=True), lambda each: each[1].shape),
        (Column("on"), lambda each: each[1].accelerator),
        (Column("L1 budget", number=True), lambda each: each[1].l1_budget),
        (Column("objective"), lambda each: each[0]),
        (Column("k,c,y,x"), lambda each: ",".join(map(str, _sizes(each[1]) or ()))),
        (Column("tiles", number=True, spare=True), lambda each: each[1].tiles),
        (Column("buffers", number=True, spare=True), lambda each: each[1].buffers),
        (Column("cycles", number=True), lambda each: each[1].cycles),
        (Column("of peak", number=True, spare=True), lambda each: _share_text(each[1].utilisation)),
        (Column("over quickest", number=True, spare=True), lambda each: _share_text(each[1].gap)),
        (Column("L1 in", number=True, spare=True), lambda each: each[1].l1_in),
        (Column("L1 out", number=True, spare=True), lambda each: each[1].l1_out),
        (Column("weights", number=True, spare=True), lambda each: each[1].l1_weights),
        (Column("status"), lambda each: each[1].status),
        (Column("ms to solve", number=True, spare=True), lambda each: _solved(each[1])),
    )


def _share_text(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _solved(row: Tried) -> str:
    return "" if row.tile is None else f"{1000 * row.seconds:.1f}"


_WHOLE = {
    "alpha", "l1_budget", "k", "c", "y", "x", "tiles", "buffers", "cycles", "optimum", "l1_in",
    "l1_out", "l1_weights", "l1_bytes", "limit", "demand", "smallest_demand",
}  # fmt: skip


def _sizes(row: Tried) -> tuple[int, int, int, int] | None:
    tile = row.tile
    return None if tile is None else (tile.k, tile.c, tile.y, tile.x)


def _record(row: Tried) -> dict[str, object]:
    """Return one row of the data frame, with separate columns for the heuristics' weights."""
    lacking, sizes = row.shortage, _sizes(row) or (None,) * 4
    return {
        **{name: getattr(row, name) for name in _BEFORE_TILE},
        **dict(zip("kcyx", sizes, strict=True)),
        **{name: getattr(row, name) for name in _OF_TILE},
        "memory": lacking.memory if lacking else "",
        "limit": lacking.limit if lacking else None,
        "demand": lacking.demand if lacking else None,
        "smallest_demand": lacking.smallest if lacking else None,
        "levers": "; ".join(lacking.levers) if lacking else "",
    }


_BEFORE_TILE = ("layer", "op", "shape", "accelerator", "objective", "alpha", "l1_budget")
_OF_TILE = (
    "tiles", "buffers", "cycles", "energy_uj", "utilisation", "l1_in", "l1_out", "l1_weights",
    "l1_bytes", "optimum", "gap", "status", "solver", "seconds",
)  # fmt: skip


def _weighted(row: Tried, rows: Sequence[Tried]) -> str:
    """Return the objective, with those of its weights that differ from other rows."""
    same = [other for other in rows if other.objective == row.objective]
    parts = [f"alpha={row.alpha}"] if len({other.alpha for other in same}) > 1 else []
    for name, weight in row.betas:
        if len({dict(other.betas).get(name) for other in same} - {None}) > 1:
            parts.append(f"{name}={weight}")
    return f"{row.objective} ({', '.join(parts)})" if parts else row.objective


def _l1_bytes(row: Tried) -> int | None:
    return None if row.l1_in is None or row.l1_out is None else row.l1_in + row.l1_out
