"""The timing of a core with a scoreboard, one hand-written sequence for each rule, and banks."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from tests.sim.harts import CLUSTER, CONTROL, END, L1, L2, SLEEP, TIMING, assemble, machine

RESULTS = L1 + 0x8000


@dataclass(frozen=True)
class Case:
    """A sequence and its cycles; s0 points into L1, s1 into L2, s2 and s3 hold 7 and 3."""

    rule: str
    assembly: str
    cycles: int


CASES = (
    Case("one cycle each", "add a0, s2, s3; xor a1, a0, s2; lui a2, 5", 3),
    Case("load alone", "lw a0, 0(s0)", 1),
    Case("load, then use", "lw a0, 0(s0); addi a1, a0, 1", 3),
    Case("load, something else, then use", "lw a0, 0(s0); nop; addi a1, a0, 1", 3),
    Case("load, then store of it", "lw a0, 0(s0); sw a0, 4(s0)", 3),
    Case("load, then overwriting it", "lw a0, 0(s0); li a0, 1", 3),
    Case("load into nothing", "lw zero, 0(s0); sw s2, 4(s0)", 2),
    Case("loads in a row", "lw a0, 0(s0); lw a1, 8(s0); lw a2, 16(s0); lw a3, 24(s0)", 4),
    Case("loads in a row from one bank", "lw a0, 0(s0); lw a1, 4(s0); lw a2, 0(s0)", 3),
    Case("loads, then use of the first", "lw a0, 0(s0); lw a1, 8(s0); add a2, a0, a0", 3),
    Case("store", "sw s2, 0(s0); sw s2, 8(s0)", 2),
    Case("multiplication alone", "mul a0, s2, s3", 1),
    Case("multiplication, then use", "mul a0, s2, s3; addi a1, a0, 1", 4),
    Case("multiplications are pipelined", "mul a0, s2, s3; mulh a1, s2, s3; mulhu a2, s2, s3", 3),
    Case("multiplications in a chain", "mul a0, s2, s3; mul a1, a0, s3; addi a1, a1, 1", 7),
    Case("division alone", "div a0, s2, s3", 1),
    Case("division, then use", "remu a0, s2, s3; addi a1, a0, 1", 21),
    Case("one division at a time", "div a0, s2, s3; rem a1, s2, s3", 21),
    Case("branch not taken", "bne zero, zero, 1f; 1:", 1),
    Case("branch taken", "beq zero, zero, 1f; nop; 1:", 2),
    Case("jump", "j 1f; nop; 1:", 2),
    Case("call and return", "jal ra, 1f; j 2f; 1: ret; 2:", 6),
    Case("control and status register", "csrr a0, mhartid; addi a0, a0, 1", 2),
    Case("load from L2 alone", "lw a0, 0(s1)", 1),
    Case("load from L2, then use", "lw a0, 0(s1); addi a1, a0, 1", 17),
    Case("store to L2", "sw s2, 0(s1)", 1),
    Case("four accesses to L2", "sw s2, 0(s1); lw a0, 4(s1); sw s2, 8(s1); lw a1, 12(s1)", 4),
    Case("a fifth waits for the first", "; ".join(["sw s2, 0(s1)"] * 5), 17),
    Case("fence waits for L2", "sw s2, 0(s1); fence", 17),
    Case("fence alone", "fence", 1),
    Case("atomic operation alone", "amoadd.w a0, s2, (s0)", 1),
    Case("atomic operation, then use", "amoadd.w a0, s2, (s0); addi a1, a0, 1", 4),
    Case("atomic operations in one bank", "amoadd.w zero, s2, (s0); amoadd.w zero, s2, (s0)", 3),
    Case("reservation", "lr.w a0, (s0); sc.w a1, s2, (s0); addi a1, a1, 1", 6),
    Case("atomic operation in L2, then use", "amoswap.w a0, s2, (s1); addi a1, a0, 1", 17),
    Case("register, then use", f"li a0, {CONTROL:#x}; lw a1, 0(a0); addi a1, a1, 1", 4),
)


def program() -> str:
    lines = [f".globl _start\n_start:\n li s0, {L1:#x}\n li s1, {L2 + 0x80000:#x}"]
    lines.append(f" li s2, 7\n li s3, 3\n li s4, {RESULTS:#x}\n csrw mcountinhibit, zero")
    for case in CASES:
        body = "\n".join(part.strip() for part in case.assembly.split(";"))
        lines += [" nop"] * 24
        lines.append(f" csrr t0, mcycle\n{body}\n csrr t1, mcycle\n sub t1, t1, t0")
        lines.append(" addi t1, t1, -1\n sw t1, 0(s4)\n addi s4, s4, 4")
    return "\n".join([*lines, END])


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, compiler: Compiler) -> dict[Case, int]:
    elf = assemble(program(), tmp_path_factory.mktemp("timing"), compiler)
    size = 4 * len(CASES)
    memory = run_elf(elf, machine(1), peeks={RESULTS: size}, compiler=compiler).memory[RESULTS]
    return dict(zip(CASES, struct.unpack(f"<{len(CASES)}I", memory), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_rule(case: Case, measured: dict[Case, int]) -> None:
    assert measured[case] == case.cycles, case.assembly


def test_the_table_is_the_description() -> None:
    """The cycles above are those of these numbers."""
    got = (TIMING.load, TIMING.multiply, TIMING.divide, TIMING.atomic, TIMING.redirect)
    assert got == (2, 3, 20, 3, 1)
    assert (TIMING.far, TIMING.far_outstanding, TIMING.register) == (16, 4, 2)
    assert (CLUSTER.banks, CLUSTER.bank_bytes) == (32, 8)


BANKS = """
.globl _start
_start:
    csrw mcountinhibit, zero
    csrr s0, mhartid
    li s1, {control:#x}
    li t0, {mask:#x}
    bnez s0, 1f
    sw t0, 0(s1)
    sw t0, 8(s1)
1:
    wfi
    li s2, {stride}
    mul s2, s2, s0
    li t0, {l1:#x}
    add s2, s2, t0
    lw t0, 4(s1)
    csrr s3, mcycle
{loads}
    csrr s4, mcycle
    sub s4, s4, s3
    addi s4, s4, -1
    slli s5, s0, 2
    li t0, {results:#x}
    add s5, s5, t0
    sw s4, 0(s5)
    lw t0, 4(s1)
    bnez s0, 2f
{end}
2:
{sleep}
"""


@pytest.mark.rotating(5)
@pytest.mark.parametrize("harts", [1, 2, 5, 8])
@pytest.mark.parametrize("stride", [0, 4, 8, 256])
def test_banks(harts: int, stride: int, tmp_path: Path, compiler: Compiler) -> None:
    """Harts in step load from banks of their own, or one after another from one bank."""
    loads = 40
    text = BANKS.format(
        control=CONTROL,
        mask=(1 << harts) - 1,
        stride=stride,
        l1=L1,
        loads="    lw a0, 0(s2)\n    nop\n" * loads,
        results=RESULTS,
        end=END,
        sleep=SLEEP,
    )
    elf = assemble(text, tmp_path, compiler)
    result = run_elf(elf, machine(harts), peeks={RESULTS: 4 * harts}, compiler=compiler)
    got = struct.unpack(f"<{harts}I", result.memory[RESULTS])
    # Harts whose places share a bank of 8 bytes; banks repeat after 256 bytes.
    groups: dict[int, int] = {}
    expected = []
    for hart in range(harts):
        bank = stride * hart // 8 % 32
        expected.append((bank, groups.get(bank, 0)))
        groups[bank] = groups.get(bank, 0) + 1
    for hart, (bank, rank) in enumerate(expected):
        # A round of everybody takes as long as the bank needs, two cycles at least; the first time
        # each waits for those with lower numbers, which have reached the bank just before.
        period = max(2, groups[bank])
        assert abs(got[hart] - (period * (loads - 1) + rank + 2)) <= groups[bank], (hart, got)
    if stride == 8 or harts == 1:
        assert set(got) == {2 * loads}
