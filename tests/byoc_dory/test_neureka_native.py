"""Generated C for N-EUREKA with the real driver and device model, compiled for this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region
from byoc_dory.soc.base import Soc
from byoc_dory.soc.siracusa.description import CLUSTER_CORES, SIRACUSA
from byoc_dory.soc.siracusa.neureka import NEUREKA
from byoc_dory.verdict import Refused
from htvm.firmware import host
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from tests.byoc_dory.neureka_cases import evaluate, image_layer, random_layer
from tests.byoc_dory.program import Case, main_program, packed
from tests.reference.matrix_layers import stored

Draw = Callable[[np.random.Generator, str], Layer]


def case_of(
    layer: Layer,
    options: TilingOptions,
    prefix: str,
    soc: Soc = SIRACUSA,
    home: str = "neureka",
) -> Case:
    region = Region(prefix, (layer,), layer.inputs, (layer.output,))
    code = generate(region, Cost(soc, options), prefix, home)
    rng = np.random.default_rng(len(prefix))
    (tensor,) = layer.inputs
    limits = np.iinfo(tensor.dtype)
    x = rng.integers(limits.min, limits.max + 1, tensor.shape).astype(tensor.dtype)
    return Case(code, (stored(x),), (stored(evaluate(layer, x)),))


def cases(count: int, start: int, soc: Soc = SIRACUSA, draw: Draw = random_layer) -> list[Case]:
    found = []
    for seed in range(start, start + count):
        rng = np.random.default_rng(seed)
        layer = draw(rng, f"l{seed}")
        verdict = soc.accelerators[0].judge(soc, layer)
        assert not isinstance(verdict, Refused), verdict
        schedule = ("overlapped", "published")[seed % 4 == 0]
        budgets = (None,) if seed % 3 == 0 else (3_000, 9_000, 30_000, 90_000, None)
        for budget in budgets:
            try:
                options = TilingOptions(l1_budget=budget, schedule=schedule)  # type: ignore[arg-type]
                found.append(case_of(layer, options, f"c{seed}", soc))
                break
            except TilingError:
                continue
    assert len(found) == count
    return found


def check(found: list[Case], folder: Path, sanitize: bool, soc: Soc = SIRACUSA) -> None:
    """Build and run all cases in one program, and compare every output."""
    source = folder / "main.c"
    source.write_text(main_program(found))
    program = host.build([source], [], soc, folder / "out", Compiler.zig(), sanitize)
    expected = packed(found, outputs=True)
    (got,) = run_host(program, [packed(found, outputs=False)], [len(expected)])
    at = 0
    for case in found:
        for tensor, values in zip(case.code.outputs, case.outputs, strict=True):
            part = np.frombuffer(got, np.uint8, values.size, at)
            at += values.size
            wrong = int((part != values).sum())
            kernel = case.code.kernels[-1]
            assert not wrong, f"{tensor.name}: {wrong} of {values.size} differ; {kernel.source}"


@pytest.mark.parametrize("sanitize", [False, True])
@pytest.mark.parametrize("weights", ["", "SRAM", "MRAM"])
def test_layers(tmp_path: Path, weights: str, sanitize: bool) -> None:
    """Weights in L1, or in either half of the weight memory."""
    core = replace(NEUREKA, weight_memory=weights)
    soc = replace(SIRACUSA, accelerators=(core, CLUSTER_CORES))
    start = {"": 0, "SRAM": 100, "MRAM": 200}[weights] + 1000 * sanitize
    check(cases(30, start, soc), tmp_path, sanitize, soc)


@pytest.mark.parametrize("weights", ["", "SRAM"])
def test_images(tmp_path: Path, weights: str) -> None:
    """Layers whose blocks of 2x2 pixels the cores copy; all paddings, odd and even sizes."""
    soc = replace(SIRACUSA, accelerators=(replace(NEUREKA, weight_memory=weights), CLUSTER_CORES))
    check(cases(40, 400, soc, image_layer), tmp_path, sanitize=True, soc=soc)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(5000, 5300, 50))
def test_more_layers(tmp_path: Path, start: int) -> None:
    """300 random layers, odd sizes, small budgets of L1; weights here and there."""
    core = replace(NEUREKA, weight_memory="SRAM" if start % 100 else "")
    soc = replace(SIRACUSA, accelerators=(core, CLUSTER_CORES))
    check(cases(50, start, soc), tmp_path, sanitize=True, soc=soc)
