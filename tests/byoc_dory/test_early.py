"""Layers of N-EUREKA beside layers of the cores: results, when they are started, guards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.early import schedule_early
from byoc_dory.errors import TileProgramError
from byoc_dory.layers import Layer, matmul_layer, matrix, rows_layer
from byoc_dory.options import TilingOptions
from byoc_dory.region import Region, RegionCode
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.under_way import check_under_way
from tests.byoc_dory.program import Case
from tests.byoc_dory.test_neureka_native import check
from tests.byoc_dory.test_under_way import (
    function,
    int8,
    product,
    requant,
    running,
    started,
)
from tests.reference import matrix_layers


def siblings(seed: int, rows: int, outputs: int = 3) -> Region:
    """Products of the same rows on the engine, and what the cores make of each one's result."""
    rng = np.random.default_rng([seed, 17])
    width = 32 * int(rng.integers(1, 5))
    inputs = [matrix("x", rows, width)]
    first = rows_layer("first", inputs[0], function(rng, width))
    layers: list[Layer] = [first]
    for number in range(outputs):
        columns = 4 * int(rng.integers(4, 50))
        dense = product(rng, f"product{number}", first.output, columns)
        name = f"rows{number}"
        if seed % 2:  # without constants
            inputs.append(matrix(f"second{number}", columns, 4))
            last = matmul_layer(name, dense.output, inputs[-1], requant=requant(rng, 14))
            layers += [dense, last]
        else:
            layers += [dense, rows_layer(name, dense.output, function(rng, columns))]
    homes = tuple("cluster" if number % 2 == 0 else "neureka" for number in range(len(layers)))
    results = tuple(layer.output for layer in layers[2::2])
    return Region(f"r{seed}", tuple(layers), tuple(inputs), results, homes=homes)


def code_of(region: Region, **options: object) -> RegionCode:
    return generate(region, Cost(SIRACUSA, TilingOptions(**options)), region.name)  # type: ignore[arg-type]


def case_of(region: Region, code: RegionCode, seed: int) -> Case:
    rng = np.random.default_rng(seed)
    values = {tensor.name: int8(rng, *tensor.shape) for tensor in region.inputs}
    for layer in region.layers:
        given = [values[tensor.name] for tensor in layer.inputs]
        values[layer.output.name] = matrix_layers.evaluate(layer, given)
    stored = {name: matrix_layers.stored(value) for name, value in values.items()}
    inputs = tuple(stored[tensor.name] for tensor in region.inputs)
    return Case(code, inputs, tuple(stored[tensor.name] for tensor in region.outputs))


@pytest.mark.parametrize("sanitize", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_products_run_beside_functions_of_rows(sanitize: bool, tmp_path: Path) -> None:
    cases, begun = [], 0
    for seed in range(50 * sanitize, 50 * sanitize + 8):
        region = siblings(seed, (1, 1, 7, 40)[seed % 4])
        code = code_of(region)
        begun += len(started(code))
        cases.append(case_of(region, code, seed))
    assert begun >= 8
    check(cases, tmp_path, sanitize)


def test_a_product_begins_when_its_operand_is_there_and_the_engine_free() -> None:
    region = siblings(1, 1)
    code = code_of(region)
    assert code.plan is not None and code.plan.starts == {3: 2, 5: 4}
    assert [kernel.layer_name for kernel in code.kernels] == [
        "first", "product0", "product1", "rows0", "product1", "product2", "rows1", "product2",
        "rows2",
    ]  # fmt: skip
    hidden = [each.hidden for each in code.plan.layers if each.started]
    assert len(hidden) == 2 and all(hidden)
    cycles = sum(kernel.predicted_cycles or 0 for kernel in code.kernels)
    assert cycles == code.plan.cycles - code.plan.saved_cycles


def test_its_constants_are_loaded_before() -> None:
    code = code_of(siblings(1, 1))
    assert code.plan is not None
    assert code.plan.layers[3].preloaded and code.plan.layers[1].preload is not None
    kernels = {kernel.symbol: kernel for kernel in code.kernels}
    start = next(kernel for kernel in code.kernels if kernel.kind == "start")
    assert start.constants[0].name in kernels["r1_product0"].source


@pytest.mark.parametrize(
    "options", [{"schedule": "published"}, {"schedule": "decoupled"}, {"objective": "array"}]
)
def test_others_are_computed_in_their_turn(options: dict[str, str]) -> None:
    code = code_of(siblings(1, 1), **options)
    assert not started(code)


def test_nothing_begins_before_its_operand() -> None:
    """In a chain nothing is independent, so nothing is started."""
    rng = np.random.default_rng(2)
    first = product(rng, "first", matrix("x", 1, 64), 64)
    rows = rows_layer("rows", first.output, function(rng, 64))
    last = product(rng, "last", rows.output, 32)
    layers = (first, rows, last)
    homes = {layer.name: SIRACUSA.accelerator("neureka") for layer in layers}
    homes["rows"] = SIRACUSA.accelerator("cluster")
    options = TilingOptions()
    schedule, saved = schedule_early(
        layers, homes, SIRACUSA, options, Cost(SIRACUSA, options).best_cycles
    )
    assert not schedule.starts and saved == 0


def test_several_tiles_and_clips_are_not_started() -> None:
    engine = SIRACUSA.accelerator("neureka")
    rng = np.random.default_rng(3)
    layer = product(rng, "product", matrix("x", 1, 64), 64)
    assert engine.held_back(SIRACUSA, layer) == ""
    clipped = replace(layer, clip=(0, 127))
    assert "take part" in engine.held_back(SIRACUSA, clipped)
    large = product(rng, "product", matrix("x", 3000, 64), 64)
    assert "several tiles" in engine.held_back(SIRACUSA, large)


@pytest.mark.parametrize(
    ("starts", "what"),
    [
        ({3: 1}, "'neureka' holds 1 layer at a time"),
        ({3: 2, 5: 2}, "'neureka' holds 1 layer at a time"),
        ({1: 0}, "writes its operand meanwhile"),
    ],
)
def test_a_wrong_start_is_refused(starts: dict[int, int], what: str) -> None:
    code = code_of(siblings(1, 1))
    check_under_way(running(code), {3: 2, 5: 4}, "r")
    with pytest.raises(TileProgramError, match=what):
        check_under_way(running(code), starts, "r")
