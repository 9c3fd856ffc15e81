"""Watching the stores of many harts: who stored last, where, and by whose order."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from htvm.firmware.elf import read_elf
from htvm.firmware.machine import Machine
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import run_elf
from htvm.sim.look import Look, Range, Store, Watch
from tests.sim import harts, pipelines
from tests.sim.harts import CONTROL, END, L1, SLEEP
from tests.sim.test_harts import DATA, TOGETHER

HARTS = 9
WORDS = 4
FAR = 0x8008_0000
ALL = 1 << 62


@dataclass(frozen=True)
class Kind:
    """One kind of harts: its machine, assembler, and ways to store a0 to the word at a1."""

    machine: Callable[[int], Machine]
    assemble: Callable[[str, Path, Compiler], Path]
    stores: tuple[str, ...]


PLAIN = ("sw a0, 0(a1)", "sh a0, 0(a1)", "sw a0, 0(a1)")
KINDS = {
    "scoreboard": Kind(
        harts.machine,
        harts.assemble,
        (*PLAIN, "amoswap.w a2, a0, (a1)", "lr.w a2, (a1); nop; @sc.w a2, a0, (a1)"),
    ),
    "pipeline": Kind(pipelines.machine, pipelines.assemble, (*PLAIN, "cv.sw a0, (a1), 4")),
}
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


def random_stores(seed: int, stores: tuple[str, ...], place: int) -> str:
    """Stores of all harts to a few words, each of its hart's number and its place in the text."""
    rng = random.Random(seed)
    lines = []
    for site in range(30):
        # Some harts wait: otherwise the last to store would always be the same.
        lines += [f"li t1, {rng.randrange(1, 9)}", "mul t1, t1, s0", "remu t1, t1, s3"]
        lines += ["3: addi t1, t1, -1", "bgtz t1, 3b"] if rng.random() < 0.7 else []
        lines += [f"li a1, {place + 8 * rng.randrange(WORDS):#x}"]
        lines += [f"li a0, {site << 8}", "or a0, a0, s0"]
        text = rng.choice(stores)
        text = text.replace("@", f".globl site_{site}; site_{site}: ")
        lines += text.split("; ") if "site" in text else [
            f".globl site_{site}", f"site_{site}:", text
        ]  # fmt: skip
    return "\n".join([f"li s3, {rng.randrange(5, 40)}", *lines])


@EACH
@pytest.mark.parametrize("place", [DATA, FAR], ids=["L1", "L2"])
@pytest.mark.parametrize("seed", range(3))
def test_memory_names_its_last_writer(
    kind: Kind, place: int, seed: int, tmp_path: Path, compiler: Compiler
) -> None:
    body = random_stores(seed, kind.stores, place)
    elf = kind.assemble(TOGETHER.format(mask=(1 << HARTS) - 1, body=body), tmp_path, compiler)
    board, peeks = kind.machine(HARTS), {place: 8 * WORDS}
    look = Look(watches=tuple(Watch(Range(place + 8 * i, 2), ALL) for i in range(WORDS)))
    plain = run_elf(elf, board, peeks=peeks, compiler=compiler)
    watched = run_elf(elf, board, peeks=peeks, compiler=compiler, look=look)
    assert replace(watched, seen=None) == plain
    assert watched.seen is not None
    symbols, seen = read_elf(elf), watched.seen.last
    for i, word in enumerate(struct.unpack(f"<{2 * WORDS}I", watched.memory[place])[::2]):
        store = seen[i]
        assert store is not None and store.address == place + 8 * i
        assert store.hart == word & 0xFF
        assert store.pcs[0] == symbols.symbols[f"site_{word >> 8 & 0xFF}"].address


def earlier_stores(
    elf: Path, board: Machine, word: Range, until: int, compiler: Compiler
) -> list[Store]:
    """All stores to a word, the last first: each is watched up to the one that was found before."""
    found: list[Store] = []
    while True:
        look = Look(watches=(Watch(word, until),))
        seen = run_elf(elf, board, compiler=compiler, look=look).seen
        assert seen is not None
        (last,) = seen.last
        if last is None:
            return found
        assert last.cycle < until
        found.append(last)
        until = last.cycle


@EACH
def test_stores_before_a_cycle(kind: Kind, tmp_path: Path, compiler: Compiler) -> None:
    """Hart h stores 40 cycles or more after hart h - 1, from the bottom of h calls and jumps."""
    body = """
    li t1, 40
    mul t1, t1, s0
3:  addi t1, t1, -1
    bgtz t1, 3b
    call outer
back:
    j 4f
outer:
    mv s4, ra
    bnez s0, 5f
    j inner
5:  jal ra, inner
    mv ra, s4
    ret
.globl inner
inner:
    sb s0, 1(s2)
    ret
4:
"""
    elf = kind.assemble(TOGETHER.format(mask=(1 << HARTS) - 1, body=body), tmp_path, compiler)
    symbols = read_elf(elf)
    found = earlier_stores(elf, kind.machine(HARTS), Range(DATA, 4), ALL, compiler)
    assert [store.hart for store in found] == list(range(HARTS))[::-1]
    inner = symbols.symbols["inner"].address
    for store in found:
        assert store.pcs[0] == inner
        # Hart 0 jumps, which looks like a part of its function: no names of functions were given.
        assert len(store.pcs) == (2 if store.hart == 0 else 3)


ORDERS = f"""
.globl _start
_start:
    csrr s0, mhartid
    li s1, {CONTROL:#x}
    li s2, {L1 + 0x4000:#x}
    bnez s0, worker
    li s3, 2                # a bit: hart 1
    jal ra, first
    jal ra, second
    li t1, 400
3:  addi t1, t1, -1
    bgtz t1, 3b
    jal ra, third
    li t1, 400
4:  addi t1, t1, -1
    bgtz t1, 4b
{END}
first:
.globl wake_1
wake_1:
    sw s3, 8(s1)
    ret
second:                     # while hart 1 still works
.globl wake_2
wake_2:
    sw s3, 8(s1)
    ret
third:
.globl wake_3
wake_3:
    sw s3, 8(s1)
    ret
worker:
    li t3, 1
    bne s0, t3, sleep
5:  wfi
    li t1, 50
6:  addi t1, t1, -1
    bgtz t1, 6b
    sw s0, 0(s2)
    addi s2, s2, 4
    j 5b
sleep:
{SLEEP}
"""


@EACH
def test_whose_order_it_was(kind: Kind, tmp_path: Path, compiler: Compiler) -> None:
    elf = kind.assemble(ORDERS, tmp_path, compiler)
    symbols = read_elf(elf)
    wakes = [symbols.symbols[f"wake_{n}"].address for n in (1, 2, 3)]
    look = Look(
        watches=tuple(Watch(Range(DATA + 4 * n, 4), ALL) for n in range(4)), wakes=(3, 1, 2, 4)
    )
    seen = run_elf(elf, kind.machine(HARTS), compiler=compiler, look=look).seen
    assert seen is not None
    assert seen.last[3] is None
    for number, wake in enumerate(wakes):
        store = seen.last[number]
        assert store is not None and store.hart == 1
        assert store.order[0] == wake and len(store.order) == 2
    assert [(w.hart, w.number, w.pcs[0]) for w in seen.wakes] == [
        (1, n, wakes[n - 1]) for n in (3, 1, 2)
    ]
    assert seen.woken == (0, 3, *[0] * (HARTS - 2))
