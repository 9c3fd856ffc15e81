"""Helper: the CV32E40P's timing as a table of micro-sequences, and how to measure them.

Each case is a rule, a sequence and its cycles.  A sequence is measured between two reads of
``mcycle``; the cycles of the read itself (4) are subtracted.  The table holds for the simulator
(tests/sim) and for the RTL (tests/rtl).

Registers at the start of each sequence: s0 points to a 64-byte buffer of zeros on a word
boundary, a0 = 7, a1 = 3, a2 = 0, a3 = -1, a4 = 0, a5 = 0x80000000.  Instructions are 32 bits wide
unless written ``c.…``, and a sequence starts on a word boundary: a target behind an odd number of
``c.nop`` lies off a word boundary.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CASES", "Case", "program"]

COUNTER_READ = 4


@dataclass(frozen=True)
class Case:
    """A rule, the sequence that shows it, and the sequence's cycles."""

    rule: str
    assembly: str
    cycles: int


CASES = (
    # --- one cycle per instruction --------------------------------------------------------------
    Case("nothing costs nothing", "", 0),
    Case("ALU instructions take 1", "add a4, a0, a1; sub a4, a4, a1; sltu a4, a4, a0", 3),
    Case("immediates take 1", "lui a4, 5; auipc a4, 0; addi a4, a4, 1; srai a4, a4, 3", 4),
    Case("16-bit instructions take 1", "c.li a4, 3; c.add a4, a0; c.mv a4, a1; c.nop", 4),
    Case("a mul takes 1", "mul a4, a0, a1; add a4, a4, a0", 2),
    Case("a store takes 1", "sw a0, 0(s0); sh a0, 4(s0); sb a0, 8(s0)", 3),
    Case("a load takes 1", "lw a4, 0(s0); lb a3, 4(s0); nop", 3),
    Case("a branch not taken takes 1", "bne a0, a0, 9f; beq a0, a1, 9f; nop", 3),
    # --- taken branches -------------------------------------------------------------------------
    Case("a taken branch +2", "beq a0, a0, 1f; nop; 1: nop", 4),
    Case("a taken branch +2, over nothing", "bne a0, a1, 1f; 1: nop", 4),
    Case("target: 32 bits off a word boundary +1", "beq a0, a0, 1f; c.nop; 1: nop", 5),
    Case("target: 16 bits off a word boundary +0", "beq a0, a0, 1f; c.nop; 1: c.nop", 4),
    Case("falling through to 32 bits off a boundary +0", "c.nop; nop; nop; c.nop", 4),
    Case("a loop of 3 rounds", "li a4, 3; 1: addi a4, a4, -1; bnez a4, 1b", 1 + 3 * 2 + 2 * 2),
    Case("backwards, off a word boundary", "li a4, 3; c.nop; 1: addi a4, a4, -1; bnez a4, 1b", 14),
    # --- jumps ----------------------------------------------------------------------------------
    Case("a jump +1", "j 1f; nop; 1: nop", 3),
    Case("a 16-bit jump +1", "c.j 1f; c.nop; 1: nop", 3),
    Case("a jump to 32 bits off a word boundary +2", "j 1f; c.nop; 1: nop", 4),
    Case("a jump to 16 bits off a word boundary +1", "j 1f; c.nop; 1: c.nop", 3),
    Case("two jumps in a row", "j 1f; 1: j 2f; nop; 2: nop", 5),
    Case("call and return", "jal t0, return_t0; nop", 2 + 2 + 1),
    Case("a taken branch behind a branch not taken", "beq a0, a1, 9f; beq a0, a0, 1f; 1: nop", 5),
    # --- loads ----------------------------------------------------------------------------------
    Case("load-use +1: ALU", "lw a4, 0(s0); add a4, a4, a4", 3),
    Case("load-use +1: second operand", "lbu a4, 0(s0); add a4, a0, a4", 3),
    Case("load-use +1: address of a load", "sw s0, 0(s0); lw a4, 0(s0); lw a3, 0(a4)", 4),
    Case("load-use +1: data of a store", "lw a4, 0(s0); sw a4, 4(s0)", 3),
    Case("load-use +1: condition of a branch", "lw a4, 0(s0); bnez a4, 9f", 3),
    Case("load-use +1: mul", "lh a4, 0(s0); mul a4, a4, a0", 3),
    Case("load-use +1: operand of a CSR access", "lw a4, 0(s0); csrw mscratch, a4", 3),
    Case("a use two behind the load +0", "lw a4, 0(s0); nop; add a4, a4, a4", 3),
    Case("a load into zero is never used", "lw zero, 0(s0); add a4, zero, zero", 2),
    Case("overwriting what was just loaded +1", "lw a4, 0(s0); li a4, 5", 3),
    Case("overwriting it by mul +1", "lw a4, 0(s0); mul a4, a0, a1", 3),
    Case("overwriting it by another load +0", "lw a4, 0(s0); lw a4, 4(s0)", 2),
    Case("overwriting it two behind +0", "lw a4, 0(s0); nop; li a4, 5", 3),
    Case("loading and overwriting zero +1", "lw zero, 0(s0); nop", 3),
    Case("both reasons at once +1", "lw a4, 0(s0); addi a4, a4, 1", 3),
    # --- multiplication and division ------------------------------------------------------------
    Case("mulh +4", "mulh a4, a0, a1", 5),
    Case("mulhu +4", "mulhu a4, a0, a1", 5),
    Case("mulhsu +4", "mulhsu a4, a0, a1", 5),
    Case("its result can be used at once", "mulh a4, a0, a1; add a4, a4, a4", 6),
    Case("divu +2 + leading zeros of the divisor: 3", "divu a4, a0, a1", 1 + 2 + 30),
    Case("divu by 7", "divu a4, a0, a0", 1 + 2 + 29),
    Case("divu by 0 has 32", "divu a4, a0, a2", 1 + 2 + 32),
    Case("divu by 0xffffffff has none", "divu a4, a0, a3", 1 + 2 + 0),
    Case("div by 3", "div a4, a0, a1", 1 + 2 + 30),
    Case("div by -1: leading ones less 1", "div a4, a0, a3", 1 + 2 + 31),
    Case("div by the most negative number", "div a4, a0, a5", 1 + 2 + 0),
    Case("div by 0", "div a4, a0, a2", 1 + 2 + 32),
    Case("rem as div", "rem a4, a0, a3", 1 + 2 + 31),
    Case("remu as divu", "remu a4, a0, a3", 1 + 2 + 0),
    Case("the dividend does not matter", "divu a4, a2, a1; divu a4, a3, a1", 2 * (1 + 2 + 30)),
    # --- accesses across a word boundary --------------------------------------------------------
    Case("word at 1 +1", "lw a4, 1(s0); nop", 3),
    Case("word at 2 +1", "lw a4, 2(s0); nop", 3),
    Case("word at 3 +1", "sw a0, 3(s0)", 2),
    Case("halfword at 1 stays in its word", "lh a4, 1(s0); nop", 2),
    Case("halfword at 3 +1", "lhu a4, 3(s0); nop", 3),
    Case("halfword store at 3 +1", "sh a0, 3(s0)", 2),
    Case("bytes never cross", "lb a4, 3(s0); sb a0, 3(s0)", 2),
    Case("crossing and load-use add up", "lw a4, 1(s0); add a4, a4, a4", 4),
    # --- control and status registers -----------------------------------------------------------
    Case("a counter +3", "csrr a4, minstret", 4),
    Case("writing a counter +3", "csrw mhpmcounter3, zero", 4),
    Case("an event selector +3", "csrr a4, mhpmevent3", 4),
    Case("mcountinhibit +3", "csrr a4, mcountinhibit", 4),
    Case("a trap register +3", "csrr a4, mepc; csrr a4, mcause; csrr a4, mtvec", 12),
    Case("mstatus +3", "csrr a4, mstatus", 4),
    Case("other registers +0", "csrw mscratch, a0; csrr a4, mscratch; csrr a4, mhartid", 3),
    Case("a fence +3", "fence", 4),
    Case("a fence.i +3", "fence.i", 4),
    Case("a fence fetches anew: 32 bits off a boundary +1", "c.nop; fence; nop", 7),
    # --- jalr waits for its base ----------------------------------------------------------------
    Case("jalr as a jump", "la t2, 1f; nop; nop; jr t2; nop; 1: nop", 2 + 2 + 2 + 1),
    Case("base written two before +0", "la t2, 1f; nop; jr t2; nop; 1: nop", 2 + 1 + 2 + 1),
    Case("base written just before +1", "la t2, 1f; jr t2; nop; 1: nop", 2 + 3 + 1),
    Case(
        "base loaded just before +2",
        "la t2, 1f; sw t2, 0(s0); lw t1, 0(s0); jr t1; nop; 1: nop",
        2 + 1 + 1 + 4 + 1,
    ),
    Case(
        "base loaded two before +1",
        "la t2, 1f; sw t2, 0(s0); lw t1, 0(s0); nop; jr t1; nop; 1: nop",
        2 + 1 + 1 + 1 + 3 + 1,
    ),
    Case(
        "base loaded three before +0",
        "la t2, 1f; sw t2, 0(s0); lw t1, 0(s0); nop; nop; jr t1; nop; 1: nop",
        2 + 1 + 1 + 2 + 2 + 1,
    ),
    Case(
        "base loaded two before, but what is between waited for the load +0",
        "la t2, 1f; sw t2, 0(s0); lw t1, 0(s0); addi a4, t1, 0; jr t1; nop; 1: nop",
        2 + 1 + 2 + 1 + 2 + 1,
    ),
    Case("link and base the same +1", "la t2, 1f; nop; nop; jalr t2, 0(t2); nop; 1: nop", 8),
    Case(
        "base divided just before +1",
        "la t2, 1f; divu t2, t2, a6; jr t2; nop; 1: nop",
        2 + 34 + 3 + 1,
    ),
    Case(
        "base read from a CSR that flushes +0",
        "la t2, 1f; csrw mepc, t2; csrr t1, mepc; jr t1; nop; 1: nop",
        2 + 4 + 4 + 2 + 1,
    ),
    Case(
        "base read from a CSR that does not +1",
        "la t2, 1f; csrw mscratch, t2; csrr t1, mscratch; jr t1; nop; 1: nop",
        2 + 1 + 1 + 3 + 1,
    ),
    # --- a jump behind an instruction of several cycles -----------------------------------------
    Case("behind mulh the bubble is hidden", "mulh a4, a0, a1; j 1f; nop; 1: nop", 5 + 1 + 1),
    Case("behind div too", "divu a4, a0, a3; j 1f; nop; 1: nop", 3 + 1 + 1),
    Case("behind a crossing load too", "lw a4, 1(s0); j 1f; nop; 1: nop", 2 + 1 + 1),
    Case("behind a crossing store too", "sw a0, 1(s0); j 1f; nop; 1: nop", 2 + 1 + 1),
    Case("behind one cycle it is not", "mul a4, a0, a1; j 1f; nop; 1: nop", 1 + 2 + 1),
    Case("the second word never hides", "mulh a4, a0, a1; j 1f; c.nop; 1: nop", 5 + 2 + 1),
    Case("a branch never hides", "mulh a4, a0, a1; beq a0, a0, 1f; nop; 1: nop", 5 + 3 + 1),
    Case(
        "a hidden call's callee that returns at once waits for its base",
        "mulh a4, a0, a1; jal t0, return_t0; nop",
        5 + 1 + 3 + 1,
    ),
    Case(
        "a crossing load that the jump's link overwrites hides nothing",
        "lw t0, 1(s0); jal t0, 1f; nop; 1: nop",
        2 + 2 + 1,
    ),
)


def program(cases: tuple[Case, ...] = CASES) -> str:
    """Return a bare-metal program that prints the cycles of each case as a line of 8 hex digits."""
    lines = [
        ".globl _start",
        ".option norvc",
        "_start:",
        "    csrw mcountinhibit, zero",
        "    la s1, results",
    ]
    for case in cases:
        lines += [f"    # {case.rule}", *_setup(), "    .balign 4", "    csrr s2, mcycle"]
        lines += _sequence(case.assembly)
        lines += ["9:", "    csrr s3, mcycle"]
        lines += ["    sub s3, s3, s2", f"    addi s3, s3, -{COUNTER_READ}"]
        lines += ["    sw s3, 0(s1)", "    addi s1, s1, 4"]
    return "\n".join([*lines, *_epilogue(len(cases))]) + "\n"


def _setup() -> list[str]:
    values = {"a0": 7, "a1": 3, "a2": 0, "a3": -1, "a4": 0, "a5": -(2**31), "a6": 1}
    clear = [f"    sw zero, {offset}(s0)" for offset in range(0, 12, 4)]
    return ["    la s0, buffer", *clear, *(f"    li {name}, {v}" for name, v in values.items())]


def _sequence(assembly: str) -> list[str]:
    lines: list[str] = []
    for text in filter(None, (part.strip() for part in assembly.split(";"))):
        wide = not text.split(": ")[-1].startswith("c.")
        lines += (
            [f"    {text}"] if wide else ["    .option rvc", f"    {text}", "    .option norvc"]
        )
    return lines


def _epilogue(count: int) -> list[str]:
    return f"""
    la s1, results
    li s2, {count}
    li a3, 0x10000000
next:
    lw a0, 0(s1)
    li a1, 28
digit:
    srl a2, a0, a1
    andi a2, a2, 15
    addi a2, a2, 48
    li a4, 58
    blt a2, a4, decimal
    addi a2, a2, 39
decimal:
    sb a2, 0(a3)
    addi a1, a1, -4
    bgez a1, digit
    li a2, 10
    sb a2, 0(a3)
    addi s1, s1, 4
    addi s2, s2, -1
    bnez s2, next
    li a0, 0x5555
    li a1, 0x100000
    sw a0, 0(a1)
stop:
    j stop
    .balign 4
return_t0:
    jr t0
    .data
    .balign 16
buffer:
    .zero 64
results:
    .zero {4 * count}
""".splitlines()
