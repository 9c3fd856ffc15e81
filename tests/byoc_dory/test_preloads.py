"""Constants that the layer before loads: results, plans, and faults that the device models find."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.codegen import generate
from byoc_dory.cost import Cost
from byoc_dory.errors import TileProgramError
from byoc_dory.layers import Add, Layer, Tensor
from byoc_dory.options import TilingOptions
from byoc_dory.plan import Preload
from byoc_dory.region import Region, RegionCode
from byoc_dory.residency.preloads import layer_before
from byoc_dory.soc.siracusa.description import SIRACUSA
from byoc_dory.tileloop.checks import check_places
from byoc_dory.tileloop.cycles import traffic_of
from htvm.errors import SimulationError
from tests.byoc_dory.program import Case
from tests.byoc_dory.test_neureka_beside import add, code_of, conv, results
from tests.byoc_dory.test_neureka_native import check
from tests.reference.matrix_layers import stored


def chain(seed: int) -> list[Layer]:
    """Convolutions on the engine and on the cores, with a sum of two of them."""
    rng = np.random.default_rng([seed, 11])
    x = Tensor(
        "x", (int(rng.integers(3, 40)), *(int(n) for n in rng.integers(3, 14, 2))), "int8", "NHWC"
    )
    layers: list[Layer] = []
    for number in range(int(rng.integers(2, 6))):
        k, side = int(rng.integers(4, 150)), int(rng.choice([1, 3]))
        layers.append(conv(f"c{number}", x, k, side, (-128, 127), seed + number))
        x = layers[-1].output
    if seed % 2:
        other = conv("other", layers[-2].output, x.shape[0], 1, (-128, 127), seed + 9)
        layers += [other, add("total", x, other.output, (0, 127))]
    return layers


def generated(layers: list[Layer], seed: int, budget: int | None) -> RegionCode:
    """The region's code; some layers run on the cores."""
    homes = tuple(
        "cluster" if isinstance(layer, Add) or (number + seed) % 3 == 0 else "neureka"
        for number, layer in enumerate(layers)
    )
    region = Region(f"r{seed}", tuple(layers), layers[0].inputs, (layers[-1].output,), homes=homes)
    return generate(region, Cost(SIRACUSA, TilingOptions(l1_budget=budget)), f"r{seed}")


def check_plan(code: RegionCode) -> int:
    """Check who loads what, and that nothing lies in two places; return how many are preloaded."""
    plan = code.plan
    assert plan is not None and plan.l1_peak <= plan.l1_limit
    assert not plan.layers[0].preloaded and plan.layers[-1].preload is None
    loaders = {
        layer_before(number, plan.starts): each
        for number, each in enumerate(plan.layers)
        if each.preloaded
    }
    for number, before in enumerate(plan.layers):
        assert (before.preload is not None) == (number in loaders)
        assert before.preload is None or before.preload.l1 == loaders[number].l1_weights
    for number in range(len(plan.layers)):
        places = [part for part in plan.l1_map if part.first <= number <= part.last]
        places.sort(key=lambda part: part.offset)
        for one, other in zip(places, places[1:], strict=False):
            assert one.offset + one.bytes <= other.offset
    return sum(each.preloaded for each in plan.layers)


def case_of(layers: list[Layer], code: RegionCode, seed: int) -> Case:
    """The region with a drawn input."""
    shape = layers[0].inputs[0].shape
    x = np.random.default_rng(seed).integers(-128, 128, shape, np.int8)
    return Case(code, (stored(x),), (stored(results(layers, x)[layers[-1].output.name]),))


@pytest.mark.parametrize("sanitize", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_random_regions(sanitize: bool, tmp_path: Path) -> None:
    cases, preloaded, several = [], 0, 0
    for seed in range(100 * sanitize, 100 * sanitize + 12):
        layers = chain(seed)
        code = generated(layers, seed, None if seed % 3 else 40_000)
        preloaded += check_plan(code)
        programs = [kernel.program for kernel in code.kernels if kernel.program is not None]
        several += any(each.preloaded for program in programs for each in program.loaded)
        cases.append(case_of(layers, code, seed))
    assert preloaded >= 20 and several >= 2
    check(cases, tmp_path, sanitize)


def test_the_bytes_are_counted_where_they_are_loaded() -> None:
    layers = chain(1)
    found = {}
    for schedule in ("overlapped", "decoupled", "published"):
        region = Region("r", tuple(layers), layers[0].inputs, (layers[-1].output,))
        cost = Cost(SIRACUSA, TilingOptions(schedule=schedule))
        homes = tuple("cluster" if isinstance(layer, Add) else "neureka" for layer in layers)
        code = generate(replace(region, homes=homes), cost, "r")
        programs = [kernel.program for kernel in code.kernels if kernel.program is not None]
        found[schedule] = sum(traffic_of(program).constants for program in programs)
        if schedule == "overlapped":
            assert check_plan(code) and code.plan is not None and code.plan.saved_cycles > 0
            size = {
                c.name: c.data.nbytes for k in code.kernels for c in k.constants if not c.memory
            }
            first = [each.preload.bytes for each in code.plan.layers if each.preload is not None]
            assert all(0 < each <= max(size.values()) for each in first)
        else:
            assert not any(each.preloaded or each.preload for each in code.plan.layers)  # type: ignore[union-attr]
    assert found["overlapped"] == sum(size.values())


def test_without_room_constants_are_loaded_with_their_layer() -> None:
    layers = [
        conv(f"c{n}", Tensor("x", (64, 6, 6), "int8", "NHWC"), 64, 1, (-128, 127), n) for n in (0,)
    ]
    layers.append(conv("c1", layers[0].output, 64, 1, (-128, 127), 1))
    wide = code_of(layers, "r").plan
    assert wide is not None and wide.layers[1].preloaded
    for budget in range(5_000, wide.l1_peak, 500):
        narrow = code_of(layers, "r", budget).plan
        assert narrow is not None and narrow.l1_peak <= budget


def test_a_place_that_is_in_use_is_refused() -> None:
    (code,) = [code_of(chain(1), "r")]
    programs = [kernel.program for kernel in code.kernels if kernel.program is not None]
    (first, *_) = [program for program in programs if program.preload is not None]
    check_places(first)
    taken = replace(first, preload=Preload(16, first.result.l1))
    with pytest.raises(TileProgramError, match="constants of the next layer"):
        check_places(taken)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["over the input", "elsewhere", "cut short"])
def test_device_models_find_faults(fault: str, tmp_path: Path) -> None:
    """Constants over an operand that is being read, at another place, and too few of them."""
    layers = [conv("c0", Tensor("x", (32, 9, 9), "int8", "NHWC"), 64, 3, (-128, 127), 0)]
    layers.append(conv("c1", layers[0].output, 200, 1, (-128, 127), 1))
    code = code_of(layers, "r")
    assert check_plan(code) == 1 and code.plan is not None
    before, plan = code.plan.layers
    assert before.preload is not None
    places = {"over the input": before.l1_inputs[0], "elsewhere": plan.l1_weights + 16}
    changes = {name: (r"L1_NEXT = \d+", f"L1_NEXT = {at}") for name, at in places.items()}
    changes["cut short"] = (rf"\.bytes = {before.preload.bytes},(?!(.|\n)*\.bytes)", ".bytes = 16,")
    kernel = code.kernels[0]
    source = re.sub(*changes[fault], kernel.source)
    assert source != kernel.source
    kernels = (replace(kernel, source=source), *code.kernels[1:])
    with pytest.raises((SimulationError, AssertionError)):
        check([case_of(layers, replace(code, kernels=kernels), 0)], tmp_path, False)
