"""What each rule costs: the cycles of what it keeps on the CPU."""

from __future__ import annotations

from byoc_dory.verdict import OperatorVerdict
from htvm.tools.report.explain import Explanation, explain_data, explain_text
from htvm.tools.report.verdicts import RuleCost, VerdictRow, rule_costs


def row(name: str, placed: str, cycles: int | None, *rules: str) -> VerdictRow:
    """An operator that one accelerator refused by each of these rules."""
    offers = tuple(
        OperatorVerdict(f"core{number}", accepted=not rule, reason="no", rule=rule)
        for number, rule in enumerate(rules)
    )
    return VerdictRow(name, "conv2d", placed, offers, cycles=cycles)


ROWS = (
    row("a", "cpu", 100, "at most 7x7", "ternary"),
    row("b", "cpu", 1_000, "stride 1", "ternary"),
    row("c", "core1", 5_000, "at most 7x7", ""),
    row("d", "cpu", None, "stride 1", "ternary"),
)


def test_the_dearest_rule_comes_first() -> None:
    assert rule_costs(ROWS) == (
        RuleCost("core1", "ternary", 3, 1_100),
        RuleCost("core0", "stride 1", 2, 1_000),
        RuleCost("core0", "at most 7x7", 1, 100),  # what another core took costs nothing
    )


def test_explanations_say_it() -> None:
    found = Explanation(ROWS)
    assert found.rules == rule_costs(ROWS)
    assert "core1: ternary 3 operators, 1,100 cycles" in explain_text(found)
    assert explain_data(found)["rules"][0]["cycles"] == 1_100
