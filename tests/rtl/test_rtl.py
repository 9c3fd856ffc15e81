"""The simulator against the CV32E40P RTL, cycle for cycle (``make test-rtl``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from htvm.firmware.machine import BARE
from htvm.firmware.rv32 import build_firmware
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from tests.rtl.core import RtlRun, assert_same, build_bench
from tests.rtl.programs import random_program
from tests.sim.bare import assemble
from tests.sim.timing_rules import CASES, program

pytestmark = pytest.mark.rtl

HERE = Path(__file__).parent
RANDOM_PROGRAMS = 40


@pytest.fixture(scope="session")
def bench(compiler: Compiler) -> Path:
    return build_bench(compiler.cache)


@pytest.mark.parametrize("seed", range(RANDOM_PROGRAMS))
def test_random_program(seed: int, bench: Path, compiler: Compiler, tmp_path: Path) -> None:
    elf = assemble(random_program(seed), tmp_path, compiler)
    rtl, iss = RtlRun(bench, elf, tmp_path), run_elf(elf, compiler=compiler)
    # The program prints cycles, instructions and a hash of registers and memory.
    assert len(iss.output.split()) == 3
    assert_same(rtl, iss)


@pytest.mark.parametrize("kernel", sorted((HERE / "kernels").glob("*.c")), ids=lambda p: p.stem)
def test_kernel(kernel: Path, bench: Path, compiler: Compiler, tmp_path: Path) -> None:
    harness = HERE / "harness"
    firmware = build_firmware(
        [kernel, harness / "main.c"],
        [harness],
        BARE,
        tmp_path,
        compiler,
        flags=("-Wall", "-Wextra", "-Werror"),
    )
    rtl, iss = RtlRun(bench, firmware.elf, tmp_path), run_elf(firmware.elf, compiler=compiler)
    assert len(iss.marks) == 2 and iss.marks[1][0] - iss.marks[0][0] > 1000
    assert_same(rtl, iss)


def test_timing_rules(bench: Path, compiler: Compiler, tmp_path: Path) -> None:
    """The table that states the rules is what the RTL does."""
    lines = RtlRun(bench, assemble(program(), tmp_path, compiler), tmp_path).output.split()
    measured = [int(line, 16) for line in lines]
    wrong = [(case, m) for case, m in zip(CASES, measured, strict=True) if m != case.cycles]
    assert not wrong
