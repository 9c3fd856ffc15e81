"""Random networks on each SoC with accelerators, with all that may run at once.

Each is executed twice: natively, where started work is done as late as it may be, so that a missing
wait shows in the results; and on the simulator, whose device models complain of races.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import pytest

import htvm
from byoc_dory.options import TilingOptions
from htvm.firmware.build import build_host
from htvm.firmware.toolchain import Compiler
from htvm.sim.runner import run
from tests.e2e.draws import Scheme
from tests.e2e.matrices import matrix_network
from tests.e2e.networks import Network, random_network
from tests.reference.interpreter import interpret
from tests.rotation import today

TARGETS = {
    "diana": ("diana", "diana.digital", "diana.mixed", "diana.simd", "diana.analog"),
    "siracusa": ("siracusa", "siracusa:cores=4"),
    "siracusa.cluster": ("siracusa.cluster", "siracusa.cluster:cores=4"),
    "snitch_ita": ("snitch_ita", "snitch_ita", "snitch_ita:cores=3", "snitch_ita.cluster"),
    "dla": (
        "dla",
        "dla:depthwise=emulated,parallel=input,fused=off",
        "dla:pes=15,parallel=both,sram=20KiB,rows=tiled,depthwise=cpu",
    ),
    "ethos_u55": tuple(f"ethos_u55:macs={macs}" for macs in (32, 64, 128, 256)),
    "ethos_u65": ("ethos_u65:macs=256",),
}
SCHEMES: tuple[Scheme, ...] = ("mul_shift", "tflite", "shift")
EVERYDAY = (("snitch_ita", 12), ("siracusa", 17))
"""Cores beside ITA; a sum beside N-EUREKA; constants that are loaded early on both."""

INPUTS = 2
"""Inputs on which both programs of a network are executed."""

DRAWN = 25
"""Networks of each SoC in a long run, others on every commit."""


@dataclass(frozen=True)
class Case:
    """How the network of a seed is built: in some, most of L1 is left away."""

    soc: str
    seed: int

    @property
    def target(self) -> str:
        targets = TARGETS[self.soc]
        return targets[self.seed // 3 % len(targets)]

    @property
    def network(self) -> Network:
        matrices = {"snitch_ita": 3, "siracusa.cluster": 2, "siracusa": 1}.get(self.soc, 0)
        if self.seed % 4 < matrices:
            return matrix_network(self.seed)
        scheme = "tflite" if self.soc.startswith("ethos_u") else SCHEMES[self.seed % 3]
        if self.soc in ("dla", "diana") and scheme == "shift" and "digital" not in self.target:
            scheme = "mul_shift"
        return random_network(self.seed, scheme, free=scheme == "shift")

    @property
    def tiling(self) -> TilingOptions:
        rng = np.random.default_rng([self.seed, 31])
        if self.soc not in ("siracusa", "siracusa.cluster", "snitch_ita") or rng.random() < 0.7:
            return TilingOptions()
        least = 30_000 if self.soc == "snitch_ita" else 12_000  # a tile of 512 products, and more
        return TilingOptions(l1_budget=int(rng.integers(least, 3 * least)))


def check(soc: str, seed: int) -> htvm.Module:
    """Build the network of a seed, and compare both programs with the interpreter."""
    if soc.startswith("ethos_u"):
        pytest.importorskip("ethosu.regor", reason="ethos-u-vela is not installed")
    case = Case(soc, seed)
    network = case.network
    words = "\n".join((f"{case} {case.target} {case.tiling.l1_budget}", *network.text))
    module = htvm.build(network.model, case.target, policy="latency", tiling=case.tiling)
    compiled = module.compiled
    native = build_host(compiled.program, compiled.target.soc, Compiler.zig())
    for number in range(INPUTS):
        inputs = network.inputs(number)
        wanted = interpret(module.model.module, inputs).outputs
        for found in (run(native, inputs).outputs, module.run(inputs).outputs):
            for output, expected in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(output, expected, err_msg=words)
    return module


def compared(module: htvm.Module) -> int:
    """Return how many elements `check` compares."""
    return 2 * INPUTS * sum(prod(info.shape) for info in module.model.outputs)


@pytest.mark.rotating(1)
@pytest.mark.parametrize(("soc", "seed"), EVERYDAY)
def test_a_network_with_all_at_once(soc: str, seed: int) -> None:
    plans = [code.plan for code in check(soc, seed).compiled.regions.values() if code.plan]
    layers = [layer for plan in plans for layer in plan.layers]
    assert any(layer.started or layer.follower for layer in layers)
    assert any(layer.preload for layer in layers)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(DRAWN))
@pytest.mark.parametrize("soc", TARGETS)
def test_many_networks_with_all_at_once(soc: str, turn: int) -> None:
    check(soc, DRAWN * (today() % 1000) + turn)
