"""`MemoryCurve`: what a network costs with less and less memory, as a table and a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from htvm.shown import Shown
from htvm.tools.plots.bars import SMALL, new_figure, readable
from htvm.tools.report.table import Column, count, table_of, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_LIMIT, LEAST = "none", "least"
"""Limits of the first and of the last point."""


@dataclass(frozen=True)
class MemoryPoint:
    """A build within a limit of memory, and a run of it.

    Attributes:
        limit: the limit in bytes, ``none`` or ``least``.
        arena: bytes of the arena.
        stack: bytes of the stack that the run used; None if the platform does not tell.
        cost: cycles of the run, or instructions where there are no cycles.
        more: what it costs beyond the first point, as a fraction of that.
        chains: number of operators in each chain, in words.
    """

    limit: str
    arena: int
    stack: int | None
    cost: int
    more: float
    chains: str


@dataclass(frozen=True, repr=False)
class MemoryCurve(Shown):
    """Bytes of a network's arena against what an inference costs.

    Attributes:
        network, target: names of the network and the target.
        unit: what the cost is counted in, cycles or instructions.
        points: the builds, from most to least memory.
    """

    network: str
    target: str
    unit: str
    points: tuple[MemoryPoint, ...]

    def _rows(self) -> tuple[object, ...]:
        return self.points

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        """Return the ends of the curve."""
        first, last = self.points[0], self.points[-1]
        return (
            f"MemoryCurve: {self.network} on {self.target}, {first.arena:,} B to "
            f"{last.arena:,} B at {last.more:+.2%} {self.unit}"
        )

    def table(self, width: int | None = None) -> str:
        """Return all points as text.

        Args:
            width: characters per line; by default lines are as long as they need.
        """
        table = table_of(
            self.points,
            (Column("limit B", number=True), lambda point: point.limit),
            (Column("arena B", number=True), lambda point: point.arena),
            (Column("stack B", number=True, spare=True), lambda point: point.stack),
            (Column(self.unit, number=True), lambda point: point.cost),
            (Column("more", number=True), lambda point: f"{point.more:+.2%}"),
            (Column("operators in chains", wraps=True), lambda point: point.chains),
        )
        return f"{self.network} on {self.target}\n\n{text(table, width)}"

    def plot(self) -> Figure:
        """Draw the cost of each point over the bytes of its arena.

        Raises:
            DependencyError: matplotlib is not installed.
        """
        figure = new_figure(6.4, 4.2)
        axes = figure.add_subplot()
        arenas = [point.arena / 1000 for point in self.points]
        axes.plot(arenas, [point.cost for point in self.points], marker="o", color="C0")
        for point, arena in zip(self.points, arenas, strict=True):
            axes.annotate(
                f"{count(point.arena)} B, {point.more:+.2%}",
                (arena, point.cost),
                xytext=(0, 6),
                textcoords="offset points",
                ha="center",
                fontsize=SMALL,
            )
        axes.margins(0.15)
        axes.set(xlabel="arena, kB", ylabel=f"{self.unit} of an inference")
        readable(axes.yaxis, [float(point.cost) for point in self.points])
        return figure
