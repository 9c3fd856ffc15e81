"""Harts with the CV32E40P's pipeline: one counts as the core alone, many compute what one does."""

from __future__ import annotations

import random
import re
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from byoc_dory.errors import TargetError
from byoc_dory.soc.header import render
from htvm.firmware.elf import read_elf
from htvm.firmware.machine import BARE, Machine
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import TrapError, _machine_options, build_iss, run_elf
from tests.rtl.corev_text import EXTENSIONS, hardware_loop
from tests.rtl.programs import BUFFER_BYTES, random_program
from tests.sim import bare
from tests.sim.bare import bare_corev
from tests.sim.corev_timing_rules import COREV_CASES
from tests.sim.harts import CONTROL, END, L1, SLEEP, TIMERS
from tests.sim.pipelines import CLUSTER, SOC, assemble, bare_hart, machine
from tests.sim.test_harts import DATA, POLLS, TOGETHER
from tests.sim.timing_rules import CASES, program

PROGRAMS = Path(__file__).resolve().parents[2].parent / "shared" / "riscv"
MEMORIES = pytest.mark.parametrize("near", [False, True], ids=["L2", "L1"])


def together(body: str, harts: int, folder: Path, compiler: Compiler) -> Path:
    """Assemble a program whose harts wake each other, run this, and meet at the barrier."""
    lines = "\n".join(part.strip() for part in body.split(";"))
    return assemble(TOGETHER.format(mask=(1 << harts) - 1, body=lines), folder, compiler)


# --- one hart counts as the core alone --------------------------------------------------------


@pytest.mark.rotating(4)
@MEMORIES
@pytest.mark.parametrize("corev", [False, True], ids=["", "corev"])
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(
    seed: int, corev: bool, near: bool, tmp_path: Path, compiler: Compiler
) -> None:
    elf = bare.assemble(random_program(seed + 900, corev=corev), tmp_path, compiler)
    alone = run_elf(elf, bare_corev() if corev else BARE, compiler=compiler)
    hart = run_elf(elf, bare_hart(corev=corev, near=near), compiler=compiler)
    assert replace(hart, harts=()) == alone and hart.harts == (alone.instructions + 1,)


@MEMORIES
def test_timing_rules(near: bool, tmp_path: Path, compiler: Compiler) -> None:
    for text, cases in ((program(), CASES), (program(COREV_CASES), COREV_CASES)):
        elf = bare.assemble(EXTENSIONS + "\n" + text, tmp_path, compiler)
        lines = run_elf(elf, bare_hart(near=near), compiler=compiler).output.split()
        got = {case: int(line, 16) for case, line in zip(cases, lines, strict=True)}
        assert not [(case, got[case]) for case in cases if got[case] != case.cycles]


@pytest.mark.skipif(not PROGRAMS.is_dir(), reason=f"no reference programs: {PROGRAMS}")
@MEMORIES
def test_reference_programs(near: bool, compiler: Compiler) -> None:
    """All programs that were run by the RTL have its counts."""
    hart = bare_hart(near=near)
    micro = run_elf(PROGRAMS / "micro.elf", hart, compiler=compiler).output.decode()
    assert micro.split() == (PROGRAMS / "micro.cycles.txt").read_text().split()
    others = [PROGRAMS / "kernels.elf", *PROGRAMS.glob("*random*.elf"), *PROGRAMS.glob("*/*.elf")]
    for elf in others:
        expected = elf.with_suffix(".rtl.txt").read_text().split()
        got = run_elf(elf, hart, compiler=compiler).output.decode().split()
        assert got[: len(expected)] == expected, elf.name


# --- many harts compute what one does ---------------------------------------------------------

AREA = 0x8008_0000


def shared_text(seed: int) -> str:
    """A random program in which each hart has a part of AREA, and loops of its own lengths.

    A hart's number is mhartid plus the word `which`.  It leaves its hash behind its buffer; all
    meet at the barrier, unless the word `alone` is not 0.
    """
    text = random_program(seed, pieces=40, rounds=5, corev=True)
    place = f"""
    csrr tp, mhartid
    la t0, which
    lw t1, 0(t0)
    add tp, tp, t1
    li t1, {CONTROL:#x}
    lw t2, 4(t0)
    bnez t2, 1f
    bnez tp, 1f
    li t2, 0x1ff
    sw t2, 0(t1)
1:
    lw s0, 8(t0)
    slli t1, tp, 9
    add s0, s0, t1
    andi tp, tp, 3
"""
    leave = f"""
    sw t2, 0(s0)
    la t0, which
    lw t1, 4(t0)
    li a1, {BARE.exit:#x}
    bnez t1, 1f
    li t0, {CONTROL:#x}
    lw t1, 4(t0)
    csrr t1, mhartid
    bnez t1, sleep
    li a1, {SOC.sim.exit:#x}
1:
    li a0, 0x5555
    sw a0, 0(a1)
sleep:
{SLEEP}
"""
    start = text.index("    la s0, buffer\n")
    end = text.index("    mv a0, s2\n", start)
    stop = text.index("stop:", end)
    text = text[:start] + place + text[start:end] + leave + text[stop:]
    text = text.replace("    la s0, buffer\n", "").replace("    la sp, stack_top\n", "")
    text = re.sub(r"li s9, (\d+)", r"addi s9, tp, \1", text)
    return f"{text}\n.data\n.balign 4\n.globl which\nwhich: .word 0, 0, {AREA:#x}\n"


@pytest.mark.rotating(2)
@pytest.mark.parametrize("place", [AREA, L1 + 0x400], ids=["L2", "L1"])
@pytest.mark.parametrize("seed", range(3))
def test_same_as_one_hart(seed: int, place: int, tmp_path: Path, compiler: Compiler) -> None:
    harts = 9
    elf = bare.assemble(shared_text(seed), tmp_path, compiler)
    which = read_elf(elf).symbols["which"].address
    start = random.Random(seed).randbytes(harts * 512)
    here = {which: struct.pack("<3I", 0, 0, place), place: start}
    many = run_elf(elf, machine(harts), pokes=here, peeks={place: len(start)}, compiler=compiler)
    hashes = set()
    for hart in range(harts):
        part = slice(hart * 512, (hart + 1) * 512)
        pokes = {which: struct.pack("<3I", hart, 1, AREA), AREA: start}
        one = run_elf(elf, bare_corev(), pokes=pokes, peeks={AREA: len(start)}, compiler=compiler)
        assert one.memory[AREA][part] == many.memory[place][part], hart
        hashes.add(many.memory[place][part][BUFFER_BYTES : BUFFER_BYTES + 4])
    assert len(hashes) == harts and len(many.harts) == harts


def run_twice(board: Machine, elf: Path, folder: Path, compiler: Compiler) -> list[bytes]:
    """Return the report and events of each of two runs."""
    files = []
    for name in ("first", "second"):
        report, events = folder / f"{name}.json", folder / f"{name}.events"
        line = [str(build_iss(board, compiler)), str(elf), *_machine_options(board)]
        subprocess.run([*line, "--report", str(report), "--events", str(events)], check=True)
        files.append(report.read_bytes() + events.read_bytes())
    return files


def test_two_runs_are_the_same(tmp_path: Path, compiler: Compiler) -> None:
    """Harts that store to the same words, in loops of different lengths."""
    body = f"""
        li a0, 50; 3: {hardware_loop("setup", 0, "s0", "4f")}; lw a1, 0(s2); addi a1, a1, 1;
        sw a1, 0(s2); 4: cv.lw a2, (s2), 4; andi s2, s2, -33; addi a0, a0, -1; bnez a0, 3b
    """
    elf = together(body.replace("\n", " "), 9, tmp_path, compiler)
    first, second = run_twice(machine(9), elf, tmp_path, compiler)
    assert first == second and b"core1" in first


# --- polls ------------------------------------------------------------------------------------


@pytest.mark.parametrize("harts", [1, 2, 9])
@pytest.mark.parametrize("name", POLLS)
def test_skipping_polls_changes_nothing(
    name: str, harts: int, tmp_path: Path, compiler: Compiler
) -> None:
    record = "; csrr a0, mcycle; slli t0, s0, 2; add t0, t0, s2; sw a0, 64(t0)"
    elf = together(POLLS[name] + record, harts, tmp_path, compiler)
    board = machine(harts, devices=TIMERS)
    stepped, skipped = (
        run_elf(elf, board, peeks={DATA: 128}, step_polls=step, compiler=compiler)
        for step in (True, False)
    )
    assert stepped == skipped


# --- what stops a run -------------------------------------------------------------------------

SHORT = hardware_loop("setupi", 0, "5", "3f")
STOPS = {
    "everybody asleep": ("3: wfi; j 3b", "endless wait: hart 0 sleeps; hart 1 sleeps"),
    "not invited": ("li t0, 1; sw t0, 0(s1); lw t0, 4(s1)", "hart 1 at a barrier for harts 0x1 "),
    "a short loop": (f"beqz s0, 4f; {SHORT}; nop; nop; 3: 4:", "at least 3 instr.* on hart 1"),
    "into a loop's end": (
        "beqz s0, 5f; " + hardware_loop("starti", 0, target="3f") + "; "
        f"{hardware_loop('endi', 0, target='4f')}; {hardware_loop('counti', 0, '5')}; j 4f; "
        "3: nop; nop; nop; 4: 5:",
        "a branch or jump leads to its end .* on hart 1",
    ),
    "endless loop": (
        f"li t0, -1; {hardware_loop('setup', 0, 't0', '3f')}; nop; nop; nop; 3: nop",
        "not finished after 100000 cycles .* on hart [01]",
    ),
    "atomic": (".word 0x0005252f", "illegal instruction .* on hart [01]"),
    "mark": (f"li t1, {SOC.sim.trace:#x}; beqz s0, 3f; sw s0, 0(t1); 3:", "hart 1 makes a mark"),
    "nowhere": ("cv.sw zero, (zero), 4", "store of 4 bytes at 0x00000000.* on hart [01]"),
    "no byte of a device": ("lb t0, 0(s1)", "load of 1 bytes at 0x20002000.* on hart [01]"),
}


@pytest.mark.parametrize("name", STOPS)
def test_stops(name: str, tmp_path: Path, compiler: Compiler) -> None:
    body, message = STOPS[name]
    elf = together(body, 2, tmp_path, compiler)
    with pytest.raises(TrapError, match=message):
        run_elf(elf, machine(2), max_cycles=100_000, compiler=compiler)


@pytest.mark.parametrize("how", ["addi sp, sp, -1104", "cv.sw t0, (sp), -1104"])
def test_beyond_its_stack(how: str, tmp_path: Path, compiler: Compiler) -> None:
    top = L1 + 0x2_0000
    own = f"li sp, {top:#x}; slli t0, s0, 10; add sp, sp, t0; addi sp, sp, -1024"
    elf = together(f"bnez s0, 3f; j 4f; 3: {own}; {how}; 4:", 9, tmp_path, compiler)
    stack = (top + 8 * 1024, top + 16 * 1024)
    with pytest.raises(TrapError, match="stack overflow.* on hart 1"):
        run_elf(elf, machine(9), stack=stack, compiler=compiler)


def test_without_the_extensions(tmp_path: Path, compiler: Compiler) -> None:
    elf = bare.assemble(
        f"{EXTENSIONS}\n.globl _start\n_start: cv.min a0, a0, a0\n{END}", tmp_path, compiler
    )
    with pytest.raises(TrapError, match="illegal instruction"):
        run_elf(elf, bare_hart(corev=False), compiler=compiler)


def test_more_cores_than_harts() -> None:
    cluster = replace(CLUSTER, first=2)
    with pytest.raises(TargetError, match="8 cores from hart 2 on, of 9 harts"):
        render(replace(SOC, cluster=cluster))
