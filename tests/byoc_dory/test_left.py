"""Last tiles left to the next layer: results, plans, faults that guards or device models find."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.errors import TileProgramError
from byoc_dory.layers import Layer, Tensor
from byoc_dory.left import check_left
from byoc_dory.plan import Left
from byoc_dory.region import RegionCode
from byoc_dory.tileloop.program import TileProgram
from htvm.errors import SimulationError
from tests.byoc_dory.test_neureka_beside import block, code_of, conv
from tests.byoc_dory.test_neureka_native import check
from tests.byoc_dory.test_preloads import case_of

RELU, BOTH = (0, 127), (-128, 127)


def chain(sides: tuple[int, ...], seed: int, size: int = 25, channels: int = 32) -> list[Layer]:
    """Convolutions one after another, of which most results are at least 0."""
    x = Tensor("x", (channels, size, 5), "int8", "NHWC")
    layers: list[Layer] = []
    for number, side in enumerate(sides):
        clip = BOTH if (number + seed) % 3 == 2 and seed else RELU
        layers.append(conv(f"c{number}", x, channels, side, clip, seed + number))
        x = layers[-1].output
    return layers


def programs_of(code: RegionCode) -> list[tuple[str, TileProgram]]:
    return [(each.accelerator, each.program) for each in code.kernels if each.program is not None]


def tiles_of(code: RegionCode) -> list[int | None]:
    """For each layer, the own tiles that are started before the last one of the layer before."""
    assert code.plan is not None
    return [None if plan.left is None else plan.left.tiles for plan in code.plan.layers]


@pytest.mark.parametrize("sanitize", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_random_regions(sanitize: bool, tmp_path: Path) -> None:
    cases, found = [], set()
    for seed in range(100 * sanitize, 100 * sanitize + 12):
        rng = np.random.default_rng([seed, 3])
        sides = tuple(int(side) for side in rng.choice([1, 3], rng.integers(3, 7)))
        layers = chain(sides, seed, int(rng.choice([6, 13, 25])), int(rng.choice([8, 33, 70])))
        code = code_of(layers, f"r{seed}", None if seed % 4 else 60_000)
        found.update(tiles_of(code))
        cases.append(case_of(layers, code, seed))
    assert found == {None, 0, 1}
    check(cases, tmp_path, sanitize)


def test_beside_sums(tmp_path: Path) -> None:
    """Layers before and behind one with a sum beside it."""
    cases, left = [], 0
    for seed in range(8):
        layers = block(seed)
        code = code_of(layers, f"r{seed}")
        left += sum(tiles is not None for tiles in tiles_of(code))
        cases.append(case_of(layers, code, seed))
    assert left >= 4
    check(cases, tmp_path, False)


def test_what_is_left_is_completed_by_the_next_layer() -> None:
    code = code_of(chain((3, 1, 3, 1), 1), "r")
    assert code.plan is not None
    plans = code.plan.layers
    assert [plan.leaves for plan in plans] == [True, True, True, False]
    assert [plan.left is not None for plan in plans] == [False, True, True, True]
    assert code.plan.saved_cycles > 0
    apart = block(0)  # the third one has a sum beside it, the cores are behind
    plan, names = code_of(apart, "r").plan, [layer.name for layer in apart]
    assert plan is not None
    leaving = [name for name, each in zip(names, plan.layers, strict=True) if each.leaves]
    assert leaving == ["first", "long"]
    stored = code_of(chain((3, 1), 1), "r", 6_000).plan
    assert stored is not None and not any(each.leaves for each in stored.layers)


def test_a_guard_finds_what_is_not_completed() -> None:
    running = programs_of(code_of(chain((3, 1, 3, 1), 1), "r"))
    check_left(running)
    found = 0
    for number, (name, program) in enumerate(running):

        def changed(by: TileProgram, at: int = number, home: str = name) -> None:
            check_left([*running[:at], (home, by), *running[at + 1 :]])

        if program.leaves:
            with pytest.raises(TileProgramError, match="leaves nothing to it"):
                changed(replace(program, leaves=False))
            with pytest.raises(TileProgramError, match="nobody completes"):
                check_left(running[: number + 1])
            with pytest.raises(TileProgramError, match="should be stored"):
                changed(replace(program, result=replace(program.result, resident=False)))
        if program.left is not None:
            with pytest.raises(TileProgramError, match="nobody completes"):
                changed(replace(program, left=None))
            with pytest.raises(TileProgramError, match="nobody completes"):
                changed(program, home="cluster")
            with pytest.raises(TileProgramError, match="all tiles are started|tile 1 takes"):
                changed(replace(program, left=Left(program.tiles)))
            (source, *_) = program.operands
            with pytest.raises(TileProgramError, match="'in' is loaded"):
                changed(replace(program, operands=(replace(source, resident=False),)))
            found += 1
    assert found == 3


MISSING = {
    "no completion": ("siracusa_neureka_start_behind(", "siracusa_neureka_start("),
    "nothing left": ("siracusa_neureka_leave(", "(void)("),
    "too late": ("tile == 0u ?", "tile < 9u ?"),
}


@pytest.mark.parametrize("fault", MISSING)
def test_device_models_find_faults(fault: str, tmp_path: Path) -> None:
    """A completion that is missing, or comes after the first tile that depends on it."""
    layers = chain((3, 1, 3, 1, 3), 0)
    code = code_of(layers, "r")
    before, after = MISSING[fault]
    mutants = 0
    for number, kernel in enumerate(code.kernels):
        if before not in kernel.source:
            continue
        mutant = replace(kernel, source=kernel.source.replace(before, after))
        kernels = (*code.kernels[:number], mutant, *code.kernels[number + 1 :])
        case = case_of(layers, replace(code, kernels=kernels), 0)
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises((SimulationError, AssertionError)):
            check([case], folder, False)
        mutants += 1
    assert mutants >= 2
