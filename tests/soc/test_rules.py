"""Every rule of every accelerator accepts and refuses what its table says, by its identifier."""

from __future__ import annotations

from dataclasses import replace

import pytest

from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.soc.registry import BUILT_IN, resolve, socs
from byoc_dory.verdict import Accepted, Refused, statement
from tests.soc.rule_cases import TABLES
from tests.soc.rule_layers import Cases, Make

_RULES = [(soc, name, rule) for (soc, name), table in TABLES.items() for rule in table]


def _judges(soc: str, name: str, cases: Cases) -> tuple[Soc, Accelerator]:
    found = resolve(soc).soc
    changed = replace(found.accelerator(name), **cases.changes)
    others = (changed if entry.name == name else entry for entry in found.accelerators)
    sizes = {changed.l1: cases.l1 or found.memory(changed.l1).size}
    memories = (replace(entry, size=sizes.get(entry.name, entry.size)) for entry in found.memories)
    return replace(found, accelerators=tuple(others), memories=tuple(memories)), changed


_TAKEN = [
    pytest.param(soc, name, rule, make, id=f"{soc}-{rule}-{number}")
    for soc, name, rule in _RULES
    for number, make in enumerate(TABLES[soc, name][rule].takes, 1)
]
_REFUSED = [
    pytest.param(soc, name, rule, make, words, id=f"{soc}-{rule}-{number}")
    for soc, name, rule in _RULES
    for number, (make, words) in enumerate(TABLES[soc, name][rule].refuses, 1)
]


@pytest.mark.parametrize(("soc", "name", "rule", "make"), _TAKEN)
def test_takes(soc: str, name: str, rule: str, make: Make) -> None:
    found, accelerator = _judges(soc, name, TABLES[soc, name][rule])
    assert accelerator.judge(found, make()) == Accepted()


@pytest.mark.parametrize(("soc", "name", "rule", "make", "words"), _REFUSED)
def test_refuses_and_names_the_value(
    soc: str, name: str, rule: str, make: Make, words: str
) -> None:
    found, accelerator = _judges(soc, name, TABLES[soc, name][rule])
    verdict = accelerator.judge(found, make())
    assert isinstance(verdict, Refused), verdict
    assert verdict.rule in accelerator.statements and verdict.rule.startswith(f"{rule}: "), verdict
    assert words in verdict.reason


def test_every_rule_has_both_cases() -> None:
    """A rule that no case can trigger is either dead or hidden by an earlier one."""
    rules = {
        (soc.name, accelerator.name): {identifier for identifier, _ in accelerator.rules}
        for soc in socs()
        if soc.name in BUILT_IN
        for accelerator in soc.accelerators
    }
    assert rules == {place: set(table) for place, table in TABLES.items()}
    assert all(cases.takes and cases.refuses for t in TABLES.values() for cases in t.values())


def test_every_rule_has_a_public_statement() -> None:
    for soc, name in TABLES:
        for identifier, rule in resolve(soc).soc.accelerator(name).rules:
            text = statement(rule)
            assert text.endswith(".") and len(text) < 100 and text != rule.__name__, identifier
