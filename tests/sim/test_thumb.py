"""Classes of Thumb instructions, as the assembler writes them, and estimates of cycles."""

from __future__ import annotations

import ctypes
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from byoc_dory.soc.cores import ArmCycles, FlashReads
from byoc_dory.soc.registry import resolve
from htvm.firmware.arm import arm_flags, core_of
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from htvm.sim.arm import _Count, _Lines
from htvm.sim.thumb import Executed, decode, estimate, executed, sum_of

CYCLES = ArmCycles(
    "a table of this test", load=(10, 20), next_load=(1, 2), store=(3, 3), multiple=(100, 100),
    multiply=(7, 7), accumulate=(8, 8), long_multiply=(9, 90), long_accumulate=(11, 11),
    divide=(12, 12), refill=(1000, 3000), call=(5, 5), return_load=(6, 6),
)  # fmt: skip

# Text, bytes, kind, registers, whether it loads the program counter or calls.
WRITTEN = [
    ("nop", 2, "plain", 0, ""),
    ("adds r0, r1, r2", 2, "plain", 0, ""),
    ("add.w r8, r9, r10, lsl #3", 4, "plain", 0, ""),
    ("movw r0, #1234", 4, "plain", 0, ""),
    ("muls r0, r1, r0", 2, "multiply", 0, ""),
    ("mul r8, r9, r10", 4, "multiply", 0, ""),
    ("mla r0, r1, r2, r3", 4, "accumulate", 0, ""),
    ("mls r0, r1, r2, r3", 4, "accumulate", 0, ""),
    ("smlad r0, r1, r2, r3", 4, "plain", 0, ""),
    ("smulbb r0, r1, r2", 4, "plain", 0, ""),
    ("sxtb16 r0, r1, ror #8", 4, "plain", 0, ""),
    ("ssat r0, #8, r1", 4, "plain", 0, ""),
    ("smull r0, r1, r2, r3", 4, "long_multiply", 0, ""),
    ("umull r0, r1, r2, r3", 4, "long_multiply", 0, ""),
    ("smlal r0, r1, r2, r3", 4, "long_accumulate", 0, ""),
    ("umlal r0, r1, r2, r3", 4, "long_accumulate", 0, ""),
    ("sdiv r0, r1, r2", 4, "divide", 0, ""),
    ("udiv r0, r1, r2", 4, "divide", 0, ""),
    ("ldr r0, [r1, #4]", 2, "load", 0, ""),
    ("ldr r0, [r1, r2]", 2, "load", 0, ""),
    ("ldrsb r0, [r1, r2]", 2, "load", 0, ""),
    ("ldrh r0, [r1, #2]", 2, "load", 0, ""),
    ("ldr r0, [sp, #8]", 2, "load", 0, ""),
    ("ldr r0, [pc, #8]", 2, "load", 0, ""),
    ("ldr r8, [r1], #4", 4, "load", 0, ""),
    ("ldrsb.w r0, [r1, #5]", 4, "load", 0, ""),
    ("ldrh.w r0, [r1, r2, lsl #1]", 4, "load", 0, ""),
    ("str r0, [r1, #4]", 2, "store", 0, ""),
    ("strb r0, [r1, r2]", 2, "store", 0, ""),
    ("strh r0, [r1, #2]", 2, "store", 0, ""),
    ("str r0, [sp, #8]", 2, "store", 0, ""),
    ("str r8, [r1], #4", 4, "store", 0, ""),
    ("strb.w r0, [r1, #5]", 4, "store", 0, ""),
    ("ldm r0!, {r2, r3, r4, r5}", 2, "multiple", 4, ""),
    ("ldm.w r0!, {r2, r3, r9}", 4, "multiple", 3, ""),
    ("stm r0!, {r2, r3}", 2, "multiple", 2, ""),
    ("push {r4, lr}", 2, "multiple", 2, ""),
    ("push.w {r4, r8, lr}", 4, "multiple", 3, ""),
    ("pop {r4, pc}", 2, "multiple", 2, "returns"),
    ("pop.w {r4, r8, pc}", 4, "multiple", 3, "returns"),
    ("pop {r4, r5}", 2, "multiple", 2, ""),
    ("ldrd r0, r1, [r2], #8", 4, "multiple", 2, ""),
    ("strd r0, r1, [r2, #8]", 4, "multiple", 2, ""),
    ("bx lr", 2, "plain", 0, ""),
    ("bl here", 4, "plain", 0, "calls"),
    ("b.w here", 4, "plain", 0, ""),
    ("beq here", 2, "plain", 0, ""),
    ("tbb [r0, r1]", 4, "load", 0, ""),
]


def assembled(lines: list[str], folder: Path) -> bytes:
    from elftools.elf.elffile import ELFFile

    source = folder / "code.S"
    text = "\n".join(lines)
    source.write_text(f".syntax unified\n.thumb\n.text\nhere:\n{text}\n")
    flags = ["-c", "-Wl,--no-gc-sections"]
    core = arm_flags(core_of(resolve("cortex_m4").soc))
    made = Compiler.zig().compile_cross([source], folder / "code.o", [], core, flags=flags)
    with made.open("rb") as stream:
        return bytes(ELFFile(stream).get_section_by_name(".text").data())


def test_classes_of_what_the_assembler_writes(tmp_path: Path) -> None:
    code = assembled([line for line, *_ in WRITTEN], tmp_path)
    words = [*np.frombuffer(code, "<u2").tolist(), 0]
    at = 0
    for text, size, kind, registers, also in WRITTEN:
        found = decode(words[at], words[at + 1])
        assert (found.bytes, found.kind, found.registers) == (size, kind, registers), text
        assert (found.returns, found.calls) == (also == "returns", also == "calls"), text
        at += size // 2
    assert 2 * at == len(code)


def test_loads_overlap_unless_an_address_depends_on_the_one_before(tmp_path: Path) -> None:
    lines = ["ldr r0, [r1]", "ldr r2, [r3]", "ldr r4, [r2]", "str r4, [r5]", "ldr r0, [r5]"]
    code = assembled([*lines, "nop", "ldr r0, [r5]"], tmp_path)
    entered = np.zeros(len(code) // 2 + 1, np.int64)
    entered[0], entered[7] = 10, -10  # all of it, ten times
    found = executed(code, entered, 2)
    assert found.kinds == Counter(load=30, next_load=20, store=10, plain=10)
    assert found.instructions == 70
    low, high = estimate(found, CYCLES)
    assert low == 30 * 10 + 20 * 1 + 10 * 3 + 10 + 2 * 1000
    assert high == 30 * 20 + 20 * 2 + 10 * 3 + 10 + 2 * 3000


def test_blocks_may_overlap(tmp_path: Path) -> None:
    """An emulator may enter the middle of what it executed as one block before."""
    code = assembled(["nop", "muls r0, r1, r0", "smull r0, r1, r2, r3", "nop"], tmp_path)
    entered = np.array([5, 2, 0, 0, -7, 0], np.int64)
    found = executed(code, entered, 0)
    assert found.kinds == Counter(plain=5, multiply=7, long_multiply=7)


@pytest.mark.parametrize(("what", "low", "high"), [
    (Executed(Counter(plain=4), 0, 1, 0, 1), 4 + 1000 + 5, 4 + 3000 + 5),
    (Executed(Counter(multiple=2), 9, 0, 1, 1), 2 * 100 + 9 + 6 + 1000, 2 * 100 + 9 + 6 + 3000),
    (Executed(Counter(long_multiply=1), 0, 0, 0, 0), 9, 90),
])  # fmt: skip
def test_estimates(what: Executed, low: int, high: int) -> None:
    assert estimate(what, CYCLES) == (low, high)


def test_lines_of_flash_are_waited_for() -> None:
    """For all constants, and at most for all code."""
    what = Executed(Counter(plain=4), 0, 0, 0, 0, fetched=30, loaded=7)
    assert estimate(what, CYCLES) == (4, 4)
    assert estimate(sum_of([what, what]), CYCLES, FlashReads(5, 16, 64, 8)) == (78, 378)


@pytest.mark.parametrize("number", [0, 1, 8])
def test_lines_that_are_kept(number: int) -> None:
    """The counter's lines, beside a list of those used last."""
    rng = np.random.default_rng(number)
    reads = [(int(at), int(size)) for at, size in rng.integers((0, 1), (400, 17), (2000, 2))]
    source = runtime_c() / "emulator" / "count.c"
    path = Compiler.zig().built("emulator-count.so", [source], shared=True)
    lines = (ctypes.c_uint32 * max(number, 1))()
    count = _Count(line_bytes=16, loaded=_Lines(ctypes.addressof(lines), number))
    load = ctypes.CDLL(str(path)).htvm_count_load
    kept: list[int] = []
    missed = 0
    for at, size in reads:
        load(None, 0, ctypes.c_uint64(at), size, ctypes.c_int64(0), ctypes.byref(count))
        for line in range(at // 16, (at + size - 1) // 16 + 1):
            missed += line not in kept
            kept = [line, *(each for each in kept if each != line)][:number]
    assert count.loaded.missed == missed > 0
