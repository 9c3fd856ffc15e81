"""Kernels shared by two cores of a microcontroller: simulated, emulated, by the Pico's SDK."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unicorn.unicorn_const import UC_HOOK_MEM_READ, UC_HOOK_MEM_WRITE, UC_MEM_WRITE

import htvm
from byoc_dory.errors import TargetError
from byoc_dory.soc import boards
from byoc_dory.soc.header import render
from byoc_dory.soc.registry import resolve
from htvm.firmware.arm import on_qemu
from htvm.firmware.packages import refuse_kind
from htvm.inputs import seeded_inputs
from htvm.sim import arm as sim
from htvm.tools.cli.arguments import open_model
from tests.models import MODELS, golden
from tests.tools import tool

TWO = "hazard3:cores=2"

_BOARDS = Path(boards.__file__).parent / "data"


@pytest.fixture(scope="module")
def digits() -> htvm.Model:
    return open_model("zoo:digits")


@pytest.fixture(scope="module")
def module(digits: htvm.Model) -> htvm.Module:
    return htvm.build(digits, TWO)


def test_two_cores_compute_the_same_in_half_the_time(
    module: htvm.Module, digits: htvm.Model
) -> None:
    inputs = seeded_inputs(module.compiled.source.inputs)
    result = module.run(inputs)
    alone = htvm.build(digits, "hazard3").run(inputs)
    np.testing.assert_array_equal(result.outputs[0], module.reference(inputs)[0])
    np.testing.assert_array_equal(result.outputs[0], alone.outputs[0])
    assert result.cycles is not None and alone.cycles is not None
    assert 0.5 < result.cycles / alone.cycles < 0.54
    busy = dict(result.units)
    assert min(busy["core0"], busy["core1"]) > 0.95 * result.cycles
    # Both stacks are reserved, and no step runs on one core.
    assert module.sizes.stack == 4096 + 2048
    assert all("shared by the cores" in kernel.schedule for kernel in module.compiled.cpu_kernels)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_networks_equal_their_goldens(name: str) -> None:
    case = golden(name)
    module, alone = (htvm.build(htvm.load(case.path), core) for core in (TWO, "hazard3"))
    result = module.run([case.inputs[0]])
    np.testing.assert_array_equal(result.outputs[0], case.outputs[0])
    assert result.cycles is not None
    single = alone.run([case.inputs[0]]).cycles
    assert single is not None and result.cycles < 0.54 * single


@pytest.mark.slow
def test_cores_wait_for_banks_and_for_their_stacks(digits: htvm.Model) -> None:
    target = resolve(TWO)
    assert target.soc.cluster is not None
    inputs = seeded_inputs(digits.inputs)

    def cycles(**numbers: int) -> int:
        soc = replace(target.soc, cluster=replace(target.soc.cluster, **numbers))
        result = htvm.build(digits, replace(target, soc=soc)).run(inputs)
        assert result.cycles is not None
        return result.cycles

    assert cycles(banks=1) > 1.02 * cycles(banks=16)
    with pytest.raises(htvm.errors.SimulationError, match=r"stack overflow.* on hart 1"):
        cycles(worker_stack=16)
    assert "CLUSTER_SHARED_SIZE 134217728u" in render(target.soc)
    assert "CLUSTER_SHARED_SIZE" not in render(resolve("siracusa").soc)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("cortex_m4:cores=2", "there is no cortex_m4 with cores=2"),
        ("nucleo-f446re:cores=2", "no 2 cores on the board nucleo-f446re, as far as its file says"),
        ("pico:cores=3", "cannot be '3'.*1, 2"),
        ("hazard3:cores=2,vlen=256", "no 2 cores with vectors"),
        ("rv32imac:board=esp32-c6,cores=2", "no 2 cores on the board esp32-c6.*: .*pico, pico-2"),
        ("rv32imac:cores=3", "cannot be '3'.*1, 2"),
    ],
)
def test_what_has_no_second_core(target: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        resolve(target)


def test_a_board_whose_core_no_chip_has_two_of(tmp_path: Path) -> None:
    text = json.loads((_BOARDS / "nucleo-f446re.json").read_text())
    text |= {"cores": 2, "sources": {**text["sources"], "cores": "unverified: a test"}}
    file = tmp_path / "nucleo-f446re.json"
    file.write_text(json.dumps(text))
    with pytest.raises(TargetError, match="no 2 cores of cortex_m4: no chip is known"):
        resolve(f"{file}:cores=2")


def test_qemu_has_one_core(digits: htvm.Model) -> None:
    with pytest.raises(TargetError, match=r"QEMU's machine with Arm Cortex-M33 has one core"):
        on_qemu(resolve("pico-2:cores=2").soc)


@pytest.fixture(scope="module", params=["pico", "pico-2"])
def arm(request: pytest.FixtureRequest, digits: htvm.Model) -> tuple[htvm.Module, htvm.RunResult]:
    """A build for two Cortex-M cores, and what one of them takes alone."""
    inputs = seeded_inputs(digits.inputs)
    alone = htvm.build(digits, request.param).run(inputs)
    return htvm.build(digits, f"{request.param}:cores=2"), alone


def test_two_cortex_m_cores_compute_the_same_in_half_the_instructions(
    arm: tuple[htvm.Module, htvm.RunResult], digits: htvm.Model
) -> None:
    module, alone = arm
    inputs = seeded_inputs(digits.inputs)
    result = module.run(inputs)
    np.testing.assert_array_equal(result.outputs[0], module.reference(inputs)[0])
    np.testing.assert_array_equal(result.outputs[0], alone.outputs[0])
    assert result.instructions is not None and alone.instructions is not None
    assert 0.49 < result.instructions / alone.instructions < 0.53
    assert min(result.core_instructions) > 0.97 * result.instructions >= 0
    assert max(result.core_instructions) <= result.instructions
    assert not alone.core_instructions
    if alone.estimated_cycles is not None:
        assert result.estimated_cycles is not None
        assert result.estimated_cycles[1] < 0.53 * alone.estimated_cycles[1]
    assert module.sizes.stack == 4096 + 2048
    assert all("shared by the cores" in kernel.schedule for kernel in module.compiled.cpu_kernels)


def test_a_sweep_counts_the_instructions_of_one_and_two(digits: htvm.Model) -> None:
    found = htvm.sweep(digits, "pico-2", {"cores": [1, 2]}, jobs=1)
    one, two = found.rows
    assert one.exact and two.exact
    assert one.instructions is not None and two.instructions is not None
    assert two.instructions < 0.53 * one.instructions
    assert f"{two.instructions:,}" in str(found) and "cycles" not in str(found)


def test_no_core_touches_what_the_other_writes(
    arm: tuple[htvm.Module, htvm.RunResult],
    digits: htvm.Model,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The addresses that machine code reads and writes, between two waits of one for the other."""
    module, _ = arm
    firmware = module._built.arm
    assert firmware is not None
    low = firmware.symbol("__stack_low").address - 2048  # both stacks are above
    touched: list[tuple[set[int], set[int]]] = []
    shares = 0
    started, waited = sim._Core.__init__, sim._SecondCore._wait

    def start(self: Any, *args: Any) -> None:
        started(self, *args)
        reads, writes = touched_by = (set[int](), set[int]())
        touched.append(touched_by)

        def access(_: Any, kind: int, address: int, size: int, _value: int, _data: Any) -> None:
            if address < low:
                (writes if kind == UC_MEM_WRITE else reads).update(range(address, address + size))

        ram = module.compiled.target.soc.memory("L2").base
        self.emulator.hook_add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, access, None, ram, low)

    def wait(self: Any, *args: Any) -> int:
        nonlocal shares
        value = waited(self, *args)
        (reads, writes), (others_reads, others_writes) = touched
        assert not writes & (others_reads | others_writes)
        assert not others_writes & reads
        shares += bool(writes and others_writes)
        for each in (reads, writes, others_reads, others_writes):
            each.clear()
        return value

    def woken(self: Any, emulator: Any, offset: int, *args: Any) -> None:
        if offset == sim._WAKE:  # what the first core did alone
            touched[0][0].clear()
            touched[0][1].clear()
        written(self, emulator, offset, *args)

    written = sim._SecondCore._write
    monkeypatch.setattr(sim._Core, "__init__", start)
    monkeypatch.setattr(sim._SecondCore, "_wait", wait)
    monkeypatch.setattr(sim._SecondCore, "_write", woken)
    module.run(seeded_inputs(digits.inputs))
    assert shares >= len(module.compiled.cpu_kernels) - 1


def test_the_second_core_has_a_stack(digits: htvm.Model) -> None:
    target = resolve("pico-2:cores=2")
    assert target.soc.cluster is not None
    soc = replace(target.soc, cluster=replace(target.soc.cluster, worker_stack=32))
    module = htvm.build(digits, replace(target, soc=soc))
    with pytest.raises(htvm.errors.SimulationError, match="second core used all 32 B of its stack"):
        module.run(seeded_inputs(digits.inputs))


@pytest.mark.slow
@pytest.mark.parametrize("board", ["pico", "pico-2"])
@pytest.mark.parametrize("name", MODELS)
def test_networks_on_two_cortex_m_cores_equal_their_goldens(name: str, board: str) -> None:
    case = golden(name)
    inputs = [case.inputs[0]]
    result = htvm.build(htvm.load(case.path), f"{board}:cores=2").run(inputs)
    alone = htvm.build(htvm.load(case.path), board).run(inputs)
    np.testing.assert_array_equal(result.outputs[0], case.outputs[0])
    np.testing.assert_array_equal(alone.outputs[0], case.outputs[0])
    assert result.instructions is not None and alone.instructions is not None
    assert result.instructions < 0.58 * alone.instructions


@pytest.mark.parametrize("kind", ["arduino", "platformio", "zephyr", "cmsis", "mlf"])
def test_packages_that_start_no_second_core(kind: str) -> None:
    with pytest.raises(TargetError, match="only a CMake library or an ESP-IDF component starts"):
        refuse_kind(kind, resolve(TWO).soc)


@pytest.mark.parametrize(
    ("target", "kind", "starts", "choose"),
    [
        ("pico:cores=2", "platformio", "a CMake library", "cmake"),
        ("pico:cores=2", "esp-idf", "a CMake library", "cmake"),
        ("cortex_m33:cores=2", "esp-idf", "a CMake library", "cmake"),
        ("esp32-p4:cores=2", "cmake", "an ESP-IDF component", "esp-idf"),
        ("esp32-p4:cores=2", "zephyr", "an ESP-IDF component", "esp-idf"),
        (TWO, "zephyr", "a CMake library or an ESP-IDF component", "cmake or esp-idf"),
    ],
)
def test_hints_name_what_starts_the_second_core_of_the_board(
    target: str, kind: str, starts: str, choose: str
) -> None:
    soc = resolve(target).soc
    with pytest.raises(TargetError, match=f"only {starts} starts the second core") as caught:
        refuse_kind(kind, soc)
    assert caught.value.hint == f"choose {choose}, or build for a target with one core"
    for name in choose.split(" or "):
        refuse_kind(name, soc)


def test_a_package_for_another_board_says_nothing_of_the_pico(
    digits: htvm.Model, tmp_path: Path
) -> None:
    text = json.loads((_BOARDS / "pico-2.json").read_text())
    board = tmp_path / "two.json"
    board.write_text(json.dumps({**text, "name": "two", "title": "Two", "chip": "LPC55S69"}))
    package = htvm.build(digits, f"{board}:cores=2").export(tmp_path / "net", kind="cmake")
    readme, cmake = ((package / name).read_text() for name in ("README.md", "CMakeLists.txt"))
    assert "one core computes everything" in readme and "replace `htvm_multicore.c`" in readme
    assert "one core computes everything" in cmake
    assert "pico" not in (readme + cmake).lower()


# The three functions of the SDK, with a thread for the second core and a pipe in each direction.
_SDK = """
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
static int htvm_pipes[2][2];
static pthread_t htvm_thread;
static _Thread_local uint32_t htvm_second;
static inline uint32_t htvm_is_second(void)
{
    return htvm_second;
}
static void *htvm_enter(void *entry)
{
    htvm_second = 1;
    ((void (*)(void))(uintptr_t)entry)();
    return 0;
}
static inline void multicore_launch_core1_with_stack(
    void (*entry)(void), uint32_t *bottom, size_t bytes)
{
    if (((uintptr_t)bottom + bytes) % 16 != 0) _exit(2);
    printf("%zu B of stack\\n", bytes);
    if (pipe(htvm_pipes[0]) != 0 || pipe(htvm_pipes[1]) != 0) _exit(2);
    pthread_create(&htvm_thread, 0, htvm_enter, (void *)(uintptr_t)entry);
}
static inline void multicore_fifo_push_blocking(uint32_t word)
{
    if (write(htvm_pipes[htvm_is_second()][1], &word, sizeof word) != sizeof word) _exit(2);
}
static inline uint32_t multicore_fifo_pop_blocking(void)
{
    uint32_t word;
    if (read(htvm_pipes[!htvm_is_second()][0], &word, sizeof word) != sizeof word) _exit(2);
    return word;
}
"""


_PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(firmware LANGUAGES C)
find_package(Threads REQUIRED)
if(SDK)
    add_library(pico_multicore INTERFACE)
    target_include_directories(pico_multicore INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_definitions(pico_multicore INTERFACE LIB_PICO_MULTICORE=1)
    target_link_libraries(pico_multicore INTERFACE Threads::Threads)
endif()
add_subdirectory(net)
"""


def _checked(
    package: Path, name: str, flags: str, *, sdk: bool = True
) -> tuple[str, subprocess.CompletedProcess[str]]:
    """Return what CMake says of a project with a package, and a run of the package's own check."""
    cmake, folder = tool("cmake"), package.parent
    (folder / "CMakeLists.txt").write_text(_PROJECT)
    header = folder / "pico" / "multicore.h"
    header.parent.mkdir()
    header.write_text(_SDK)
    build = folder / "build"
    said = []
    for line in (
        ["-S", folder, "-B", build, f"-DSDK={sdk}", f"-D{name.upper()}_CHECK=ON"],
        ["--build", build],
    ):
        done = subprocess.run(
            [cmake, *map(str, line)],
            capture_output=True, text=True, check=False, timeout=600,
            env={**os.environ, "CFLAGS": f"-Wall -Wextra -Werror {flags}"},
        )  # fmt: skip
        said.append(done.stdout + done.stderr)
        assert done.returncode == 0, said[-1]
    check = subprocess.run(
        [build / "net" / f"{name}_check"], capture_output=True, text=True, timeout=600, check=False
    )
    return said[0], check


@pytest.mark.parametrize(("sdk", "stack"), [(True, 2048), (True, 8192), (False, 2048)])
def test_a_package_shares_kernels_by_the_sdk_of_the_pico(
    sdk: bool, stack: int, digits: htvm.Model, tmp_path: Path
) -> None:
    """With the SDK's functions as threads; without them one core does all."""
    target = f"pico-2-riscv:cores=2,cluster.worker_stack={stack}"
    package = htvm.build(digits, target).export(tmp_path / "net", kind="cmake")
    readme = (package / "README.md").read_text()
    assert "Cores: 2, which share the kernels" in readme and "after `pico_sdk_init()`" in readme
    assert f"{stack} B of static stack for it" in readme
    said, check = _checked(package, "digits", "", sdk=sdk)
    assert ("one core computes everything" in said) is not sdk
    assert check.returncode == 0 and "PASS" in check.stdout, check.stdout + check.stderr
    assert (f"{stack} B of stack\n" in check.stdout) is sdk
    archive = (tmp_path / "build" / "net" / "libdigits.a").read_bytes()
    assert (b"multicore_launch_core1" in archive or b"htvm_pipes" in archive) is sdk


# gcc says of fences that its sanitizer does not follow them; it follows the pipes.
_THREADS = "-g -O1 -fsanitize=thread -Wno-tsan"


@pytest.mark.parametrize("board", ["pico", "pico-2"])
def test_threads_of_a_package_race_for_nothing(
    board: str, digits: htvm.Model, tmp_path: Path
) -> None:
    package = htvm.build(digits, f"{board}:cores=2").export(tmp_path / "net", kind="cmake")
    _, check = _checked(package, "digits", _THREADS)
    assert check.returncode == 0 and "PASS" in check.stdout, check.stdout + check.stderr


@pytest.mark.slow
@pytest.mark.parametrize("board", ["pico", "pico-2"])
@pytest.mark.parametrize("name", MODELS)
def test_threads_of_networks_race_for_nothing(name: str, board: str, tmp_path: Path) -> None:
    built = htvm.build(htvm.load(golden(name).path), f"{board}:cores=2")
    package = built.export(tmp_path / "net", kind="cmake")
    _, check = _checked(package, built.compiled.program.name, _THREADS)
    assert check.returncode == 0 and "PASS" in check.stdout, check.stdout + check.stderr
