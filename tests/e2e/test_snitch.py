"""Networks on the Snitch cluster, with and without ITA: imported files give their golden outputs,
random networks what the interpreter says; what TVM compiles shares the cores."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import htvm
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import resolve
from htvm.errors import TargetError
from htvm.firmware.build import build_host
from htvm.firmware.toolchain import Compiler
from htvm.sim.runner import run
from tests.e2e.networks import random_network
from tests.models_onnx import FILES, golden, onnx_path
from tests.reference.interpreter import interpret

EVERY_DAY = {
    "deeploy_kernels/Integer/Attention": ("snitch_ita", "rv32"),
    "deeploy_kernels/Integer/Softmax/Regular": ("snitch_ita.cluster", "host"),
    "deeploy_kernels/Integer/MaxPool/Regular_2D": ("snitch_ita.cluster", "rv32"),
    "deeploy_networks/miniMobileNet": ("snitch_ita.cluster", "host"),
    "deeploy_networks/Transformer_DeepQuant": ("snitch_ita.cluster", "rv32"),
}
"""Compiled and run every day, each in one way."""

SCHEMES = ("mul_shift", "tflite", "shift")


def check_golden(name: str, target: str, platform: str) -> htvm.Module:
    """The file's golden output, bit for bit."""
    model = htvm.load(onnx_path(name))
    inputs, outputs = golden(name, model)
    module = htvm.build(model, target=target, platform=platform)
    result = module.run(inputs)
    for array, wanted, info in zip(result.outputs, outputs, model.outputs, strict=True):
        assert array.dtype.name == info.dtype
        np.testing.assert_array_equal(array, wanted)
    return module


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", EVERY_DAY)
def test_files_give_their_golden_output(name: str) -> None:
    target, platform = EVERY_DAY[name]
    check_golden(name, target, platform)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["snitch_ita.cluster", "snitch_ita"])
@pytest.mark.parametrize("platform", ["rv32", "host"])
@pytest.mark.parametrize("name", FILES)
def test_all_files_give_their_golden_output(name: str, target: str, platform: str) -> None:
    check_golden(name, target, platform)


def test_a_description_with_a_controller_core_is_refused() -> None:
    """The driver is written for a hart 0 that computes."""
    place = resolve("snitch_ita.cluster")
    assert place.soc.cluster is not None
    cluster = replace(place.soc.cluster, harts=10, first=1)
    network = random_network(6, "mul_shift")
    with pytest.raises(TargetError, match="hart 0 is the first compute core"):
        htvm.build(network.model, replace(place, soc=replace(place.soc, cluster=cluster)))


def check_random(seed: int, sanitize: bool) -> None:
    """A random network, built in a random way, equals the interpreter on its integer form."""
    rng = np.random.default_rng([seed, 17])
    scheme: Any = SCHEMES[seed % 3]
    target = ("snitch_ita.cluster", "snitch_ita")[seed % 4 == 3]
    # Less L1 for layers, and so for the operands of TVM's kernels.
    budget = None if rng.random() < 0.5 else int(rng.integers(6_000, 40_000))
    platform = "rv32" if seed % 5 == 4 and not sanitize else "host"
    # What retargeting does not know may be in networks that it leaves as they are.
    network = random_network(seed, scheme, free=scheme == "shift")
    words = "\n".join((f"{seed} {scheme} {target} {platform} {budget}", *network.text))
    tiling = TilingOptions(l1_budget=budget)
    module = htvm.build(network.model, target, platform, tiling=tiling)
    for number in range(2):
        inputs = network.inputs(number)
        if sanitize:
            compiled = module.compiled
            compiler = Compiler.zig(host="gcc") if shutil.which("gcc") else Compiler.zig()
            built = build_host(compiled.program, compiled.target.soc, compiler, sanitize=True)
            outputs = run(built, inputs).outputs
        else:
            outputs = module.run(inputs).outputs
        wanted = interpret(module.model.module, inputs).outputs
        for output, expected in zip(outputs, wanted, strict=True):
            np.testing.assert_array_equal(output, expected, err_msg=words)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("seed", range(40, 44))
def test_random_networks_equal_the_interpreter(seed: int) -> None:
    check_random(seed, sanitize=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3000, 3060))
def test_many_random_networks_equal_the_interpreter(seed: int) -> None:
    check_random(seed, sanitize=seed % 3 == 0)
