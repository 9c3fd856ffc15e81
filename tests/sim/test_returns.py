"""Recording memory when functions return: the calls of a list, in their order, on all cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from htvm.errors import SimulationError
from htvm.firmware.elf import read_elf
from htvm.firmware.machine import BARE, Machine
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import IssResult, run_elf
from htvm.sim.look import Call, Look, Range
from tests.sim import bare, harts, pipelines
from tests.sim.test_harts import DATA, TOGETHER

TURNS = 5
WORK = f"""
    li s3, {TURNS}
5:  jal ra, first
    la t1, second
    jalr ra, t1
    addi s3, s3, -1
    bgtz s3, 5b
    j 6f
.globl first
first:
    sb s3, 0(s2)
    ret
.globl second
second:
    mv s4, ra
    sb s3, 1(s2)
    call third
    mv ra, s4
    ret
third:
    sb zero, 2(s2)
    j 7f
7:  sb s3, 2(s2)
    ret
6:
"""
AT = 0x8001_0000

ALONE = f"""
.globl _start
_start:
    li s2, {AT:#x}
    {WORK}
    li a0, 0x5555
    li a1, 0x100000
    sw a0, 0(a1)
"""

Kind = tuple[Machine, Callable[[str, Path, Compiler], Path], str, int]
KINDS: dict[str, Kind] = {
    "alone": (BARE, bare.assemble, ALONE, AT),
    "scoreboard": (harts.machine(1), harts.assemble, TOGETHER.format(mask=1, body=WORK), DATA),
    "pipeline": (
        pipelines.machine(1),
        pipelines.assemble,
        TOGETHER.format(mask=1, body=WORK),
        DATA,
    ),
}
EACH = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


def run_with(
    kind: Kind, folder: Path, compiler: Compiler, calls: list[tuple[str, int, int]]
) -> tuple[IssResult, IssResult]:
    """Run plainly and with calls: function, the first of its bytes and how many."""
    machine, assemble, text, at = kind
    elf = assemble(text, folder, compiler)
    symbols = read_elf(elf).symbols
    listed = tuple(
        Call(symbols[name].address, Range(at + first, size)) for name, first, size in calls
    )
    return (
        run_elf(elf, machine, compiler=compiler),
        run_elf(elf, machine, compiler=compiler, look=Look(calls=listed)),
    )


@EACH
def test_each_return_leaves_what_memory_has_then(
    kind: Kind, tmp_path: Path, compiler: Compiler
) -> None:
    """Also behind calls of others and jumps; nothing is recorded for a range of no bytes."""
    each = [("first", 0, 1), ("second", 0, 3), ("first", 7, 0)]
    plain, seen = run_with(kind, tmp_path, compiler, (each + [("second", 1, 2)]) * 2)
    assert replace(seen, seen=None) == plain and seen.seen is not None
    cycles, left = zip(*seen.seen.returns, strict=True)
    turn = TURNS
    expected = []
    for _ in range(2):
        expected += [bytes([turn]), bytes([turn] * 3), b"", bytes([turn - 1] * 2)]
        turn -= 2
    assert list(left) == expected
    assert list(cycles) == sorted(set(cycles)) and cycles[-1] < plain.cycles


@EACH
def test_calls_that_never_come(kind: Kind, tmp_path: Path, compiler: Compiler) -> None:
    calls = [("second", 0, 3)] * (TURNS + 3)
    _, seen = run_with(kind, tmp_path, compiler, calls)
    assert seen.seen is not None
    assert [data[0] for _, data in seen.seen.returns] == list(range(TURNS, 0, -1))


def test_a_range_that_is_no_memory(tmp_path: Path, compiler: Compiler) -> None:
    with pytest.raises(SimulationError, match="a range is no memory"):
        run_with(KINDS["alone"], tmp_path, compiler, [("first", 1 << 29, 4)])
