"""What each rule of an accelerator costs: the cycles of the operators that it keeps on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from byoc_dory.verdict import OperatorVerdict
from htvm.tools.report.table import count


class Placed(Protocol):
    """An operator: where it runs, its cycles there, and the accelerators' answers."""

    @property
    def placed(self) -> str: ...

    @property
    def cycles(self) -> int | None: ...

    @property
    def offers(self) -> tuple[OperatorVerdict, ...]: ...


@dataclass(frozen=True)
class RuleCost:
    """A rule that objected to operators of a network.

    Attributes:
        accelerator: whose rule it is.
        rule: the rule in a sentence.
        operators: number of operators on the CPU that it refused; operators that another
            accelerator took do not count.
        cycles: what these operators cost where they run; unknown costs count as none.
    """

    accelerator: str
    rule: str
    operators: int
    cycles: int


def rule_costs(rows: Sequence[Placed]) -> tuple[RuleCost, ...]:
    """Return all rules that objected, those that keep most cycles on the CPU first."""
    found: dict[tuple[str, str], list[Placed]] = {}
    for row in rows:
        for offer in row.offers:
            if not offer.accepted and offer.rule:
                found.setdefault((offer.accelerator, offer.rule), []).append(row)
    costs = [
        RuleCost(accelerator, rule, len(kept), sum(row.cycles or 0 for row in kept))
        for (accelerator, rule), refused in found.items()
        for kept in [[row for row in refused if row.placed == "cpu"]]
    ]
    return tuple(sorted(costs, key=lambda cost: -cost.cycles))


def objections_text(rows: Sequence[Placed]) -> str:
    """Return the rules that objected, each with what it costs; empty if none did."""
    lines = list(_lines(rows))
    return "\n".join(
        ["rules that objected, and what runs on the CPU for it:", *lines] if lines else []
    )


def _lines(rows: Sequence[Placed]) -> Iterator[str]:
    for cost in rule_costs(rows):
        several = "operator" if cost.operators == 1 else "operators"
        said = f"{cost.operators} {several}, {count(cost.cycles)} cycles"
        yield f"  {cost.accelerator}: {cost.rule} {said if cost.operators else 'nothing'}"
