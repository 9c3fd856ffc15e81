"""Who wins an exploration: the network's cycles under each budget and objective, and the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.errors import InputError
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.tiling.named import objective_text
from htvm.report.table import Column, Table, count, text
from htvm.shown import optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from byoc_dory.explore import Tried

__all__ = [
    "Total", "best_of", "heat_figure", "pareto_figure", "tiling_of", "totals_of", "winners_text",
]  # fmt: skip

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
    """

    l1_budget: int
    objective: str
    layers: tuple[tuple[str, str], ...]
    cycles: int | None
    l1_bytes: int


def totals_of(rows: Sequence[Tried]) -> tuple[Total, ...]:
    """Return the totals of an exploration, by budget; the best objectives come first."""
    found: list[Total] = []
    for budget in dict.fromkeys(row.l1_budget for row in rows):
        mine = [row for row in rows if row.l1_budget == budget]
        layers = list(dict.fromkeys(row.layer for row in mine))
        named: dict[str, dict[str, Tried]] = {}
        for row in mine:
            _keep(named.setdefault(_text(row, rows), {}), row)
        each: dict[str, Tried] = {}
        for row in mine:
            _keep(each, row)
        totals = [_total(budget, name, chosen, layers, rows) for name, chosen in named.items()]
        # Of equals, the default.
        totals.sort(key=lambda total: (_cycles(total), total.objective != "latency"))
        mixed = _total(budget, _EACH, each, layers, rows)
        if totals and _cycles(mixed) < _cycles(totals[0]):
            totals.insert(0, mixed)
        found += totals
    return tuple(found)


def _keep(chosen: dict[str, Tried], row: Tried) -> None:
    """Keep a row if it is its layer's fastest so far."""
    before = chosen.get(row.layer)
    if before is None or (row.cycles is not None and row.cycles < (before.cycles or 1 << 62)):
        chosen[row.layer] = row


def _total(
    budget: int, name: str, chosen: Mapping[str, Tried], layers: list[str], rows: Sequence[Tried]
) -> Total:
    known = [chosen[layer] for layer in layers if layer in chosen]
    cycles = [row.cycles for row in known if row.cycles is not None]
    return Total(
        l1_budget=budget,
        objective=name,
        layers=tuple((row.layer, _text(row, rows)) for row in known),
        cycles=sum(cycles) if len(cycles) == len(layers) else None,
        l1_bytes=max(map(_held, known), default=0),
    )


def _held(row: Tried) -> int:
    parts = (row.l1_in or 0) + (row.l1_out or 0) + (row.l1_weights or 0)
    return parts * (row.buffers or 1)


def _cycles(total: Total) -> int:
    return 1 << 62 if total.cycles is None else total.cycles


def _text(row: Tried, rows: Sequence[Tried]) -> str:
    """Return an objective as `byoc_dory.tiling.named` reads it; weights only if they were swept."""
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
    able = [each for each in mine if each.cycles is not None]
    if not able:
        budgets = sorted({each.l1_budget for each in totals if each.cycles is not None})
        raise InputError(
            "there is no winner" + (f" with an L1 budget of {budget} B" if budget else ""),
            where="exploration",
            hint=f"all layers fit with {', '.join(map(str, budgets))} B"
            if budgets
            else "no budget that was tried has tiles of all layers; try larger ones",
        )
    return min(able, key=lambda each: (_cycles(each), each.l1_budget))


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
    budgets = dict.fromkeys(each.l1_budget for each in totals)
    rows = []
    for budget in budgets:
        first = next(each for each in totals if each.l1_budget == budget)
        single = next(
            each for each in totals if each.l1_budget == budget and each.objective != _EACH
        )
        apart = [
            f"{layer} {name}" for layer, name in first.layers if name != single.objective
        ]  # fmt: skip
        rows.append(
            (
                count(budget),
                first.objective,
                count(first.cycles) or "no tile of a layer fits",
                f"{count(single.cycles)} with {single.objective}" if apart else "",
                ", ".join(apart),
            )
        )
    if rows:
        columns = (
            Column("L1 budget", number=True),
            Column("winner"),
            Column("cycles", number=True),
            Column("one for all layers", wraps=True),
            Column("other than that", wraps=True),
        )
        title = "the fewest predicted cycles of all layers together, each alone:"
        yield "\n" + text(Table(columns, tuple(rows), title), width)


def pareto_figure(totals: Sequence[Total]) -> Figure:
    """Plot cycles against bytes of L1 in use, and mark what nothing beats in both."""
    figures = optional("matplotlib.figure", "figures")
    figure: Figure = figures.Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    able = [each for each in totals if each.cycles is not None]
    for name in dict.fromkeys(each.objective for each in able):
        mine = [each for each in able if each.objective == name]
        axes.scatter([each.l1_bytes / 1000 for each in mine], [_cycles(each) for each in mine],
                     s=18, label=name)  # fmt: skip
    front, least = [], 1 << 62
    for each in sorted(able, key=lambda each: (each.l1_bytes, _cycles(each))):
        if _cycles(each) < least:
            front.append(each)
            least = _cycles(each)
    axes.step(
        [each.l1_bytes / 1000 for each in front],
        [_cycles(each) for each in front],
        where="post", color="grey", linewidth=0.8, label="nothing is better in both",
    )  # fmt: skip
    axes.set(xlabel="most L1 that a layer's tiles take, kB", ylabel="predicted cycles, all layers")
    axes.legend(fontsize=7)
    return figure


def heat_figure(rows: Sequence[Tried], heuristic: str) -> Figure:
    """Plot the network's cycles over alpha and the weight of one heuristic."""
    mine = [row for row in rows if heuristic in dict(row.betas) and row.alpha is not None]
    if not mine:
        known = sorted({name for row in rows for name, _ in row.betas})
        raise InputError(
            f"no objective that was tried has a heuristic {heuristic!r}",
            where="exploration",
            hint=f"one of {', '.join(known)}" if known else "explore other objectives than latency",
        )
    figures = optional("matplotlib.figure", "figures")
    budgets = list(dict.fromkeys(row.l1_budget for row in mine))
    alphas = sorted({row.alpha or 0 for row in mine})
    betas = sorted({dict(row.betas)[heuristic] for row in mine})
    figure: Figure = figures.Figure(figsize=(1.2 + 3.4 * len(budgets), 3.4), layout="constrained")
    for number, budget in enumerate(budgets, start=1):
        cells = [[_sum(mine, budget, alpha, heuristic, beta) for alpha in alphas] for beta in betas]
        axes = figure.add_subplot(1, len(budgets), number)
        image = axes.imshow([[float("nan") if c is None else c for c in row] for row in cells])
        axes.set_xticks(range(len(alphas)), [str(alpha) for alpha in alphas])
        axes.set_yticks(range(len(betas)), [str(beta) for beta in betas])
        axes.set(xlabel="alpha", ylabel=heuristic, title=f"L1 budget {budget / 1000:g} kB")
        figure.colorbar(image, ax=axes, label="predicted cycles")
    return figure


def _sum(
    rows: Sequence[Tried], budget: int, alpha: int, heuristic: str, beta: int
) -> int | None:  # fmt: skip
    """Return the cycles of all layers with these weights, each with its best other weights."""
    chosen: dict[str, Tried] = {}
    for row in rows:
        weights = (row.l1_budget, row.alpha, dict(row.betas)[heuristic])
        if weights == (budget, alpha, beta):
            _keep(chosen, row)
    cycles = [row.cycles for row in chosen.values() if row.cycles is not None]
    return sum(cycles) if cycles and len(cycles) == len(chosen) else None
