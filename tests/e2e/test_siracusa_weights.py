"""Networks whose weights exceed Siracusa's weight memory: some are loaded into L1 with tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.options import TilingOptions
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.errors import TilingError
from htvm.inputs import seeded_inputs
from htvm.pipeline import compile_model
from tests.e2e.networks import random_network
from tests.reference.interpreter import interpret

SIZES = {"both": (40_000, 20_000), "MRAM": (16, 60_000), "none": (16, 16), "one layer": (3_008, 16)}
"""Bytes of SRAM and MRAM."""


def target_of(sram: int, mram: int) -> str:
    """Siracusa with these bytes of weight memory."""
    return f"siracusa:sram={sram},mram={mram}"


def check(model: htvm.Model, target: str, platform: Any) -> htvm.Module:
    """The network's outputs equal the interpreter's; no memory has more than it holds."""
    module = htvm.build(model, target, platform)
    inputs = seeded_inputs(model.inputs)
    wanted = interpret(module.model.module, inputs).outputs
    for output, expected in zip(module.run(*inputs).outputs, wanted, strict=True):
        np.testing.assert_array_equal(output, expected)
    program, weights = module.compiled.program, module.compiled.weights
    for name, size in weights.capacity.items():
        assert program.bytes_in(name) <= size
    assert {constant.memory for constant in program.constants} - {""} == {
        entry.memory for entry in weights.layers if entry.memory
    }
    return module


def test_resnet8_with_a_small_weight_memory() -> None:
    weights = check(zoo.resnet8(), target_of(*SIZES["both"]), "rv32").compiled.weights
    assert weights.loaded and weights.cost == weights.bound > 0


@pytest.mark.slow
def test_resnet8_without_weight_memory() -> None:
    weights = check(zoo.resnet8(), target_of(*SIZES["none"]), "host").compiled.weights
    assert weights.loaded == weights.layers


def test_fit_says_what_was_moved_and_why() -> None:
    found = htvm.fit(zoo.resnet8(), target_of(*SIZES["both"]))
    assert found.fits == "yes"
    assert found.level("SRAM").demand <= 40_000 and found.level("MRAM").demand <= 20_000
    loaded = [row for row in found.weights if not row.memory]
    assert {row.layer for row in loaded} == {"conv2d_7"}
    # They are in L2 instead.
    inside = {part.name: part.bytes for part in found.level("L2").parts}
    assert all(inside[f"constants of {row.layer}"] >= row.bytes for row in loaded)
    text = str(found)
    assert "weights: not all fit the memory that keeps them" in text
    assert "no: loaded with each tile" in text
    assert "weights of 10 layers do not all fit; loading those of 1 costs" in text


def test_fit_says_nothing_if_all_weights_are_kept() -> None:
    found = htvm.fit(zoo.resnet8(), "siracusa")
    assert found.weights == ()
    assert found.level("SRAM").note == ""
    # What is in the weight memory is not in L2.
    assert found.level("L2").demand < found.level("SRAM").demand


def test_the_same_c_every_time() -> None:
    sources = []
    for _ in range(2):
        compiled = compile_model(zoo.resnet8(), target_of(30_000, 16), BuildOptions())
        assert compiled.weights.loaded
        sources.append(compiled.program.layers_source)
    assert sources[0] == sources[1]


def test_weights_that_fit_nowhere_are_an_error() -> None:
    with pytest.raises(TilingError, match="must be kept"):
        htvm.build(zoo.resnet8(), target_of(16, 16), tiling=TilingOptions(l1_budget=6_000))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("network", ["resnet8", "ds_cnn", "mobilenet_v1", "toyadmos"])
def test_networks_with_several_sizes(network: str, size: str) -> None:
    module = check(zoo.build(network), target_of(*SIZES[size]), "rv32")
    weights = module.compiled.weights
    fits = sum(entry.bytes for entry in weights.layers) <= SIZES[size][0]
    assert bool(weights.loaded) != fits or weights.capacity["MRAM"] > 16


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(7300, 7330))
def test_random_networks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = target_of(*(16 * int(size) for size in rng.integers(1, 400, 2)))
    scheme: Any = ("mul_shift", "tflite", "shift")[seed % 3]
    network = random_network(seed, scheme, free=scheme == "shift")
    budget = None if rng.random() < 0.5 else int(rng.integers(20_000, 60_000))
    platform: Any = "rv32" if seed % 2 else "host"
    module = htvm.build(network.model, target, platform, tiling=TilingOptions(l1_budget=budget))
    inputs = network.inputs(0)
    wanted = interpret(module.model.module, inputs).outputs
    for output, expected in zip(module.run(inputs).outputs, wanted, strict=True):
        np.testing.assert_array_equal(output, expected, err_msg="\n".join(network.text))
