"""Skipping polls changes nothing but the time a simulation takes."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htvm.firmware.machine import BARE, SocModel
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import IssResult, TrapError, run_elf
from tests.sim.bare import assemble, make_elf, words

MODEL = Path(__file__).parent / "devices" / "timers_model.c"
MACHINE = replace(BARE, name="timers", soc_model=SocModel(sources=(MODEL,)))

# s0: timer registers, s1: memory, a0 and a1: how long the timers shall run.
FRAME = """
.globl _start
_start:
    csrw mcountinhibit, zero
    li s0, 0x1A100000
    la s1, memory
    lw a0, 0(s1)
    lw a1, 4(s1)
    li a2, 0
    sw a0, 0(s0)
    sw a1, 4(s0)
{body}
    csrr t0, mcycle
    csrr t1, minstret
    sw t0, 8(s1)
    sw t1, 12(s1)
    sw a2, 16(s1)
    li a0, 0x5555
    li a1, 0x100000
    sw a0, 0(a1)
stop:
    j stop
.data
.balign 4
memory:
    .zero 32
"""

LOOPS = {
    "tight": ".balign 4; 1: lw t0, 0(s0); bnez t0, 1b",
    "off a word boundary": ".balign 4; c.nop; 1: lw t0, 0(s0); bnez t0, 1b",
    "long": "1: lw t0, 0(s0); li t1, 100; div t1, t1, t0; mulh t2, t1, t0; bnez t0, 1b",
    "in a function": "1: call poll; bnez t0, 1b; j 2f; poll: lw t0, 0(s0); ret; 2:",
    "first one timer, then the other": "1: lw t0, 0(s0); bnez t0, 1b; 2: lw t0, 4(s0); bnez t0, 2b",
    "both at once": "1: lw t0, 0(s0); lw t1, 4(s0); or t0, t0, t1; bnez t0, 1b",
    "counting in a register": "1: addi a2, a2, 1; lw t0, 0(s0); bnez t0, 1b",
    "counting in memory": "1: lw t1, 20(s1); addi t1, t1, 1; sw t1, 20(s1); li t1, 0;"
    " lw t0, 0(s0); bnez t0, 1b; lw a2, 20(s1)",
    "until a deadline": "csrr t2, mcycle; addi t2, t2, 500; 1: csrr t1, mcycle; sub t1, t2, t1;"
    " bltz t1, 2f; li t1, 0; lw t0, 0(s0); bnez t0, 1b; 2:",
    "restarting the other timer": "1: sw a1, 4(s0); lw t0, 0(s0); bnez t0, 1b",
    "alternating between two ways": "1: xori a3, a3, 1; beqz a3, 2f; nop; 2: lw t0, 0(s0);"
    " bnez t0, 1b",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, compiler: Compiler) -> dict[str, Path]:
    elfs = {}
    for index, (name, loop) in enumerate(LOOPS.items()):
        folder = tmp_path_factory.mktemp(f"poll{index}")
        body = "\n".join(part.strip() for part in loop.split(";"))
        elfs[name] = assemble(FRAME.format(body=body), folder, compiler)
    return elfs


def run(elf: Path, first: int, second: int, *, step: bool) -> IssResult:
    memory = elf_memory(elf)
    return run_elf(
        elf,
        MACHINE,
        pokes={memory: struct.pack("<2I", first, second)},
        peeks={memory: 32},
        step_polls=step,
    )


def elf_memory(elf: Path) -> int:
    from htvm.firmware.elf import read_elf

    return read_elf(elf).symbols["memory"].address


@pytest.mark.rotating(4)
@pytest.mark.parametrize("name", LOOPS)
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 3000), st.integers(0, 3000))
def test_same_result(name: str, programs: dict[str, Path], first: int, second: int) -> None:
    stepped = run(programs[name], first, second, step=True)
    skipped = run(programs[name], first, second, step=False)
    assert stepped == skipped


def test_a_long_wait_costs_nothing(programs: dict[str, Path]) -> None:
    result = run(programs["tight"], 4_000_000_000, 0, step=False)
    assert 4_000_000_000 <= result.cycles < 4_000_000_100
    # The loop takes 5 cycles: load, load-use, branch and its bubbles; 2 instructions.
    assert abs(result.instructions - 2 * result.cycles // 5) < 100
    assert [event["unit"] for event in result.events] == ["timer0", "timer1"]


def test_endless_wait_is_noticed(tmp_path: Path, compiler: Compiler) -> None:
    text = "_start: li s0, 0x1A100000\n li a0, 1000\n sw a0, 0(s0)\n1: lw t0, 4(s0)\n beqz t0, 1b"
    elf = assemble(".globl _start\n" + text, tmp_path, compiler)
    with pytest.raises(TrapError, match=r"endless wait: device register 0x1a100004 stays 0x0"):
        run_elf(elf, MACHINE)


def test_complaint_of_a_device(tmp_path: Path) -> None:
    elf = tmp_path / "p.elf"
    lui_s0, sw = 0x1A100437, 0x00042423  # lui s0, 0x1a100; sw zero, 8(s0)
    elf.write_bytes(make_elf([(0x8000_0000, words(lui_s0, sw))]))
    with pytest.raises(TrapError, match="timers: register 0x1a100008 must not be touched.*pc 0x80"):
        run_elf(elf, MACHINE)


def test_bytes_of_device_registers_cannot_be_accessed(tmp_path: Path) -> None:
    elf = tmp_path / "p.elf"
    lui_s0, lbu = 0x1A100437, 0x00044503  # lui s0, 0x1a100; lbu a0, 0(s0)
    elf.write_bytes(make_elf([(0x8000_0000, words(lui_s0, lbu))]))
    with pytest.raises(TrapError, match="load of 1 bytes from 0x1a100000"):
        run_elf(elf, MACHINE)
