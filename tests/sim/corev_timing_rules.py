"""Helper: the timing of the CORE-V extensions as a table of micro-sequences.

They are measured as those of :mod:`tests.sim.timing_rules` are, with the same registers at the
start.
"""

from __future__ import annotations

from tests.sim.timing_rules import Case

__all__ = ["COREV_CASES"]


def setupi(loop: int, count: int, words: int) -> str:
    """A loop of the ``words`` - 1 instructions behind this one."""
    return f".word {0x462B | loop << 7 | words << 15 | count << 20:#x}"


def setup(loop: int, register: int, words: int) -> str:
    return f".word {0x472B | loop << 7 | register << 15 | words << 20:#x}"


A0, A2, A4 = 10, 12, 14
LPCOUNT0 = "0xcc2"

COREV_CASES = (
    # --- one cycle per instruction --------------------------------------------------------------
    Case("ALU: 1", "cv.min a4, a0, a1; cv.abs a4, a4; cv.clip a4, a4, 3; cv.addN a4, a4, a0, 1", 4),
    Case("bits: 1", "cv.extract a4, a0, 3, 1; cv.insert a4, a0, 3, 1; cv.cnt a4, a4", 3),
    Case("mac: 1, its sum used at once", "cv.mac a4, a0, a1; cv.mac a4, a0, a1", 2),
    Case("products of halfwords: 1", "cv.mulsn a4, a0, a1, 3; cv.macuRN a4, a4, a1, 2", 2),
    Case("dot products: 1, their sum used at once", "cv.sdotsp.b a4, a0, a1; " * 4, 4),
    Case("lanes: 1", "cv.add.b a4, a0, a1; cv.cmpgt.sc.h a4, a4, a1; cv.max.sci.b a4, a4, 3", 3),
    Case("shuffles: 1", "cv.shuffle2.b a4, a0, a1; cv.pack a4, a4, a1; cv.packhi.b a4, a4, a0", 3),
    Case("complex: 1", "cv.cplxmul.r a4, a0, a1; cv.cplxmul.i a4, a0, a1; cv.cplxconj a4, a4", 3),
    # --- accesses -------------------------------------------------------------------------------
    Case("post-increment: 1", "cv.lw a4, (s0), 4; cv.sw a0, (s0), 4; nop", 3),
    Case("the address at once, as address", "cv.lw a4, (s0), 4; cv.lw a3, (s0), 4; nop", 3),
    Case("the address at once, as operand", "cv.lw a4, (s0), 4; add a3, s0, s0; nop", 3),
    Case("by a register: 1", "cv.lh a4, (s0), a2; cv.lbu a3, a2(s0); cv.sh a0, (s0), a2; nop", 4),
    Case("load-use +1", "cv.lw a4, (s0), 4; add a4, a4, a4", 3),
    Case("load-use +1, by a register", "cv.lw a4, a2(s0); add a4, a4, a4", 3),
    Case("overwriting what was just loaded +1", "cv.lw a4, (s0), 4; cv.min a4, a0, a1", 3),
    Case(
        "overwriting it by an increment +1", "sw s0, 0(s0); lw a4, 0(s0); cv.lw a3, (a4), 4; nop", 5
    ),
    Case("address and value in one register", "cv.lw s0, (s0), 4; nop; add a4, s0, s0", 3),
    Case("across a word +1", "cv.lw a4, (s0), 1; cv.lw a4, (s0), 4; nop", 4),
    Case("a store across a word +1", "cv.sw a0, (s0), 3; cv.sh a0, (s0), 1", 3),
    Case(
        "behind one across a word a jump is hidden",
        "addi s0, s0, 1; cv.lw a4, (s0), 4; j 1f; nop; 1: nop",
        5,
    ),
    Case(
        "jalr to an address incremented just before +1",
        "la t2, 1f; nop; cv.lb a4, (t2), 0; jr t2; nop; 1: nop",
        8,
    ),
    Case(
        "jalr to one incremented two before +0",
        "la t2, 1f; nop; cv.lb a4, (t2), 0; nop; jr t2; nop; 1: nop",
        8,
    ),
    # --- registers that are read ----------------------------------------------------------------
    Case("load-use +1: sum of a mac", "lw a4, 0(s0); cv.mac a4, a0, a1", 3),
    Case("load-use +1: sum of a dot product", "lw a4, 0(s0); cv.sdotsp.b a4, a0, a1", 3),
    Case("load-use +1: operand of a dot product", "lw a4, 0(s0); cv.sdotsp.b a3, a0, a4", 3),
    Case("load-use +1: what is inserted into", "lw a4, 0(s0); cv.insert.b a4, a0, 1", 3),
    Case("load-use +1: increment of a store", "lw a4, 0(s0); cv.sw a0, (s0), a4", 3),
    Case("load-use +1: increment of a load", "lw a4, 0(s0); cv.lw a3, (s0), a4; nop", 4),
    Case("load-use +1: count of a loop", f"lw a4, 0(s0); {setup(0, A4, 4)}; nop; nop; nop", 6),
    Case("a number of a lane counts as a register: ra", "lw ra, 0(s0); cv.extract.b a4, a0, 2", 3),
    Case("that of another lane does not", "lw ra, 0(s0); cv.extract.b a4, a0, 1", 2),
    # --- immediate branches ---------------------------------------------------------------------
    Case("an immediate branch not taken: 1", "cv.beqimm a0, 3, 9f; cv.bneimm a0, 7, 9f; nop", 3),
    Case("a taken one +2", "cv.beqimm a0, 7, 1f; nop; 1: nop", 4),
    Case("a taken one off a word boundary +3", "cv.bneimm a3, 7, 1f; c.nop; 1: nop", 5),
    Case("load-use +1: a branch on it", "lw a4, 0(s0); cv.bneimm a4, 0, 9f", 3),
    # --- hardware loops -------------------------------------------------------------------------
    Case("a loop of 3 in 5 rounds", f"{setupi(0, 5, 4)}; nop; nop; nop", 1 + 5 * 3),
    Case("loop 1 too", f"{setupi(1, 5, 5)}; nop; nop; nop; nop", 1 + 5 * 4),
    Case("a count from a register", f"{setup(0, A0, 4)}; nop; nop; nop", 1 + 7 * 3),
    Case("a count of 1: once", f"{setupi(0, 1, 4)}; nop; nop; nop", 1 + 3),
    Case("a count of 0: once", f"{setup(0, A2, 4)}; nop; nop; nop", 1 + 3),
    Case(
        "a loop in a loop",
        f"{setupi(1, 3, 7)}; {setupi(0, 4, 4)}; nop; nop; nop; nop; nop",
        1 + 3 * (1 + 12 + 2),
    ),
    Case(
        "six instructions instead of one",
        # starti, endi and counti of a loop that starts behind them
        ".word 0x30402b; .word 0x50422b; .word 0x50442b; nop; nop; nop",
        3 + 5 * 3,
    ),
    Case(
        "a load last, its use first +1 in each further round",
        f"{setupi(0, 5, 4)}; add a3, a4, a4; nop; lw a4, 0(s0)",
        1 + 15 + 4,
    ),
    Case(
        "a load last, its use behind the loop +1 at the end",
        f"{setupi(0, 5, 4)}; nop; nop; lw a4, 0(s0); add a3, a4, a4",
        1 + 15 + 2,
    ),
    Case("a load across a word last", f"{setupi(0, 5, 4)}; nop; nop; lw a4, 1(s0)", 1 + 5 * 4),
    Case("a mulh last", f"{setupi(0, 5, 4)}; nop; nop; mulh a4, a0, a1", 1 + 5 * 7),
    Case("a division last", f"{setupi(0, 5, 4)}; nop; nop; divu a4, a0, a3", 1 + 5 * 5),
    Case("a loop's registers: 1", f"csrr a4, {LPCOUNT0}; csrr a3, 0xcc1; csrr a4, 0xcc4", 3),
)
