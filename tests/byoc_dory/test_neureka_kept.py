"""Depthwise layers with stride 2 on N-EUREKA, of whose pixels those that are kept stay in L1."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.layers import Convolution, Layer, MulShift, Tensor, depthwise_layer
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.soc.siracusa.neureka_layer import keeps_some
from tests.byoc_dory.program import Case
from tests.byoc_dory.test_neureka_beside import code_of, conv
from tests.byoc_dory.test_neureka_native import check
from tests.byoc_dory.test_neureka_rv32 import measure
from tests.byoc_dory.test_preloads import case_of

RELU, BOTH = (0, 127), (-128, 127)


def kept(name: str, x: Tensor, seed: int) -> Convolution:
    """A depthwise layer with stride 2, with any padding."""
    rng = np.random.default_rng([seed, 7])
    weight = rng.integers(-128, 128, (x.shape[0], 1, 3, 3)).astype(np.int8)
    top, left, bottom, right = (int(size) for size in rng.integers(0, 2, 4))
    layer = depthwise_layer(
        name, x, f"{name}.out", weight, None, pad=(top, left, bottom, right), stride=(2, 2),
        requant=MulShift((1,), (7,), (0,)), clip=(RELU, BOTH)[seed % 2],
    )  # fmt: skip
    return replace(layer, output=replace(layer.output, layout="NHWC"))


def chain(seed: int) -> list[Layer]:
    """A convolution before a depthwise layer, and one behind it."""
    rng = np.random.default_rng([seed, 3])
    rows, columns = (int(size) for size in rng.integers(5, 30, 2))
    channels = int(rng.choice([8, 27, 32, 61, 64]))
    x = Tensor("x", (channels, rows, columns), "int8", "NHWC")
    layers: list[Layer] = [conv("before", x, channels, 1, RELU, seed)]
    layers.append(kept("depthwise", layers[-1].output, seed))
    layers.append(conv("behind", layers[-1].output, 40, (1, 3)[seed % 2], RELU, seed))
    return layers


@pytest.mark.parametrize("sanitize", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_kept_pixels_stay(sanitize: bool, tmp_path: Path) -> None:
    cases, stay, left, several = [], 0, 0, 0
    for seed in range(100 * sanitize, 100 * sanitize + 12):
        layers = chain(seed)
        code = code_of(layers, f"r{seed}", None if seed % 4 else 40_000)
        assert code.plan is not None and keeps_some(layers[1])
        plan = code.plan.layers[1]
        stay += plan.resident_output
        left += plan.leaves
        several += plan.resident_output and plan.solution.tile.y < layers[1].oy
        cases.append(case_of(layers, code, seed))
    assert stay >= 8 and left >= 4 and several >= 2, (stay, left, several)
    check(cases, tmp_path, sanitize)


def staying(seeds: range) -> list[Case]:
    """Regions in which all results stay."""
    cases = []
    for seed in seeds:
        layers = chain(seed)
        code = code_of(layers, f"r{seed}")
        assert code.plan is not None and all(each.resident_output for each in code.plan.layers[:-1])
        cases.append(case_of(layers, code, seed))
    return cases


def test_kept_pixels_stay_on_the_simulator(tmp_path: Path) -> None:
    measure(staying(range(1, 6)), tmp_path, SIRACUSA)


def test_pixels_lie_apart_from_each_other_and_from_those_that_are_kept() -> None:
    """Of two tiles, one is computed while the cores copy of the other."""
    for case in staying(range(1, 6)):
        program = next(each.program for each in case.code.kernels if each.layer_name == "depthwise")
        assert case.code.plan is not None and program is not None
        areas = [range(program.result.l1, program.end(program.result))]
        for tile in program.order():
            call = program.call(tile)
            assert call.number("output") == call.number("keep.from")
            size = (2 * call.number("keep.rows") - 1) * call.number("keep.from_row")
            areas.append(range(call.number("output"), call.number("output") + size))
        areas += [
            range(each.offset, each.offset + each.bytes)
            for each in case.code.plan.l1_map
            if each.first <= 1 <= each.last and each.tensor != "depthwise.out"
        ]
        areas.sort(key=lambda area: area.start)
        assert all(one.stop <= other.start for one, other in itertools.pairwise(areas))
