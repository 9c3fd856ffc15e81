"""Chains of rows compute what the integer form says, for any network, limit and core."""

from __future__ import annotations

import numpy as np
import pytest

import htvm
from htvm.compiled import BuildOptions, Compiled
from tests.aot.chains.networks import chained_network, inputs_of, mobilenet_v2
from tests.reference.interpreter import interpret

EVERYDAY = (("generic.cpu", "host", 1), ("generic.cpu", "host", 12), ("cortex_m4", "arm", 103))
WAYS = (
    ("generic.cpu", "host"),
    ("cortex_m4", "arm"),
    ("cortex_m0plus", "arm"),
    ("siracusa.cpu", "host"),
)
SEEDS = 125
"""Networks for each of these ways; every third within the least memory, others within more."""


def limit_of(model: htvm.Model, target: str, seed: int) -> int | str:
    """The least memory, or a limit between it and that of layer after layer."""
    if seed % 3 == 0:
        return "least"
    whole = Compiled(model, target, BuildOptions()).program.plan.peak
    least = Compiled(model, target, BuildOptions(memory="least")).program.plan.peak
    return least + max(whole - 1 - least, 0) * (seed % 7) // 7


def check(target: str, platform: str, seed: int) -> int:
    """Build and run the network of a seed; return the number of its chains."""
    model = chained_network(seed)
    limit = limit_of(model, target, seed)
    module = htvm.build(model, target, platform, memory=limit)  # type: ignore[arg-type]
    if limit != "least":
        assert module.l2_peak <= int(limit)
    for number in range(2):
        inputs = inputs_of(model, number)
        for found, wanted in zip(
            module.run(inputs).outputs, interpret(model.module, inputs).outputs, strict=True
        ):
            np.testing.assert_array_equal(found, wanted)
    kernels = module.compiled.cpu_kernels
    return sum("htvm_chain.h" in kernel.headers for kernel in kernels)


@pytest.mark.parametrize(("target", "platform", "seed"), EVERYDAY)
def test_chains_equal_the_interpreter(target: str, platform: str, seed: int) -> None:
    assert check(target, platform, seed)


@pytest.mark.slow
def test_mobilenet_v2_needs_less_than_a_board_with_256_kib() -> None:
    model = mobilenet_v2(224, 1.0)
    inputs = inputs_of(model, 1)
    module = htvm.build(model, "cortex_m4", "arm", memory=135_000)
    wanted = htvm.build(model, "cortex_m4", "host").run(inputs).outputs
    np.testing.assert_array_equal(module.run(inputs).outputs[0], wanted[0])
    assert module.l2_peak <= 135_000


@pytest.mark.slow
@pytest.mark.parametrize(("target", "platform"), WAYS)
def test_many_chains_equal_the_interpreter(target: str, platform: str) -> None:
    chains = [check(target, platform, seed) for seed in range(1000, 1000 + SEEDS)]
    assert sum(count > 0 for count in chains) > SEEDS // 2
