"""Which other targets take a network in its own numbers."""

from __future__ import annotations

import logging

import pytest

import htvm
from byoc_dory.soc.registry import resolve
from htvm.placement.elsewhere import advise, other_targets


def test_a_transformer_runs_on_the_clusters(caplog: pytest.LogCaptureFixture) -> None:
    model = htvm.zoo.single_head_attention()
    found = other_targets(model.graph, resolve("diana"))
    assert found[0].target == "snitch_ita" and found[0].taken == found[0].layers
    assert "siracusa" in [entry.target for entry in found]
    assert other_targets(model.graph, resolve("snitch_ita"))[0].target != "snitch_ita"
    with caplog.at_level(logging.WARNING, "htvm"):
        advise(model, resolve("diana"))
    assert "snitch_ita runs all layers on accelerators (-t snitch_ita)" in caplog.text
