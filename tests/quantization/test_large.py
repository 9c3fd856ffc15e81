"""Retargeting networks of many operators: the work for each does not grow with their number."""

from __future__ import annotations

import pytest

from benchmarks.retarget_networks import draw
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
