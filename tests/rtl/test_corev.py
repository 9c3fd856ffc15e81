"""The CORE-V extensions in the simulator against the RTL: state and cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

from htvm.firmware.machine import BARE
from htvm.firmware.rv32 import build_firmware
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from tests.rtl.core import RtlRun, assert_same, build_bench
from tests.rtl.corev_text import EXTENSIONS, all_operations, print_results
from tests.rtl.programs import random_program
from tests.sim.bare import assemble, bare_corev
from tests.sim.corev_timing_rules import COREV_CASES
from tests.sim.timing_rules import program

pytestmark = pytest.mark.rtl

HERE = Path(__file__).parent
RANDOM_PROGRAMS = 60


@pytest.fixture(scope="module")
def bench(compiler: Compiler) -> Path:
    return build_bench(compiler.cache)


@pytest.mark.parametrize("seed", range(RANDOM_PROGRAMS))
def test_random_program(seed: int, bench: Path, compiler: Compiler, tmp_path: Path) -> None:
    elf = assemble(random_program(seed, corev=True), tmp_path, compiler)
    rtl, iss = RtlRun(bench, elf, tmp_path), run_elf(elf, bare_corev(), compiler=compiler)
    # The program prints cycles, instructions and a hash of registers and memory.
    assert len(iss.output.split()) == 3
    assert_same(rtl, iss)


@pytest.mark.parametrize(
    "kernel", sorted((HERE / "corev_kernels").glob("*.c")), ids=lambda p: p.stem
)
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
    rtl = RtlRun(bench, firmware.elf, tmp_path)
    iss = run_elf(firmware.elf, bare_corev(), compiler=compiler)
    assert len(iss.marks) == 2 and iss.marks[1][0] - iss.marks[0][0] > 1000
    assert_same(rtl, iss)


def test_timing_rules(bench: Path, compiler: Compiler, tmp_path: Path) -> None:
    """The table that states the rules is what the RTL does."""
    text = EXTENSIONS + "\n" + program(COREV_CASES)
    lines = RtlRun(bench, assemble(text, tmp_path, compiler), tmp_path).output.split()
    measured = [int(line, 16) for line in lines]
    wrong = [(case, m) for case, m in zip(COREV_CASES, measured, strict=True) if m != case.cycles]
    assert not wrong


def test_every_operation_on_edges(bench: Path, compiler: Compiler, tmp_path: Path) -> None:
    """Extreme operands for each instruction, so that no corner depends on luck."""
    cases = all_operations()
    for first in range(0, len(cases), 3000):
        some = cases[first : first + 3000]
        elf = assemble(print_results(some), tmp_path, compiler)
        rtl = RtlRun(bench, elf, tmp_path).output.split()
        iss = run_elf(elf, bare_corev(), compiler=compiler).output.split()
        wrong = [row for row in zip(some, rtl, iss, strict=True) if row[1] != row[2]]
        assert not wrong
