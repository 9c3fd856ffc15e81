"""Tiles of ranges of columns and channels, where L1 has no room for whole rows on the cores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.errors import TilingError
from byoc_dory.layers import Layer, MulShift, Tensor, conv2d_layer, depthwise_layer
from byoc_dory.options import TilingOptions
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.tiles import is_narrow
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.soc.snitch_ita.description import SNITCH_ITA
from byoc_dory.verdict import Refused
from tests.byoc_dory.program import Case
from tests.byoc_dory.test_neureka_native import case_of, check
from tests.byoc_dory.test_neureka_rv32 import measure

BUDGETS = (500, 700, 1_000, 1_400, 2_000, 2_800, 4_000, 5_600, 8_000, 11_000, 16_000, 32_000)
SOCS = pytest.mark.parametrize("soc", [SIRACUSA, SNITCH_ITA], ids=["simd", "plain"])


def random_convolution(rng: np.random.Generator, name: str) -> Layer:
    """A convolution that the cores take, odd in all sizes, strides and paddings."""
    channels, outputs, rows, columns = (int(size) for size in rng.integers(1, 34, 4))
    fy, fx = (int(size) for size in rng.integers(1, 6, 2))
    if rng.integers(2):
        fy = fx = 3
    depthwise = bool(rng.integers(2))
    pad = tuple(int(rng.integers(0, size)) for size in (fy, fx, fy, fx))
    rows, columns = max(rows, fy), max(columns, fx)
    stride = tuple(int(step) for step in rng.integers(1, 4, 2))
    if rng.integers(2):
        stride = (stride[0], stride[0])
    dtype, result = (("int8", "uint8")[int(rng.integers(2))] for _ in range(2))
    count = channels if depthwise else outputs
    weight = rng.integers(-128, 128, (count, 1 if depthwise else channels, fy, fx)).astype(np.int8)
    bias = rng.integers(-5000, 5000, count).astype(np.int32) if rng.integers(4) else None
    each = count if rng.integers(2) else 1
    spread = int(np.sqrt(weight[0].size) * 128 * 74).bit_length()
    requant = MulShift(
        tuple(int(value) for value in rng.integers(1, 2**10, each)),
        tuple(int(value) for value in rng.integers(spread, spread + 4, each)),
        tuple(int(value) for value in rng.integers(-(2**12), 2**12, each)),
    )
    clip = (0, 255) if result == "uint8" else (-128, 127)
    source = Tensor("x", (channels, rows, columns), dtype, "NHWC")
    make = depthwise_layer if depthwise else conv2d_layer
    layer: Layer = make(
        name, source, "y", weight, bias, stride=stride, pad=pad, requant=requant, clip=clip
    )
    return replace(layer, output=Tensor("y", layer.output.shape, result, "NHWC"))


def narrow_cases(count: int, start: int, soc: Soc) -> list[Case]:
    """Layers, each with the smallest of the budgets that some tile fits."""
    (core,) = (found for found in soc.accelerators if isinstance(found, ClusterCores))
    found: list[Case] = []
    for seed in range(start, start + count):
        layer = random_convolution(np.random.default_rng(seed), f"l{seed}")
        verdict = core.judge(soc, layer)
        assert not isinstance(verdict, Refused), verdict
        schedule = ("overlapped", "published")[seed % 4 == 0]
        # Sometimes a budget with some more tiles to choose from.
        for budget in BUDGETS[seed % 3 :]:
            try:
                options = TilingOptions(l1_budget=budget, schedule=schedule)  # type: ignore[arg-type]
                found.append(case_of(layer, options, f"c{seed}", soc, core.name))
                break
            except TilingError:
                continue
    assert len(found) == count
    return found


def axes_of(case: Case) -> set[str]:
    """Return the axes along which a case's tiles are ranges."""
    (kernel,) = case.code.kernels
    assert kernel.program is not None
    return {axis.name for axis in kernel.program.axes if axis.count > 1}


def check_coverage(found: list[Case]) -> None:
    """Check that tiles are ranges of columns, of depthwise channels, and of both."""
    narrow = [axes_of(case) for case in found]
    assert sum("x" in axes for axes in narrow) > len(found) // 4
    kinds = [case.code.kernels[0].layer.op for case in found if {"x", "k"} <= axes_of(case)]  # type: ignore[union-attr]
    assert any("depthwise" in kind for kind in kinds), kinds
    assert any("depthwise" not in kind for kind in kinds), kinds


@SOCS
def test_native(tmp_path: Path, soc: Soc) -> None:
    found = narrow_cases(16, 0, soc)
    check_coverage(found)
    check(found, tmp_path, False, soc)


@SOCS
def test_simulated(tmp_path: Path, soc: Soc) -> None:
    """The same results on the simulated cores, and the cycles that were predicted."""
    measured = measure(narrow_cases(12, 200, soc), tmp_path, soc)
    errors = [kernel.predicted_cycles / cycles - 1 for kernel, cycles in measured]
    # The kernels prepare each channel anew for every tile, which the model does not count.
    assert np.median(np.abs(errors)) < 0.2
    # Tiles of a few pixels of a filter that has no kernel of its own take twice as long.
    assert np.abs(errors).max() < 0.75


@pytest.mark.slow
@SOCS
@pytest.mark.parametrize("start", range(1000, 1300, 50))
def test_more(tmp_path: Path, soc: Soc, start: int) -> None:
    check(narrow_cases(50, start, soc), tmp_path, start == 1000, soc)


def test_all_that_fits_whole_rows_is_not_narrow() -> None:
    """Columns are whole where a row fits, so that tiles stay one run of bytes."""
    source = Tensor("x", (16, 24, 24), "int8", "NHWC")
    weight = np.ones((16, 1, 3, 3), np.int8)
    layer = depthwise_layer(
        "l", source, "y", weight, None, pad=(1, 1, 1, 1), requant=MulShift((1,), (4,), (0,))
    )
    core = SIRACUSA.accelerator("cluster")
    assert not is_narrow(core.tiling_problem(SIRACUSA, layer, TilingOptions()))
    assert is_narrow(core.tiling_problem(SIRACUSA, layer, TilingOptions(2_000)))
