"""The estimates of CPU cycles in verdicts are near what the simulated host needs."""

from __future__ import annotations

from collections import defaultdict

import pytest

import htvm
from htvm.inputs import seeded_inputs


def test_cycles_of_a_host_with_simd() -> None:
    """ResNet-8 requantized by shifts; the scalar host takes 37.6 million cycles."""
    module = htvm.build(htvm.zoo.build("resnet8"), "diana.simd.cpu")
    cycles = module.run(seeded_inputs(module.compiled.source.inputs)).cycles
    assert cycles is not None and cycles <= 6_100_000


@pytest.mark.rotating(1)
@pytest.mark.parametrize("target", ["diana.cpu", "diana.simd.cpu", "siracusa.cpu"])
def test_estimates_hold_for_every_kind_of_layer(target: str) -> None:
    """DS-CNN has all kinds that multiply; a layer's kernel may hold more than the layer."""
    module = htvm.build(htvm.zoo.build("ds_cnn"), target)
    compiled = module.compiled
    result = module.run(seeded_inputs(compiled.source.inputs))
    measured: dict[str, int] = defaultdict(int)
    estimated: dict[str, int] = defaultdict(int)
    for step in result.layers:
        for name in step.name.split("+"):
            layer = compiled.dispatch.layers.get(name)
            if layer is not None and step.macs and layer.macs == step.macs:
                pointwise = layer.op == "conv2d" and (layer.fy, layer.fx) == (1, 1)
                kind = "pointwise" if pointwise else layer.op
                assert step.cycles is not None
                measured[kind] += step.cycles
                estimated[kind] += compiled.cost.host.layer(layer)
    assert set(measured) == {"conv2d", "pointwise", "depthwise", "dense"}
    for kind, cycles in measured.items():
        assert estimated[kind] == pytest.approx(cycles, rel=0.4), kind
