"""Networks planned over both cores: bit-exact in every scheme, for every target and policy."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import pytest

import htvm
from htvm import zoo
from htvm.inputs import seeded_inputs
from htvm.tools.zoo.schemes import Scheme
from patterns.reading.read import graph_of, output_names
from tests.e2e.networks import random_network
from tests.models import MODELS, golden
from tests.reference.interpreter import interpret

Platform = Literal["host", "rv32"]

# Target and policy; ``None`` is the target's own.
WAYS = (
    ("diana.analog", None),
    ("diana.mixed", None),
    ("diana", "latency"),
    ("diana", None),
)
MLPERF_TINY = ("ds_cnn_7x5", "mobilenet_v1", "resnet8", "toyadmos")


def equals_the_integer_form(
    model: htvm.Model, target: str, policy: str | None, platform: Platform = "host"
) -> htvm.Module:
    """Build and run; compare with the interpreter and with the reference."""
    module = htvm.build(model, target, platform, policy=policy)
    inputs = seeded_inputs(model.inputs)
    outputs = module.run(inputs).outputs
    for other in (interpret(module.model.module, inputs).outputs, module.reference(inputs)):
        for made, wanted in zip(outputs, other, strict=True):
            np.testing.assert_array_equal(made, wanted)
    return module


def follows_its_plan(module: htvm.Module) -> None:
    """What was planned for a core was written in its form, and dispatch confirmed it.

    But for a ternary layer that reads a result of the network, whose scale is given: it has 8 bits.
    """
    planned = module.compiled.planned.places
    moved = {name for name, place in planned.items() if module.placement[name] != place}
    ternary = module.compiled.retargeted.report.ternary
    for name in moved:
        assert (planned[name], module.placement[name]) == ("analog", "digital"), name
        assert name not in ternary
    nodes = {node.name: node for node in graph_of(module.model.module).in_order}
    results = set(output_names(module.model.module))
    for name in moved:
        behind = {name}
        while behind and not behind & results:
            behind = {source for node in behind if node in nodes for source in nodes[node].inputs}
        assert behind, f"{name} reads nothing that is returned"


# ------------------------------------------------------------------------------ the zoo


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("name", "scheme", "target", "platform"),
    [
        ("toyadmos", "ternary", "diana.analog", "host"),
        ("toyadmos", "mixed", "diana.mixed", "rv32"),
        ("ds_cnn_7x5", "ternary", "diana", "host"),
    ],
)
def test_networks_of_the_zoo(name: str, scheme: Scheme, target: str, platform: Platform) -> None:
    module = equals_the_integer_form(zoo.build(name, scheme=scheme), target, None, platform)
    follows_its_plan(module)
    assert "analog" in module.placement.values()
    assert not module.compiled.retargeted.report.changed


@pytest.mark.slow
@pytest.mark.parametrize(("target", "policy"), WAYS)
@pytest.mark.parametrize("scheme", zoo.SCHEMES)
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_the_whole_zoo(name: str, scheme: Scheme, target: str, policy: str | None) -> None:
    module = equals_the_integer_form(zoo.build(name, scheme=scheme), target, policy)
    follows_its_plan(module)


@pytest.mark.slow
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_the_cheapest_plan_is_never_slower_than_one_core(name: str) -> None:
    """By cycles of the simulated SoC, the host's included."""
    model, cycles = zoo.build(name), {}
    for target, policy in (("diana", "latency"), ("diana.digital", None), ("diana.analog", None)):
        module = htvm.build(model, target, policy=policy)
        result = module.run(seeded_inputs(model.inputs))
        assert result.cycles is not None
        cycles[target] = result.cycles
    assert cycles["diana"] <= min(cycles["diana.digital"], cycles["diana.analog"]), cycles


# ------------------------------------------------------------------------------ retargeted


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("seed", "scheme", "way"),
    [
        (number, scheme, way)
        for number, (scheme, way) in enumerate(
            itertools.product(("tflite", "shift"), WAYS[:3]), start=100
        )
    ],
)
def test_random_networks(
    seed: int, scheme: Literal["tflite", "shift"], way: tuple[str, str | None]
) -> None:
    network = random_network(seed, scheme, free=False, operators=5)
    module = equals_the_integer_form(network.model, *way)
    follows_its_plan(module)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 260))
def test_many_random_networks(seed: int) -> None:
    # In the shift scheme, what is drawn may hold conversions that retargeting refuses.
    scheme: Literal["tflite", "mul_shift"] = "mul_shift" if seed % 3 else "tflite"
    network = random_network(seed, scheme, free=False)
    module = equals_the_integer_form(network.model, *WAYS[seed % 4])
    follows_its_plan(module)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "policy"), WAYS[:3])
@pytest.mark.parametrize("name", MODELS)
def test_tflite_models(name: str, target: str, policy: str | None) -> None:
    model = htvm.load(golden(name).path)
    module = equals_the_integer_form(model, target, policy)
    follows_its_plan(module)
    report = module.compiled.retargeted.report
    # A dense network is quicker on the digital core throughout.
    assert bool(report.ternary) == ("analog" in module.placement.values())
    assert bool(report.ternary) == ("train with ternary weights" in str(report))


def test_the_report_says_what_ternary_weights_cost() -> None:
    network = random_network(100, "tflite", free=False, operators=5)
    module = htvm.build(network.model, "diana.analog", "host")
    found = module.compiled.retargeted.report
    assert found.ternary == tuple(
        name for name, place in module.placement.items() if place == "analog"
    )
    report = module.report()
    assert report.output_sqnr_db == found.output_sqnr_db
    assert (report.summary.policy, report.summary.schedule) == ("bitwidth", "overlapped")
    rows = {row.layer: row for row in module.explain().rows}
    for name in found.ternary:
        (offer,) = rows[name].offers
        assert offer.accepted and (offer.cycles or 0) > 0
