"""What harts with the CV32E40P's pipeline wait for: banks, far memory, registers, each other."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from byoc_dory.soc.cores import Cluster
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import IssResult, run_elf
from tests.rtl.corev_text import hardware_loop
from tests.sim.harts import CONTROL, END, L1, L2, SLEEP
from tests.sim.pipelines import CLUSTER, assemble, machine

RESULTS = L1 + 0x8000
COUNTER_READ = 4


@dataclass(frozen=True)
class Case:
    """A sequence and its cycles; s0 points into L1, s1 into L2, s2 to the cluster's registers."""

    rule: str
    assembly: str
    cycles: int


FAR, REGISTER = 7, 1

CASES = (
    Case("L1 does not wait", "lw a0, 0(s0); sw a1, 0(s0); cv.lw a2, (s0), 4; nop", 4),
    Case("L1 across a word +1", "lw a0, 2(s0); nop", 3),
    Case("L1, load-use +1", "lw a0, 0(s0); addi a0, a0, 1", 3),
    Case("load from L2", "lw a0, 0(s1); nop", 1 + FAR + 1),
    Case("load from L2, load-use +1", "lw a0, 0(s1); addi a0, a0, 1", 1 + FAR + 2),
    Case("store to L2 waits, too", "sw a0, 0(s1); nop", 1 + FAR + 1),
    Case("post-increment in L2", "cv.lw a0, (s1), 4; cv.sb a1, (s1), 4", 2 + 2 * FAR),
    Case("L2 across a word: two accesses", "lw a0, 2(s1); nop", 1 + 2 * FAR + 1 + 1),
    Case("a jump behind hides one", "lw a0, 0(s1); j 1f; nop; 1: nop", 1 + FAR + 1 + 1),
    Case("a taken branch hides none", "lw a0, 0(s1); beq a1, a1, 1f; nop; 1: nop", 1 + FAR + 3 + 1),
    Case("register read", "lw a0, 0(s2); nop", 1 + REGISTER + 1),
    Case("register read, load-use +1", "lw a0, 0(s2); addi a0, a0, 1", 1 + REGISTER + 2),
    Case("register write", "lw a0, 0(s2); sw a0, 0(s2); nop", 2 * (1 + REGISTER) + 2),
    Case("a jump behind a register hides one", "lw a0, 0(s2); j 1f; nop; 1: nop", 1 + REGISTER + 2),
    Case(
        "L2 in a hardware loop",
        f"{hardware_loop('setupi', 0, '4', '3f')}; lw a0, 0(s1); nop; nop; 3: nop",
        1 + 4 * (3 + FAR) + 1,
    ),
    Case("wfi of a hart that was woken", "li a0, 1; sw a0, 8(s2); wfi; nop", 2 + REGISTER + 6 + 1),
)


def test_rules(tmp_path: Path, compiler: Compiler) -> None:
    """One hart in the cluster's memories."""
    assert (CLUSTER.far_wait, CLUSTER.register_wait) == (FAR, REGISTER)
    lines = [f".globl _start\n_start:\n li s3, {RESULTS:#x}\n csrw mcountinhibit, zero"]
    for case in CASES:
        body = "\n".join(part.strip() for part in case.assembly.split(";"))
        lines.append(f" li s0, {L1:#x}\n li s1, {L2 + 0x80000:#x}\n li s2, {CONTROL:#x}")
        lines.append(f" csrr t0, mcycle\n{body}\n csrr t1, mcycle\n sub t1, t1, t0")
        lines.append(f" addi t1, t1, -{COUNTER_READ}\n sw t1, 0(s3)\n addi s3, s3, 4")
    elf = assemble("\n".join([*lines, END]), tmp_path, compiler)
    size = 4 * len(CASES)
    memory = run_elf(elf, machine(1), peeks={RESULTS: size}, compiler=compiler).memory[RESULTS]
    got = dict(zip(CASES, struct.unpack(f"<{len(CASES)}I", memory), strict=True))
    assert not [(case, got[case]) for case in CASES if got[case] != case.cycles]


# --- harts that go in step --------------------------------------------------------------------

# All meet, so that they begin in one cycle; each then runs what its number says, with s2 in L1 and
# s1 the cluster's registers, and leaves the cycles at its two marks.
IN_STEP = """
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
    slli s5, s0, 3
    li t0, {results:#x}
    add s5, s5, t0
    la t0, table
    slli t1, s0, 2
    add t0, t0, t1
    lw t2, 0(t0)
    lw t0, 4(s1)
    csrr s3, mcycle
    jr t2
{bodies}
done:
    csrr s4, mcycle
finish:
    sw s3, 0(s5)
    sw s4, 4(s5)
    lw t0, 4(s1)
    bnez s0, 2f
{end}
2:
{sleep}
.data
table: .word {table}
"""


def in_step(
    bodies: list[str],
    folder: Path,
    compiler: Compiler,
    stride: int = 0,
    devices: Path | None = None,
    cluster: Cluster = CLUSTER,
) -> tuple[list[tuple[int, int]], IssResult]:
    """Run a body on each hart; return their marks, less the first hart's first, and the run."""
    harts = len(bodies)
    parts = ["\n".join(part.strip() for part in body.split(";")) for body in bodies]
    text = IN_STEP.format(
        control=CONTROL,
        mask=(1 << harts) - 1,
        stride=stride,
        l1=L1,
        results=RESULTS,
        bodies="\n".join(f"body{i}:\n{part}\nj done" for i, part in enumerate(parts)),
        end=END,
        sleep=SLEEP,
        table=", ".join(f"body{i}" for i in range(harts)),
    )
    elf = assemble(text, folder, compiler)
    board = machine(harts, devices=devices, cluster=cluster)
    run = run_elf(elf, board, peeks={RESULTS: 8 * harts}, compiler=compiler)
    words = struct.unpack(f"<{2 * harts}I", run.memory[RESULTS])
    marks = [(words[2 * i] - words[0], words[2 * i + 1] - words[0]) for i in range(harts)]
    return marks, run


# Cycles of a body of so many: both the jump to it and that behind it take two, except that the
# latter's bubble hides behind a last instruction that has to wait.
def _ends(*bodies: int) -> list[tuple[int, int]]:
    return [(0, COUNTER_READ + 2 + body + 2) for body in bodies]


def test_nothing_shared(tmp_path: Path, compiler: Compiler) -> None:
    marks, _ = in_step(["nop; nop"] * 9, tmp_path, compiler)
    assert marks == _ends(*[2] * 9)


@pytest.mark.parametrize("harts", [2, 3, 8])
@pytest.mark.parametrize("stride", [0, 4, 16, 64])
def test_banks(harts: int, stride: int, tmp_path: Path, compiler: Compiler) -> None:
    """Harts in step load from banks of their own, or take turns at one."""
    loads = 20
    marks, _ = in_step(["lw a0, 0(s2); nop; " * loads] * harts, tmp_path, compiler, stride)
    sharing: dict[int, list[int]] = {}
    for hart in range(harts):
        sharing.setdefault(stride * hart // 4 % 16, []).append(hart)
    expected = [0] * harts
    for group in sharing.values():
        for rank, hart in enumerate(group):
            # The first time, each waits for those with lower numbers; then a round of everybody
            # takes as many cycles as there are harts, two at least.
            expected[hart] = rank + max(2, len(group)) * (loads - 1) + 2
    assert marks == _ends(*expected)


STEPS = {
    "one waits for the other": (["lw a0, 0(s2); nop", "lw a0, 0(s2); nop"], (2, 3)),
    "stores, too": (["sw a0, 0(s2); nop", "cv.sw a0, (s2), 4; nop"], (2, 3)),
    "another bank": (["lw a0, 0(s2); nop", "lw a0, 4(s2); nop"], (2, 2)),
    "the same bank, 64 bytes away": (["lw a0, 0(s2); nop", "lbu a0, 65(s2); nop"], (2, 3)),
    "one cycle later": (["lw a0, 0(s2); nop; nop", "nop; lw a0, 0(s2); nop"], (3, 3)),
    "load-use comes in addition": (["lw a0, 0(s2); nop", "lw a0, 0(s2); addi a0, a0, 1"], (2, 4)),
    "the first half of an access": (["lw a0, 0(s2); nop", "lw a0, 2(s2); nop"], (2, 4)),
    "its second half": (["nop; lw a0, 4(s2); nop", "lw a0, 2(s2); nop; nop"], (3, 5)),
    "behind its second half": (["lw a0, 2(s2); nop", "nop; lw a0, 4(s2); nop"], (3, 4)),
    "not yet its second half": (["lw a0, 2(s2); nop", "lw a0, 4(s2); nop"], (3, 2)),
    "both halves": (
        ["lw a0, 0(s2); lw a0, 4(s2); lw a0, 4(s2); nop", "lw a0, 2(s2); nop"],
        (4, 5),
    ),
    # The jump to `done` hides one of the two cycles.
    "a jump behind hides one": (["lw a0, 0(s2)", "lw a0, 0(s2)", "lw a0, 0(s2)"], (1, 1, 2)),
    "a taken branch hides none": (["lw a0, 0(s2); beqz zero, 1f; 1: nop"] * 2, (5, 6)),
    "first come, first served": (
        # The bank is hart 1's, then hart 2's and hart 0's, who asks last.
        ["nop; nop; lw a0, 0(s2); nop", "nop; lw a0, 0(s2); nop", "nop; lw a0, 0(s2); nop"],
        (5, 3, 4),
    ),
}


@pytest.mark.rotating(5)
@pytest.mark.parametrize("name", STEPS)
def test_conflicts(name: str, tmp_path: Path, compiler: Compiler) -> None:
    bodies, cycles = STEPS[name]
    marks, _ = in_step(bodies, tmp_path, compiler)
    assert marks == _ends(*cycles)


def test_barrier(tmp_path: Path, compiler: Compiler) -> None:
    """All go on `release` cycles after the last one's arrival."""
    meet = "lw t0, 4(s1); csrr s3, mcycle"
    bodies = [f"{'nop; ' * count}{meet}" for count in (3, 0, 5)]
    marks, _ = in_step(bodies, tmp_path, compiler)
    assert len({begin for begin, _ in marks}) == len({end for _, end in marks}) == 1
    alone, _ = in_step(["nop; " * 5 + meet], tmp_path, compiler)
    assert CLUSTER.release == 2 and marks[0][1] - marks[0][0] == alone[0][1] - alone[0][0]


def test_barrier_of_one(tmp_path: Path, compiler: Compiler) -> None:
    """The last one to arrive does not go on before its own access is over."""
    slow = replace(CLUSTER, release=1, register_wait=5)
    marks, _ = in_step(["lw t0, 4(s1); nop"], tmp_path, compiler, cluster=slow)
    assert marks == _ends(1 + 5 + 1)


def test_wake_up(tmp_path: Path, compiler: Compiler) -> None:
    """A hart that sleeps goes on `wake` cycles after the store that wakes it."""
    waker = "nop; " * 20 + "li a0, 2; csrr s3, mcycle; sw a0, 8(s1); nop"
    sleeper = "wfi; csrr s3, mcycle"
    text = [waker, sleeper]
    marks, _ = in_step(text, tmp_path, compiler)
    assert marks[1][0] == COUNTER_READ + CLUSTER.wake


# --- devices that take banks ------------------------------------------------------------------

ENGINE = Path(__file__).parent / "devices" / "engine_model.c"

# What hart 0 sets (banks from cycle to cycle, most refusals), how long the engine works, what both
# then do, and their cycles.  The store that starts it takes two cycles; from the second one on the
# engine takes banks, 0 to 7 of 16 first.
TAKEN = {
    "until it is done": (0, 99, 4, ["lw a0, 0(s2); nop", "lw a0, 32(s2); nop"], (5, 2)),
    "not refused too often": (0, 2, 40, ["lw a0, 28(s2); nop", "lw a0, 60(s2); nop"], (4, 2)),
    "refused again": (0, 2, 40, ["lw a0, 0(s2); lw a0, 0(s2); nop", "nop"], (7, 1)),
    "it has moved on": (8, 99, 40, ["lw a0, 0(s2); nop", "lw a0, 32(s2); nop"], (2, 3)),
    "one bank at a time": (1, 99, 40, ["lw a0, 4(s2); nop", "lw a0, 0(s2); nop"], (3, 2)),
    "both wait, first come first": (0, 99, 4, ["lw a0, 0(s2); nop", "lw a0, 0(s2); nop"], (5, 6)),
    "both halves": (0, 99, 3, ["lw a0, 30(s2); nop", "lw a0, 62(s2); nop"], (5, 4)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_banks_that_devices_take(name: str, tmp_path: Path, compiler: Compiler) -> None:
    step, most, busy, bodies, cycles = TAKEN[name]
    values = f"li a1, {step}; li a2, {most}; li a3, {busy}; li t1, 0x1A100000; "
    start = values + "sw a1, 4(t1); sw a2, 8(t1); csrr s3, mcycle; sw a3, 0(t1); "
    wait = "nop; " * 8 + "csrr s3, mcycle; nop; nop; "
    texts = [start + bodies[0], wait + bodies[1]]
    marks, _ = in_step(texts, tmp_path, compiler, devices=ENGINE)
    assert marks[0][0] == marks[1][0]
    # Less the store, or what the other hart does meanwhile, and the jump behind the body.
    got = tuple(end - begin - COUNTER_READ - 2 - 2 for begin, end in marks)
    assert got == cycles


# In how many of how many cycles the engine takes banks, spread evenly, what hart 0 does, and its
# cycles.  The access after the first instruction is in the third of the engine's cycles.
SPREAD = {
    "every other cycle": (1, 2, "nop; lw a0, 0(s2); nop", 4),
    "between two": (1, 2, "lw a0, 0(s2); nop", 2),
    "two of three": (2, 3, "nop; lw a0, 0(s2); nop", 5),
    "not at all": (0, 3, "nop; lw a0, 0(s2); nop", 3),
}


@pytest.mark.parametrize("name", SPREAD)
def test_banks_taken_in_some_cycles(name: str, tmp_path: Path, compiler: Compiler) -> None:
    busy, of, body, cycles = SPREAD[name]
    values = f"li a1, {busy}; li a2, {of}; li a3, 40; li a4, 99; li t1, 0x1A100000; "
    sets = "sw a1, 12(t1); sw a2, 16(t1); sw a4, 8(t1); sw zero, 4(t1); "
    start = values + sets + "csrr s3, mcycle; sw a3, 0(t1); "
    marks, _ = in_step([start + body, "csrr s3, mcycle"], tmp_path, compiler, devices=ENGINE)
    begin, end = marks[0]
    assert end - begin - COUNTER_READ - 2 - 2 == cycles
