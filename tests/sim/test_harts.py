"""Many harts: same results as one hart, atomics, barrier, wake-up, polls, and what stops a run."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest

from htvm.firmware.machine import BARE
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import IssResult, TrapError, build_iss, run_elf
from tests.sim import bare
from tests.sim.harts import CONTROL, END, L1, L2, SLEEP, SOC, TIMERS, assemble, machine

DATA = L1 + 0x4000

# Every hart marks the others' wake-up unless it is the first, then goes to `all`.
TOGETHER = f"""
.globl _start
_start:
    csrw mcountinhibit, zero
    csrr s0, mhartid
    li s1, {CONTROL:#x}
    li s2, {DATA:#x}
    bnez s0, 1f
    li t0, {{mask}}
    sw t0, 0(s1)
    sw t0, 8(s1)
1:
    wfi
{{body}}
    lw t0, 4(s1)
    bnez s0, 2f
{END}
2:
{SLEEP}
"""


def together(body: str, harts: int, folder: Path, compiler: Compiler) -> Path:
    body = "\n".join(part.strip() for part in body.split(";"))
    return assemble(TOGETHER.format(mask=(1 << harts) - 1, body=body), folder, compiler)


# --- the same as one hart ---------------------------------------------------------------------

AREA = 0x8008_0000
AREA_BYTES = 2048


def random_body(rng: random.Random, count: int) -> list[str]:
    """Instructions on x10..x29, aligned accesses to the 1024 bytes behind s0, forward branches."""
    lines = []
    reg = lambda: f"x{rng.randrange(10, 30)}"  # noqa: E731
    three = (
        "add sub sll slt sltu xor srl sra or and mul mulh mulhsu mulhu div divu rem remu".split()
    )
    for label in range(count):
        kind = rng.randrange(10)
        if kind < 5:
            lines.append(f"{rng.choice(three)} {reg()}, {reg()}, {reg()}")
        elif kind < 6:
            name = rng.choice(["addi", "slti", "sltiu", "xori", "ori", "andi"])
            lines.append(f"{name} {reg()}, {reg()}, {rng.randrange(-2048, 2048)}")
        elif kind < 7:
            size, name = rng.choice([(1, "sb"), (2, "sh"), (4, "sw")])
            lines.append(f"{name} {reg()}, {rng.randrange(0, 1024, size)}(s0)")
        elif kind < 9:
            size, name = rng.choice([(1, "lb"), (1, "lbu"), (2, "lh"), (2, "lhu"), (4, "lw")])
            lines.append(f"{name} {reg()}, {rng.randrange(0, 1024, size)}(s0)")
        else:
            name = rng.choice(["beq", "bne", "blt", "bge", "bltu", "bgeu"])
            lines.append(f"{name} {reg()}, {reg()}, l{label}; addi {reg()}, {reg()}, 1; l{label}:")
    return lines


def random_text(seed: int) -> str:
    """A program whose hart (its number, plus the word `which`) works on its own part of AREA.

    Where the word `alone` is 0 all harts meet before the run ends."""
    rng = random.Random(seed)
    body = "\n".join(random_body(rng, 300)).replace(";", "\n")
    load = "\n".join(f"    lw x{r}, {4 * r}(s0)" for r in range(10, 30))
    save = "\n".join(f"    sw x{r}, {1024 + 4 * r}(s0)" for r in range(10, 30))
    return f"""
.globl _start
_start:
    csrr s1, mhartid
    la t0, alone
    lw t1, 0(t0)
    or t1, t1, s1
    bnez t1, 1f
    li t0, {CONTROL:#x}
    li t1, 0x1ff
    sw t1, 0(t0)
1:
    la t0, which
    lw t1, 0(t0)
    add t1, t1, s1
    slli t1, t1, 11
    li s0, {AREA:#x}
    add s0, s0, t1
{load}
{body}
{save}
    la t0, alone
    lw t0, 0(t0)
    bnez t0, finish
    li t0, {CONTROL:#x}
    lw t1, 4(t0)
    bnez s1, sleep
    li a1, {SOC.sim.exit:#x}
    j 1f
finish:
    li a1, {BARE.exit:#x}
1:
    li a0, 0x5555
    sw a0, 0(a1)
sleep:
{SLEEP}
.data
.balign 4
.globl which
.globl alone
which: .word 0
alone: .word 0
"""


@pytest.mark.parametrize("seed", range(3))
def test_same_as_one_hart(seed: int, tmp_path: Path, compiler: Compiler) -> None:
    from htvm.firmware.elf import read_elf

    harts = 9
    elf = assemble(random_text(seed), tmp_path, compiler)
    symbols = read_elf(elf)
    which, alone = symbols.symbols["which"].address, symbols.symbols["alone"].address
    rng = random.Random(seed + 100)
    start = rng.randbytes(harts * AREA_BYTES)
    many = run_elf(
        elf,
        machine(harts),
        pokes={AREA: start},
        peeks={AREA: len(start)},
        compiler=compiler,
    )
    for hart in range(harts):
        part = slice(hart * AREA_BYTES, (hart + 1) * AREA_BYTES)
        pokes = {AREA: start, which: struct.pack("<I", hart), alone: struct.pack("<I", 1)}
        one = run_elf(elf, BARE, pokes=pokes, peeks={AREA: len(start)}, compiler=compiler)
        assert one.memory[AREA][part] == many.memory[AREA][part], hart
    assert len(many.harts) == harts and sum(many.harts) > harts * 300


# --- atomics ----------------------------------------------------------------------------------

SIGNED = (0, 1, -1, 5, -5, 2**31 - 1, -(2**31))
AMO = {
    "swap": lambda a, b: b,
    "add": lambda a, b: a + b,
    "xor": lambda a, b: a ^ b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "min": min,
    "max": max,
    "minu": lambda a, b: min(a % 2**32, b % 2**32),
    "maxu": lambda a, b: max(a % 2**32, b % 2**32),
}


def test_atomic_operations(tmp_path: Path, compiler: Compiler) -> None:
    pairs = [(a, b) for a in SIGNED for b in SIGNED]
    code, words, expected = [], [], []
    for name, operation in AMO.items():
        for old, operand in pairs:
            code.append(f"lw a1, 4(s2); amo{name}.w a0, a1, (s2); sw a0, 4(s2); addi s2, s2, 8")
            words += [old % 2**32, operand % 2**32]
            expected += [operation(old, operand) % 2**32, old % 2**32]
    elf = together("; ".join(code), 1, tmp_path, compiler)
    result = run_elf(
        elf,
        machine(1),
        pokes={DATA: struct.pack(f"<{len(words)}I", *words)},
        peeks={DATA: 4 * len(words)},
        compiler=compiler,
    )
    assert list(struct.unpack(f"<{len(words)}I", result.memory[DATA])) == expected


COUNTING = {
    "amoadd": "li a0, 200; li a1, 1; 3: amoadd.w zero, a1, (s2); addi a0, a0, -1; bnez a0, 3b",
    "lr and sc": "li a0, 200; 3: lr.w a1, (s2); addi a1, a1, 1; sc.w a2, a1, (s2); bnez a2, 3b;"
    " addi a0, a0, -1; bnez a0, 3b",
    "a lock": "li a0, 200; li a3, 1; 3: amoswap.w a1, a3, (s3); bnez a1, 3b; lw a2, 0(s2);"
    " addi a2, a2, 1; sw a2, 0(s2); amoswap.w zero, zero, (s3); addi a0, a0, -1; bnez a0, 3b",
}


@pytest.mark.parametrize("place", [DATA, L2 + 0x8000])
@pytest.mark.parametrize("way", COUNTING)
def test_counting_together(way: str, place: int, tmp_path: Path, compiler: Compiler) -> None:
    body = f"li s2, {place:#x}; addi s3, s2, 64; {COUNTING[way]}"
    elf = together(body, 9, tmp_path, compiler)
    result = run_elf(elf, machine(9), peeks={place: 4}, compiler=compiler)
    assert struct.unpack("<I", result.memory[place]) == (1800,)


def test_not_atomic_loses_some(tmp_path: Path, compiler: Compiler) -> None:
    """What the counting above would miss: harts really run side by side."""
    body = "li a0, 200; 3: lw a1, 0(s2); addi a1, a1, 1; sw a1, 0(s2); addi a0, a0, -1; bnez a0, 3b"
    elf = together(body, 9, tmp_path, compiler)
    memory = run_elf(elf, machine(9), peeks={DATA: 4}, compiler=compiler).memory[DATA]
    assert 200 <= struct.unpack("<I", memory)[0] < 1000


def test_reservations(tmp_path: Path, compiler: Compiler) -> None:
    """sc fails without lr, at another place, a second time, and after another hart's store."""
    body = """
        bnez s0, 4f; sc.w a0, zero, (s2); lr.w a1, (s2); addi a2, s2, 4; sc.w a1, s0, (a2);
        lr.w a3, (s2); sc.w a2, s0, (s2); sc.w a3, s0, (s2);
        lr.w a4, (s2); li t0, 64; 3: addi t0, t0, -1; bnez t0, 3b; sc.w a4, s0, (s2);
        sw a0, 16(s2); sw a1, 20(s2); sw a2, 24(s2); sw a3, 28(s2); sw a4, 32(s2); j 5f;
        4: li t0, 32; 3: addi t0, t0, -1; bnez t0, 3b; sb s0, 1(s2); 5:
    """
    elf = together(body.replace("\n", " "), 2, tmp_path, compiler)
    memory = run_elf(elf, machine(2), peeks={DATA: 36}, compiler=compiler).memory[DATA]
    assert struct.unpack("<9I", memory)[4:] == (1, 1, 0, 1, 1)
    assert memory[1] == 1


# --- barrier, wake-up, polls ------------------------------------------------------------------


def test_barrier_orders(tmp_path: Path, compiler: Compiler) -> None:
    """Every hart writes, meets, reads its neighbour's, meets, and so on, at different speeds."""
    body = """
        li s4, 20; 3: slli t1, s0, 2; add t1, t1, s2; lw a0, 0(t1); addi a0, a0, 1; sw a0, 0(t1);
        mv t2, s0; 4: addi t2, t2, -1; bgez t2, 4b; lw t0, 4(s1);
        addi t3, s0, 1; li t4, 9; bne t3, t4, 5f; li t3, 0; 5: slli t3, t3, 2; add t3, t3, s2;
        lw a1, 0(t3); add s5, s5, a1; lw t0, 4(s1); addi s4, s4, -1; bnez s4, 3b;
        sw s5, 64(t1)
    """
    elf = together(body.replace("\n", " "), 9, tmp_path, compiler)
    result = run_elf(elf, machine(9), peeks={DATA + 64: 36}, compiler=compiler)
    assert struct.unpack("<9I", result.memory[DATA + 64]) == (210,) * 9


def test_a_wake_up_is_not_lost(tmp_path: Path, compiler: Compiler) -> None:
    """Woken while at work, a hart does not sleep the next time; two wake-ups are one."""
    body = """
        bnez s0, 3f; li t0, 2; sw t0, 8(s1); sw t0, 8(s1); j 5f;
        3: li t0, 200; 4: addi t0, t0, -1; bnez t0, 4b; wfi; li a0, 1; sw a0, 0(s2); 5:
    """
    elf = together(body.replace("\n", " "), 2, tmp_path, compiler)
    result = run_elf(elf, machine(2), peeks={DATA: 4}, compiler=compiler)
    assert result.memory[DATA] == b"\1\0\0\0"
    work = [event for event in result.events if event["unit"] == "core1"]
    kernels = [event for event in result.events if event["unit"] == "cluster"]
    own = [event for event in result.events if event["unit"] == "core0"]
    # From its wake-up to the barrier, and no sleep in between; for both together that is a kernel,
    # of which the host has done its share early.
    assert len(work) == len(kernels) == len(own) == 1
    assert work[0]["end"] - work[0]["start"] > 600
    assert kernels[0]["array"] == kernels[0]["end"] - kernels[0]["start"] > 600
    assert own[0]["start"] == kernels[0]["start"] and kernels[0]["end"] - own[0]["end"] > 500


POLLS = {
    "everybody one timer": "li t1, 0x1A100000; bnez s0, 3f; li t0, 5000; sw t0, 0(t1); 3:"
    " lw t0, 0(t1); bnez t0, 3b",
    "two timers, started again by others": "li t1, 0x1A100000; andi t2, s0, 1; slli t2, t2, 2;"
    " add t3, t1, t2; li t0, 700; mul t0, t0, s0; addi t0, t0, 300; sw t0, 0(t3);"
    " 3: lw t0, 0(t3); bnez t0, 3b",
    "one polls, others write late": "li t1, 0x1A100000; beqz s0, 3f; li t0, 300; mul t2, t0, s0;"
    " 4: addi t2, t2, -1; bnez t2, 4b; sw t0, 0(t1); j 5f; 3: li t0, 100; sw t0, 0(t1);"
    " li t4, 3; 6: lw t0, 0(t1); bnez t0, 6b; 5:",
    "any length": "li t1, 0x1A100000; li s4, 60; 3: bnez s0, 5f; addi t0, s4, 40; sw t0, 0(t1);"
    " 4: lw t0, 0(t1); bnez t0, 4b; csrr t0, mcycle; slli s5, s5, 1; add s5, s5, t0;"
    " 5: addi s4, s4, -1; bnez s4, 3b; sw s5, 60(s2)",
    "polling while others compute": "li t1, 0x1A100000; bnez s0, 4f; li t0, 3000; sw t0, 0(t1);"
    " 3: lw t0, 0(t1); bnez t0, 3b; j 5f; 4: li t0, 400; 6: lw t2, 0(s2); add t2, t2, s0;"
    " sw t2, 0(s2); addi t0, t0, -1; bnez t0, 6b; 5:",
}


def stepped_and_skipped(
    body: str, harts: int, folder: Path, compiler: Compiler
) -> tuple[IssResult, IssResult]:
    record = "; csrr a0, mcycle; slli t0, s0, 2; add t0, t0, s2; sw a0, 64(t0)"
    elf = together(body + record, harts, folder, compiler)
    board = machine(harts, devices=TIMERS)
    stepped, skipped = (
        run_elf(elf, board, peeks={DATA: 128}, step_polls=step, compiler=compiler)
        for step in (True, False)
    )
    return stepped, skipped


@pytest.mark.rotating(5)
@pytest.mark.parametrize("harts", [1, 2, 9])
@pytest.mark.parametrize("name", POLLS)
def test_skipping_polls_changes_nothing(
    name: str, harts: int, tmp_path: Path, compiler: Compiler
) -> None:
    stepped, skipped = stepped_and_skipped(POLLS[name], harts, tmp_path, compiler)
    assert stepped == skipped


@pytest.mark.parametrize("writer", [0, 1])
@pytest.mark.parametrize("harts", [2, 3])
def test_a_write_meets_polls_at_any_time(
    writer: int, harts: int, tmp_path: Path, compiler: Compiler
) -> None:
    """One ends what the others poll, in each round some cycles later within their rounds."""
    body = f"""
        li t1, 0x1A100000; li s4, 60; li s6, {writer}; 3: beq s0, s6, 6f; lw t0, 4(s1);
        4: lw t0, 0(t1); bnez t0, 4b; csrr t0, mcycle; slli t2, s5, 5; sub s5, t2, s5;
        add s5, s5, t0; j 7f; 6: li t0, 100000; sw t0, 0(t1); lw t2, 4(s1); mv t2, s4;
        5: addi t2, t2, -1; bnez t2, 5b; sw zero, 0(t1); 7: lw t0, 4(s1); addi s4, s4, -1;
        bnez s4, 3b; slli t0, s0, 2; add t0, t0, s2; sw s5, 32(t0)
    """
    stepped, skipped = stepped_and_skipped(body.replace("\n", " "), harts, tmp_path, compiler)
    assert stepped == skipped


def test_a_long_wait_costs_nothing(tmp_path: Path, compiler: Compiler) -> None:
    body = "bnez s0, 4f; li t1, 0x1A100000; li t0, 2000000000; sw t0, 0(t1); 3: lw t0, 0(t1);"
    elf = together(body + " bnez t0, 3b; 4:", 9, tmp_path, compiler)
    result = run_elf(elf, machine(9, devices=TIMERS), compiler=compiler)
    assert 2_000_000_000 <= result.cycles < 2_000_000_200
    assert sum(event["end"] - event["start"] for event in result.events if event["unit"] == "host")


def test_two_runs_are_the_same(tmp_path: Path, compiler: Compiler) -> None:
    from htvm.sim.iss import _machine_options

    board = machine(9)
    elf = together(COUNTING["lr and sc"], 9, tmp_path, compiler)
    files = []
    for name in ("first", "second"):
        report, events = tmp_path / f"{name}.json", tmp_path / f"{name}.events"
        line = [build_iss(board, compiler), elf, *_machine_options(board)]
        subprocess.run([*line, "--report", report, "--events", events], check=True)
        files.append((report.read_bytes(), events.read_bytes()))
    assert files[0] == files[1] and files[0][1]


# --- what stops a run -------------------------------------------------------------------------

STOPS = {
    "everybody asleep": ("3: wfi; j 3b", "endless wait: hart 0 sleeps; hart 1 sleeps"),
    "someone missing": (
        "beqz s0, 4f; 3: wfi; j 3b; 4:",
        "endless wait: hart 0 is at the barrier; hart 1 sleeps",
    ),
    "not invited": ("li t0, 1; sw t0, 0(s1); lw t0, 4(s1)", "hart 1 at a barrier for harts 0x1 "),
    "no such hart": ("li t0, 64; sw t0, 8(s1)", "wake-up of harts 0x40, of which there are 2"),
    "misaligned": ("lw t0, 2(s2)", "access to 4 bytes at 0x10004002 is misaligned .* on hart 0"),
    "compressed": (".half 0x4501; .half 0x4501", "illegal instruction .* on hart 0"),
    "mark": (f"li t1, {SOC.sim.trace:#x}; beqz s0, 3f; sw s0, 0(t1); 3:", "hart 1 makes a mark"),
    "nowhere": ("sw zero, 0(zero)", "store of 4 bytes at 0x00000000, where there is no RAM"),
    "atomic nowhere": ("amoadd.w zero, s0, (s1)", "atomic access to 0x20002000"),
    "never": ("3: bnez s0, 3b; 4: j 4b", "not finished after 100000 cycles"),
}


@pytest.mark.parametrize("name", STOPS)
def test_stops(name: str, tmp_path: Path, compiler: Compiler) -> None:
    body, message = STOPS[name]
    elf = together(body, 2, tmp_path, compiler)
    with pytest.raises(TrapError, match=message):
        run_elf(elf, machine(2), max_cycles=100_000, compiler=compiler)


def test_endless_poll(tmp_path: Path, compiler: Compiler) -> None:
    elf = together("li t1, 0x1A100000; 3: lw t0, 0(t1); beqz t0, 3b", 2, tmp_path, compiler)
    with pytest.raises(TrapError, match="hart 0 polls device register 0x1a100000, which stays 0x0"):
        run_elf(elf, machine(2, devices=TIMERS), compiler=compiler)


def test_one_core_has_no_others(tmp_path: Path, compiler: Compiler) -> None:
    elf = tmp_path / "p.elf"
    elf.write_bytes(bare.make_elf([(bare.RAM, bare.words(0x00100073))]))
    done = subprocess.run(
        [build_iss(BARE, compiler), elf, "--harts", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "core is alone" in done.stderr
    done = subprocess.run(
        [build_iss(machine(1), compiler), elf, "--harts", "10", "--ram", f"{L1:#x}:131072"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
