"""Explanations say why accelerators do not compute at once."""

from __future__ import annotations

import htvm
from htvm import zoo
from htvm.module import Module
from htvm.tools.explain.explanation import explanation_of
from htvm.tools.report.explain import explain_data, explain_screen, explain_text

_TITLE = "accelerators compute their layers one after another:"


def explained(target: str) -> tuple[Module, str]:
    model = zoo.encoder(1, 128, 128, heads=2, feed_forward=256, stacked=1)
    module = htvm.build(model, target, policy="latency")
    explanation = explanation_of(module.compiled, measure=False)
    assert explain_data(explanation)["in_turn"] == list(explanation.in_turn)
    text = explain_text(explanation)
    assert (_TITLE in text) == (_TITLE in explain_screen(explanation)) == bool(explanation.in_turn)
    return module, text


def test_without_a_core_that_drives_the_others() -> None:
    """One compute core, of a description that the overlapped schedule is asked of."""
    module, text = explained("snitch_ita:cores=1")
    assert "the only core drives the other devices" in text
    assert not any(code.plan.starts for code in module.compiled.regions.values() if code.plan)


def test_nothing_is_said_where_cores_compute_beside_an_engine() -> None:
    module, _ = explained("snitch_ita")
    assert any(code.plan.starts for code in module.compiled.regions.values() if code.plan)
