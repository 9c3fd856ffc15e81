"""A small program on both platforms: results, cycles, sizes, errors, the cache of builds."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.errors import InputError, L2OverflowError, SimulationError, ToolchainError
from byoc_dory.region import Constant
from byoc_dory.soc.registry import resolve
from htvm.firmware import rv32
from htvm.firmware.build import Built, build_host, build_rv32
from htvm.firmware.toolchain import Compiler
from htvm.sim.runner import run
from tests.aot import tiny
from tests.tools import tool

DIANA = resolve("diana").soc
GENERIC = resolve("generic.cpu").soc


def _sample(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, (1, 4, 8)).astype(np.int8)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_rv32(tiny.program(), DIANA, cache_dir=tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_host(tiny.program(), DIANA, cache_dir=tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("platform", ["firmware", "native"])
def test_many_samples_on_one_build(platform: str, request: pytest.FixtureRequest) -> None:
    built = request.getfixturevalue(platform)
    for seed in range(3):
        result = run(built, [_sample(seed)])
        for got, want in zip(result.outputs, tiny.reference(_sample(seed)), strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == np.int8 and got.flags.writeable


def test_cycles_belong_to_steps(firmware: Built) -> None:
    result = run(firmware, [_sample(0)])
    assert result.cycles is not None and result.stack_used is not None
    assert len(result.step_cycles) == 4 and min(result.step_cycles) >= 32
    # Steps follow one another inside the run, and nothing but marks and checks is outside them.
    flat = [cycle for span in result.spans for cycle in span]
    assert flat == sorted(flat) and flat[0] >= 0 and flat[-1] <= result.cycles
    assert result.cycles - sum(result.step_cycles) < 100
    assert 0 < result.stack_used < DIANA.host.stack
    assert run(firmware, [_sample(1)]).cycles == result.cycles


def test_the_host_platform_has_no_cycles(native: Built) -> None:
    result = run(native, [_sample(0)])
    assert (result.cycles, result.step_cycles, result.stack_used) == (None, [], None)


def test_sizes(firmware: Built, native: Built) -> None:
    sizes = firmware.sizes
    assert (sizes.arena, sizes.io, sizes.stack) == (160, 96, DIANA.host.stack)
    assert sizes.constants == firmware.program.constant_bytes == 48
    assert 100 < sizes.code < 2000 and 0 <= sizes.other < 64
    assert sizes.total == sum(
        (sizes.code, sizes.constants, sizes.arena, sizes.stack, sizes.io, sizes.other)
    )
    assert native.sizes.arena == 160 and native.sizes.code > 1000


@pytest.mark.parametrize("build", [build_rv32, build_host])
def test_a_failing_step_is_named(build: object, tmp_path: Path) -> None:
    built = build(tiny.program(fail_with=7), DIANA, cache_dir=tmp_path)  # type: ignore[operator]
    with pytest.raises(SimulationError, match="tiny_run returned 7") as caught:
        run(built, [_sample(0)])
    if build is build_rv32:
        assert "step 2, layer reverse_0 on digital" in str(caught.value)


def test_wrong_inputs(firmware: Built) -> None:
    with pytest.raises(InputError, match="0 inputs given, the model has 1"):
        run(firmware, [])
    with pytest.raises(InputError, match=r"int16\[1, 4, 8\] given where int8\[1, 4, 8\]"):
        run(firmware, [_sample(0).astype(np.int16)])
    with pytest.raises(InputError, match=r"input 'serving/x:0'"):
        run(firmware, [_sample(0).ravel()])


def test_overflow_is_seen_before_compiling(tmp_path: Path) -> None:
    program = tiny.program()
    heavy = Constant("tiny_heavy", np.zeros(600_000, np.int8), "")
    big = replace(program, constants=(*program.constants, heavy))
    with pytest.raises(L2OverflowError) as caught:
        build_rv32(big, DIANA, cache_dir=tmp_path)
    text = str(caught.value)
    assert "needs 604,400 B of L2 without its code, there are 512,000 B" in text
    assert "constants 600,048 B, arena 160 B" in text
    assert "constants dominate (600,048 B), the largest is tiny_heavy" in text
    assert not list(tmp_path.rglob("*.c"))


def test_overflow_by_the_arena_names_the_layer(tmp_path: Path) -> None:
    program = tiny.program()
    big = replace(program, plan=replace(program.plan, peak=600_000))
    with pytest.raises(L2OverflowError, match="the arena dominates .* layer scale_0"):
        build_host(big, DIANA, cache_dir=tmp_path)


def test_overflow_by_the_code_is_seen_when_linking(tmp_path: Path) -> None:
    # Room for everything but the code.
    small = GENERIC.resized("L2", GENERIC.host.stack + 48 + 160 + 96 + 64)
    with pytest.raises(L2OverflowError, match=r"code \d+ B") as caught:
        build_rv32(tiny.program(), small, cache_dir=tmp_path)
    assert "dominate" in str(caught.value)
    assert [path.name for path in (tmp_path / "builds").iterdir()] == []


def test_a_build_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_rv32(tiny.program(), GENERIC, cache_dir=tmp_path)

    def never(*_: object) -> None:
        raise AssertionError("compiled twice")

    monkeypatch.setattr(rv32, "build_firmware", never)
    again = build_rv32(tiny.program(), GENERIC, cache_dir=tmp_path)
    assert again.path == first.path and again.sizes == first.sizes
    with pytest.raises(AssertionError, match="compiled twice"):
        build_rv32(tiny.program("other"), GENERIC, cache_dir=tmp_path)
    assert len(list((tmp_path / "builds").iterdir())) == 1


def test_builds_nobody_used_for_long_are_removed(tmp_path: Path) -> None:
    first = build_host(tiny.program(), GENERIC, cache_dir=tmp_path).path.parent
    kept = build_host(tiny.program("kept"), GENERIC, cache_dir=tmp_path).path.parent
    long_ago = first.stat().st_mtime - 30 * 24 * 3600
    for folder in (first, kept):
        os.utime(folder, (long_ago, long_ago))
    build_host(tiny.program("kept"), GENERIC, cache_dir=tmp_path)  # used again
    build_host(tiny.program("third"), GENERIC, cache_dir=tmp_path)
    assert not first.exists() and kept.exists()


def test_an_unwritable_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolchainError, match="cannot write the build"):
        build_host(tiny.program(), GENERIC, cache_dir=tmp_path / "file")


@pytest.mark.parametrize("host", ["zig", "gcc"])
def test_sanitizers_find_nothing(host: str, tmp_path: Path) -> None:
    if host != "zig":
        tool(host)
    compiler = Compiler.zig(host=None if host == "zig" else host)
    built = build_host(tiny.program(), DIANA, compiler, tmp_path, sanitize=True)
    result = run(built, [_sample(5)])
    np.testing.assert_array_equal(result.outputs[1], tiny.reference(_sample(5))[1])
