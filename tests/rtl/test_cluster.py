"""What a core of a cluster waits for, on the RTL: accesses that are granted late, and wfi."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byoc_dory.soc.siracusa.description import CLUSTER
from htvm.firmware.machine import BARE
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from tests.rtl.core import RtlRun, assert_same, build_bench, durations
from tests.rtl.programs import random_program
from tests.runtime_c import simd_cluster as s
from tests.runtime_c.test_simd_cluster import random_cases
from tests.sim.bare import assemble
from tests.sim.harts import CONTROL
from tests.sim.pipelines import bare_hart

pytestmark = pytest.mark.rtl

WAKE = CONTROL + 8
EVENT_UNIT = 2  # assumed: cycles from the store that wakes to the core's interrupt
START, SIZE = BARE.ram[0]


@pytest.fixture(scope="module")
def bench(compiler: Compiler) -> Path:
    return build_bench(compiler.cache)


def _slow(begin: int, grant: int, response: int = 0) -> tuple[str, ...]:
    return ("--slow", f"{begin:#x}:{START + SIZE:#x}:{grant}:{response}")


@pytest.mark.parametrize("wait", [1, 2, 7, 12])
@pytest.mark.parametrize("seed", range(12))
def test_granted_late(
    seed: int, wait: int, bench: Path, compiler: Compiler, tmp_path: Path
) -> None:
    """`Cluster.far_wait` is exact if accesses are granted late, and an upper bound otherwise."""
    elf = assemble(random_program(200 + seed, corev=True), tmp_path, compiler)
    iss = run_elf(elf, bare_hart(far_wait=wait), compiler=compiler)
    assert_same(RtlRun(bench, elf, tmp_path, options=_slow(START, wait)), iss)
    late = RtlRun(bench, elf, tmp_path, options=_slow(START, 0, wait)).output.split()
    cycles, instructions, state = iss.output.split()
    assert late[1:] == [instructions, state] and int(late[0], 16) < int(cycles, 16)


@pytest.mark.parametrize("seed", range(3))
def test_kernels_with_data_in_far_memory(seed: int, bench: Path, tmp_path: Path) -> None:
    """Code, constants and stack are near; operands and results are not."""
    cases = random_cases(np.random.default_rng(50 + seed), 1)
    elf = s.program(cases, tmp_path, (8,))
    machine = bare_hart(near=True, near_bytes=s.BASE - START, far_wait=5)
    rtl = RtlRun(bench, elf, tmp_path, options=_slow(s.BASE, 5))
    assert rtl.output == run_elf(elf, machine).output


# The waker stores at the first mark; the second mark is behind wfi.
_SLEEP = """
.globl _start
_start:
    li s0, {mark:#x}
    li s1, {wake:#x}
    la s2, buffer
    li t0, 0x10000
    csrw mie, t0
    li a0, {delay}
    .option norvc
    sw a0, 0(s0)
    sw a0, 0(s1)
{before}
    wfi
{behind}
    sw a0, 0(s0)
    sw zero, 0(s1)
    li a0, 0x5555
    li a1, {exit:#x}
    sw a0, 0(a1)
.balign 4
buffer: .word 0, 0
"""


def _sleep(folder: Path, compiler: Compiler, delay: int, before: str, behind: str) -> Path:
    text = _SLEEP.format(
        mark=BARE.trace, wake=WAKE, delay=delay, before=before, behind=behind, exit=BARE.exit
    )
    return assemble(text, folder, compiler)


@pytest.mark.parametrize(
    "before",
    [
        "",
        "nop",
        "lw a1, 0(s2)",
        "sw a1, 0(s2)",
        ".option rvc\nc.nop\n",
        "div a1, a0, s0",
        "mulh a1, a0, a0",
    ],
)
@pytest.mark.parametrize(
    "behind",
    ["", "lw a1, 0(s2)", "j 1f\nnop\n1:", ".option rvc\nc.nop\n.option norvc", "addi a1, a1, 1"],
)
def test_wfi_of_a_core_that_was_woken(
    before: str, behind: str, bench: Path, compiler: Compiler, tmp_path: Path
) -> None:
    elf = _sleep(tmp_path, compiler, 1, before, behind)
    rtl = RtlRun(bench, elf, tmp_path, options=("--wake", f"{WAKE:#x}"))
    assert durations(rtl.marks) == durations(
        list(run_elf(elf, bare_hart(), compiler=compiler).marks)
    )


@pytest.mark.parametrize("nops", [0, 1, 5])
def test_wake_up(nops: int, bench: Path, compiler: Compiler, tmp_path: Path) -> None:
    """As harts in the simulator: not before the end of wfi, nor before the wake-up."""
    for delay in range(1, 25):
        elf = _sleep(tmp_path, compiler, delay, "nop\n" * nops, "")
        rtl = RtlRun(bench, elf, tmp_path, options=("--wake", f"{WAKE:#x}"))
        end_of_wfi = 1 + 1 + nops + 6
        woken = 1 + delay + CLUSTER.wake - EVENT_UNIT
        assert durations(rtl.marks)[1][1] == max(end_of_wfi, woken)
