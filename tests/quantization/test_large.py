"""Retargeting networks of many operators: the work for each does not grow with their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.retarget_networks import draw
from htvm.quantization import noise
from htvm.quantization.effects import pass_back
from htvm.quantization.noise import NoiseModel, noise_inputs, observe
from htvm.quantization.search import Search, choose_scales
from htvm.quantization.ties import find_ties
from htvm.quantization.units import annotated

OPERATORS = 160
COMPUTED, ADDED = 200, 1000
"""Tables of noise for each operator; a search of whole ties takes several times as many."""


@pytest.mark.rotating(1)
@pytest.mark.parametrize("shape", ["residual", "dense residual", "branches", "lstm"])
def test_work_for_each_operator_is_bounded(shape: str) -> None:
    net = annotated(draw(shape, OPERATORS))
    statistics = observe(net, noise_inputs(net, 6, 5), 5)
    search = Search(net, NoiseModel(net, statistics), per_channel=True, grid=1.0)
    search.run()
    assert search.terms.computed < COMPUTED * len(net.nodes)
    assert search.terms.added < ADDED * len(net.nodes)


def test_steps_of_large_ties_follow_their_tensors() -> None:
    """A hundred sums in a row, each scaled by 0.7: shifts of 0 would make steps vanish."""
    net = annotated(draw("dense residual", 120))
    ties = find_ties(net)
    assert max(len(tie.members) for tie in ties.distinct) > 100
    statistics = observe(net, noise_inputs(net, 6, 5), 5)
    scales = choose_scales(net, NoiseModel(net, statistics))
    steps = [float(scales.step[node.name].max()) for node in net.adds]
    assert 0.2 < min(steps) and max(steps) < 5


def test_layers_that_amplify_beyond_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """As hundreds of layers do whose weights are too large: noise stays a number."""

    def amplified(*given: Any) -> list[Any]:
        return [1e30 * part for part in pass_back(*given)]

    monkeypatch.setattr(noise, "pass_back", amplified)
    net = annotated(draw("residual", 12))
    model = NoiseModel(net, observe(net, noise_inputs(net, 6, 5), 5))
    assert all(np.isfinite(choose_scales(net, model).step[node.name]).all() for node in net.nodes)
