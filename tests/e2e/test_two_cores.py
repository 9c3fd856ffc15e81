"""Kernels shared by two cores of a microcontroller: in the simulator, and with the Pico's SDK."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htvm
from byoc_dory.errors import TargetError
from byoc_dory.soc.header import render
from byoc_dory.soc.registry import resolve
from htvm.firmware.packages import refuse_kind
from htvm.inputs import seeded_inputs
from htvm.tools.cli.arguments import open_model
from tests.models import MODELS, golden
from tests.tools import tool

TWO = "hazard3:cores=2"


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
        ("pico:cores=2", "no 2 cores of cortex_m0plus: its programs run in emulators of one core"),
        ("hazard3:cores=2,vlen=256", "no 2 cores with vectors"),
        ("rv32imac:board=esp32-c6,cores=2", "no 2 cores on the board esp32-c6.*: pico-2-riscv$"),
        ("rv32imac:cores=3", "cannot be '3'.*1, 2"),
    ],
)
def test_what_has_no_second_core(target: str, said: str) -> None:
    with pytest.raises(TargetError, match=said):
        resolve(target)


@pytest.mark.parametrize("kind", ["arduino", "esp-idf", "platformio", "zephyr", "cmsis", "mlf"])
def test_packages_that_start_no_second_core(kind: str) -> None:
    with pytest.raises(TargetError, match="only a CMake library starts the second core"):
        refuse_kind(kind, resolve(TWO).soc)


# The two functions of the SDK, with a thread for the second core and a pipe in each direction.
_SDK = """
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
static int htvm_pipes[2][2];
static pthread_t htvm_second;
static inline uint32_t htvm_is_second(void)
{
    return pthread_equal(pthread_self(), htvm_second) ? 1u : 0u;
}
static void *htvm_enter(void *entry)
{
    htvm_second = pthread_self();
    ((void (*)(void))(uintptr_t)entry)();
    return 0;
}
static inline void multicore_launch_core1(void (*entry)(void))
{
    if (pipe(htvm_pipes[0]) != 0 || pipe(htvm_pipes[1]) != 0) _exit(2);
    pthread_create(&htvm_second, 0, htvm_enter, (void *)(uintptr_t)entry);
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


@pytest.mark.parametrize("sdk", [True, False])
def test_a_package_shares_kernels_by_the_sdk_of_the_pico(
    sdk: bool, digits: htvm.Model, tmp_path: Path
) -> None:
    """With the SDK's functions as threads of this machine; without them one core does all."""
    cmake = tool("cmake")
    package = htvm.build(digits, "pico-2-riscv:cores=2").export(tmp_path / "net", kind="cmake")
    readme = (package / "README.md").read_text()
    assert "Cores: 2, which share the kernels" in readme and "2048 B of stack for it" in readme
    (tmp_path / "CMakeLists.txt").write_text(_PROJECT)
    header = tmp_path / "pico" / "multicore.h"
    header.parent.mkdir()
    header.write_text(_SDK)
    build = tmp_path / "build"
    said = []
    for line in (
        ["-S", tmp_path, "-B", build, f"-DSDK={sdk}", "-DDIGITS_CHECK=ON"],
        ["--build", build],
    ):
        done = subprocess.run(
            [cmake, *map(str, line)],
            capture_output=True, text=True, check=False, timeout=300,
            env={**os.environ, "CFLAGS": "-Wall -Wextra -Werror"},
        )  # fmt: skip
        said.append(done.stdout + done.stderr)
        assert done.returncode == 0, said[-1]
    assert ("one core computes everything" in said[0]) is not sdk
    check = subprocess.run(
        [build / "net" / "digits_check"], capture_output=True, text=True, timeout=60, check=False
    )
    assert check.returncode == 0 and "PASS" in check.stdout, check.stdout + check.stderr
    archive = (build / "net" / "libdigits.a").read_bytes()
    assert (b"multicore_launch_core1" in archive or b"htvm_pipes" in archive) is sdk
