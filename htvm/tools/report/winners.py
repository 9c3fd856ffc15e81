"""Who wins an exploration: the network's cycles under each budget and objective, and the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.errors import InputError
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.tiling.objectives import objective_text
from htvm.tools.report.table import Column, count, table_of, text

if TYPE_CHECKING:
    from byoc_dory.explore import Tried

_EACH = "each layer's best"


@dataclass(frozen=True)
class Total:
    """The explored layers under one L1 budget.

    Attributes:
        l1_budget: L1 budget in bytes.
        objective: the objective of all layers, with its weights; "each layer's best" if they have
            several.
        layers: (layer, its objective), in the order of layers.
        cycles: sum of the predicted cycles of the layers, each alone; None if no tile of one fits.
        l1_bytes: most bytes of L1 that tiles of a layer take, with all their copies.
        energy_uj: sum of the layers' energies in microjoules; None if one has no published power.
    """

    l1_budget: int
    objective: str
    layers: tuple[tuple[str, str], ...]
    cycles: int | None
    l1_bytes: int
    energy_uj: float | None = None


def totals_of(rows: Sequence[Tried]) -> tuple[Total, ...]:
    """Return the totals of an exploration, by budget; the best objectives come first."""
    found: list[Total] = []
    for budget in dict.fromkeys(row.l1_budget for row in rows):
        selected = [row for row in rows if row.l1_budget == budget]
        layers = list(dict.fromkeys(row.layer for row in selected))
        by_objective: dict[str, dict[str, Tried]] = {}
        for row in selected:
            keep_best(by_objective.setdefault(_text(row, rows), {}), row)
        each: dict[str, Tried] = {}
        for row in selected:
            keep_best(each, row)
        totals = [
            _total(budget, name, chosen, layers, rows) for name, chosen in by_objective.items()
        ]
        # Of equals, the default.
        totals.sort(key=lambda total: (_cycles(total), total.objective != "latency"))
        mixed = _total(budget, _EACH, each, layers, rows)
        if totals and _cycles(mixed) < _cycles(totals[0]):
            totals.insert(0, mixed)
        found += totals
    return tuple(found)


def keep_best(best_rows: dict[str, Tried], row: Tried) -> None:
    """Keep a row if it is its layer's fastest so far."""
    before = best_rows.get(row.layer)
    if before is None or (row.cycles is not None and row.cycles < (before.cycles or 1 << 62)):
        best_rows[row.layer] = row


def _total(
    budget: int, name: str, best_rows: Mapping[str, Tried], layers: list[str], rows: Sequence[Tried]
) -> Total:
    known = [best_rows[layer] for layer in layers if layer in best_rows]
    cycles = [row.cycles for row in known if row.cycles is not None]
    energies = [row.energy_uj for row in known if row.energy_uj is not None]
    return Total(
        l1_budget=budget,
        objective=name,
        layers=tuple((row.layer, _text(row, rows)) for row in known),
        cycles=sum(cycles) if len(cycles) == len(layers) else None,
        l1_bytes=max((row.l1_bytes or 0 for row in known), default=0),
        energy_uj=sum(energies) if len(energies) == len(layers) else None,
    )


def _cycles(total: Total) -> int:
    return 1 << 62 if total.cycles is None else total.cycles


def _text(row: Tried, rows: Sequence[Tried]) -> str:
    """Return an objective as `objective_named` reads it; weights only if they were swept."""
    same = [other for other in rows if other.objective == row.objective]
    if len({(other.alpha, other.betas) for other in same}) == 1:
        return row.objective
    return objective_text(row.objective, row.alpha, dict(row.betas))


def best_of(totals: Sequence[Total], budget: int | None) -> Total:
    """Return the total with the fewest cycles; of several, the one with the smallest budget.

    Raises:
        InputError: there is none, or none under this budget.
    """
    mine = [each for each in totals if budget is None or each.l1_budget == budget]
    feasible = [each for each in mine if each.cycles is not None]
    if not feasible:
        budgets = sorted({each.l1_budget for each in totals if each.cycles is not None})
        raise InputError(
            "there is no winner" + (f" with an L1 budget of {budget} B" if budget else ""),
            where="exploration",
            hint=f"all layers fit with {', '.join(map(str, budgets))} B"
            if budgets
            else "no budget that was tried has tiles of all layers; try larger ones",
        )
    return min(feasible, key=lambda each: (_cycles(each), each.l1_budget))


def tiling_of(total: Total, schedule: ScheduleKind) -> TilingOptions:
    """Return the options of a build that tiles like this."""
    if total.objective != _EACH:
        return TilingOptions(
            objective=total.objective, l1_budget=total.l1_budget, schedule=schedule
        )
    return TilingOptions(l1_budget=total.l1_budget, schedule=schedule, layers=total.layers)


def winners_text(totals: Sequence[Total], width: int | None = None) -> Iterator[str]:
    """Say what wins for the network under each budget, and for layers with another winner.

    Args:
        totals: of the network.
        width: characters per line; no limit by default.
    """
    if not totals:
        return
    budgets: dict[int, list[Total]] = {}
    for each in totals:
        budgets.setdefault(each.l1_budget, []).append(each)
    winners = [
        (mine[0], next(each for each in mine if each.objective != _EACH))
        for mine in budgets.values()
    ]
    table = table_of(
        winners,
        (Column("L1 budget", number=True), lambda best: best[0].l1_budget),
        (Column("winner"), lambda best: best[0].objective),
        (Column("cycles", number=True), lambda best: best[0].cycles or "no tile of a layer fits"),
        (Column("one for all layers", wraps=True), lambda best: _single(*best)),
        (Column("other than that", wraps=True), lambda best: ", ".join(_differences(*best))),
        title="the fewest predicted cycles of all layers together, each alone:",
    )
    yield "\n" + text(table, width)


def _differences(first: Total, single: Total) -> list[str]:
    """Return the layers that another objective serves better than that of a single one for all."""
    return [f"{layer} {name}" for layer, name in first.layers if name != single.objective]


def _single(first: Total, single: Total) -> str:
    return f"{count(single.cycles)} with {single.objective}" if _differences(first, single) else ""
