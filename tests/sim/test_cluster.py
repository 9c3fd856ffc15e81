"""The cluster's run-time on both platforms, and whole networks on its first core."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import htvm
from byoc_dory.soc.header import render
from htvm.errors import SimulationError
from htvm.firmware import host, rv32
from htvm.firmware.paths import driver_folders, runtime_c
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.host import run_host
from htvm.sim.iss import TrapError
from htvm.sim.rv32 import run_rv32
from tests.models import golden
from tests.sim.harts import SOC
from tests.sim.test_c_units import WARNINGS

# gcc and clang have the address sanitizer, and take their time.
COMPILERS = [
    None,
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("gcc", "clang")
        if shutil.which(name)
    ),
]

PROGRAM = Path(__file__).with_name("cluster.c")
WORDS, ROUNDS, ROWS, CORES = 1536, 40, 16, 8
DRIVER = runtime_c() / "soc" / SOC.driver


def expected() -> np.ndarray:
    """What tests/sim/cluster.c leaves, computed another way."""
    data = np.arange(WORDS, dtype=np.uint32).reshape(ROWS, -1)[::-1].reshape(-1).copy()
    for round_ in range(ROUNDS):
        count = WORDS if round_ % 3 == 0 else 5 + round_
        cores = np.arange(count, dtype=np.uint32) % CORES
        for time in range(CORES):
            stirred = data[:count] * np.uint32(1664525) + np.uint32(1013904223) + cores
            data[:count] = np.where(time <= (cores + round_) % CORES, stirred, data[:count])
    rows = data.reshape(ROWS, -1)
    out = rows.copy()
    out[::2] = rows[: ROWS // 2]
    return np.concatenate([out.reshape(-1), np.full(CORES, ROUNDS * CORES, np.uint32)])


def firmware(source: Path, folder: Path, compiler: Compiler) -> rv32.Firmware:
    return rv32.build_firmware(
        [source, *host.driver_sources(SOC)],
        driver_folders(SOC),
        machine_of(SOC),
        folder,
        compiler,
        SOC.host.stack,
        WARNINGS,
    )


def test_firmware(tmp_path: Path, compiler: Compiler) -> None:
    built = firmware(PROGRAM, tmp_path, compiler)
    runs = [
        run_rv32(built, {}, {"result": 4 * (WORDS + CORES)}, compiler=compiler, step_polls=step)
        for step in (False, True)
    ]
    got = np.frombuffer(runs[0].outputs["result"], np.uint32)
    np.testing.assert_array_equal(got, expected())
    assert runs[0] == runs[1]
    units = {event["unit"] for event in runs[0].events}
    assert units == {"cluster", "dma", "host", *(f"core{hart}" for hart in range(9))}
    # Every kernel, from its wake-up until all are through; in it each core has its share.
    spans = {
        unit: [(e["start"], e["end"]) for e in runs[0].events if e["unit"] == unit]
        for unit in ("cluster", "core0", "core3", "host")
    }
    assert [len(spans[unit]) for unit in ("cluster", "core0", "core3")] == [2 * ROUNDS] * 3
    for kernel, first, third in zip(spans["cluster"], spans["core0"], spans["core3"], strict=True):
        assert kernel[0] == first[0] < third[0] < third[1] < kernel[1] and first[1] < kernel[1]
        assert all(end <= kernel[0] or start >= kernel[1] for start, end in spans["host"])
    assert 0 < runs[0].stack_used < 512


@pytest.mark.parametrize("name", COMPILERS)
def test_host_platform(name: str | None, tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text(f"#define SNITCH_TEST_HOST 1\n{PROGRAM.read_text()}")
    program = host.build([source], [], SOC, tmp_path, Compiler.zig(host=name), sanitize=True)
    (got,) = run_host(program, [], [4 * (WORDS + CORES)])
    np.testing.assert_array_equal(np.frombuffer(got, np.uint32), expected())


FORK_JOIN = """
#include "cluster.h"
#include "htvm_hal_platform.h"
extern uint32_t cycles[1];
uint32_t cycles[1];
static void nothing(const void *args, uint32_t core, uint32_t cores)
{
    (void)args; (void)core; (void)cores;
}
static uint32_t now(void)
{
    uint32_t value;
    __asm__ volatile("csrr %0, mcycle" : "=r"(value));
    return value;
}
int main(void)
{
    const uint32_t start = now();
    for (int i = 0; i < 100; i++) {
        cluster_run(nothing, 0);
    }
    cycles[0] = now() - start;
    return 0;
}
"""


def test_a_fork_join_is_cheap(tmp_path: Path, compiler: Compiler) -> None:
    source = tmp_path / "main.c"
    source.write_text(FORK_JOIN)
    result = run_rv32(firmware(source, tmp_path, compiler), {}, {"cycles": 4}, compiler=compiler)
    assert int.from_bytes(result.outputs["cycles"], "little") < 100 * 60


OVERFLOW = """
#include "cluster.h"
static uint32_t sink(volatile uint32_t *p, uint32_t depth)
{
    volatile uint32_t frame[32];
    frame[0] = depth;
    return depth == 0 ? *p : sink(frame, depth - 1) + frame[0];
}
static void deep(const void *args, uint32_t core, uint32_t cores)
{
    (void)args;
    volatile uint32_t zero = 0;
    (void)sink(&zero, core == cores - 1 ? 20 : 0);
}
int main(void)
{
    cluster_run(deep, 0);
    return 0;
}
"""


def test_a_worker_overflows_its_stack(tmp_path: Path, compiler: Compiler) -> None:
    source = tmp_path / "main.c"
    source.write_text(OVERFLOW)
    with pytest.raises(TrapError, match="stack overflow.*on hart 7"):
        run_rv32(firmware(source, tmp_path, compiler), {}, {}, compiler=compiler)


WRONG = """
#include "cluster_dma.h"
#include "cluster.h"
{include}
int main(void)
{{
    const cluster_dma_t beyond = {{cluster_l1(0), cluster_l1(0x100), HTVM_L1_SIZE, 1, 0, 0}};
    cluster_dma_wait(cluster_dma_start(&beyond));
    cluster_dma_wait_all();
    return 0;
}}
"""


@pytest.mark.parametrize("platform", ["rv32", "host"])
def test_a_complaint_ends_the_wait(platform: str, tmp_path: Path, compiler: Compiler) -> None:
    source = tmp_path / "main.c"
    if platform == "rv32":
        source.write_text(WRONG.format(include='#include "htvm_hal_platform.h"'))
        with pytest.raises(TrapError, match="DMA"):
            run_rv32(firmware(source, tmp_path, compiler), {}, {}, compiler=compiler)
        return
    source.write_text(WRONG.format(include='#include "htvm_host.h"'))
    program = host.build([source], [], SOC, tmp_path, compiler)
    with pytest.raises(SimulationError, match="DMA"):
        run_host(program, [], [], timeout_s=20)


@pytest.mark.parametrize("name", COMPILERS)
def test_simulator_under_sanitizers(name: str | None, tmp_path: Path, compiler: Compiler) -> None:
    """The simulator of many harts, with warnings as errors, on the program above."""
    from htvm.sim.iss import _machine_options

    built = firmware(PROGRAM, tmp_path, compiler)
    (tmp_path / "htvm_soc.h").write_text(render(SOC))
    iss = host.sanitizing(Compiler.zig(host=name)).compile_host(
        [*sorted((runtime_c() / "iss").glob("*.c")), *host.model_sources(SOC)],
        tmp_path / "iss",
        [tmp_path, runtime_c() / "iss", runtime_c() / "include", DRIVER],
        WARNINGS,
    )
    events = tmp_path / "events"
    done = subprocess.run(
        [iss, built.elf, *_machine_options(machine_of(SOC)), "--events", events],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "core7" in events.read_text()


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("ad01_int8", "rv32"),
        pytest.param("ad01_int8", "host", marks=pytest.mark.slow),
        pytest.param("kws_ref_model", "rv32", marks=pytest.mark.slow),
        pytest.param("kws_ref_model", "host", marks=pytest.mark.slow),
    ],
)
def test_tflite_on_the_first_core(name: str, platform: Literal["rv32", "host"]) -> None:
    known = golden(name)
    module = htvm.build(htvm.load(known.path), target="snitch_ita.cpu", platform=platform)
    for given, wanted in zip(known.inputs[:2], known.outputs[:2], strict=True):
        result = module.run(given.reshape(module.compiled.source.inputs[0].shape))
        np.testing.assert_array_equal(result.outputs[0].reshape(-1), wanted.reshape(-1))
        if platform == "rv32":
            assert result.causes is not None and result.causes.host == result.cycles
