"""Each instruction against an independent model, on random operands."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htvm.sim.iss import IssResult, run_elf
from tests.reference import rv32 as rv
from tests.reference.rv32 import Instruction, State
from tests.sim.bare import RAM, make_elf

DATA = RAM + 0x30_0000  # what the instructions under test may load and store
DATA_BYTES = 1024
POINTER = DATA + DATA_BYTES // 2  # held by sp and x8, so that offsets of both signs stay inside
REGISTERS = RAM + 0x30_2000  # values before, then values after

EDGES = (0, 1, 2, 3, 31, 32, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFF, 0xFFFF_FFFE)
values = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**32 - 1))
any_register = st.integers(0, 31)
target = any_register.filter(lambda r: r not in (2, 8))
short = st.integers(8, 15)
short_target = st.integers(9, 15)
imm12 = st.integers(-2048, 2047)
imm6 = st.integers(-32, 31)
amount = st.integers(0, 31)
offset = st.integers(-500, 500)

thirty_two_bit = st.one_of(
    st.builds(rv.binary, st.sampled_from(sorted(rv.BINARY)), target, any_register, any_register),
    st.builds(
        rv.immediate,
        st.sampled_from(["add", "slt", "sltu", "xor", "or", "and"]),
        target,
        any_register,
        imm12,
    ),
    st.builds(rv.immediate, st.sampled_from(["sll", "srl", "sra"]), target, any_register, amount),
    st.builds(rv.lui, target, st.integers(0, 2**20 - 1)),
    st.builds(rv.load, st.sampled_from(sorted(rv.LOADS)), target, st.sampled_from([2, 8]), offset),
    st.builds(
        rv.store, st.sampled_from(sorted(rv.STORES)), any_register, st.sampled_from([2, 8]), offset
    ),
)
sixteen_bit = st.one_of(
    st.builds(rv.c_li, target.filter(bool), imm6),
    st.builds(rv.c_addi, target.filter(bool), imm6.filter(bool)),
    st.builds(rv.c_lui, target.filter(bool), imm6.filter(bool)),
    st.builds(rv.c_slli, target.filter(bool), st.integers(1, 31)),
    st.builds(rv.c_mv, target.filter(bool), st.integers(1, 31)),
    st.builds(rv.c_add, target.filter(bool), st.integers(1, 31)),
    st.builds(rv.c_arithmetic, st.sampled_from(["sub", "xor", "or", "and"]), short_target, short),
    st.builds(rv.c_immediate, st.sampled_from(["srl", "sra"]), short_target, st.integers(1, 31)),
    st.builds(rv.c_immediate, st.just("and"), short_target, imm6),
    st.builds(rv.c_lw, short_target, st.just(8), st.integers(0, 31).map(lambda n: 4 * n)),
    st.builds(rv.c_sw, short, st.just(8), st.integers(0, 31).map(lambda n: 4 * n)),
    st.builds(rv.c_lwsp, target.filter(bool), st.integers(0, 63).map(lambda n: 4 * n)),
    st.builds(rv.c_swsp, any_register, st.integers(0, 63).map(lambda n: 4 * n)),
    st.builds(rv.c_addi4spn, short_target, st.integers(1, 255).map(lambda n: 4 * n)),
)


def run_code(code: bytes, registers: list[int], memory: bytes) -> IssResult:
    """Run code between loading all registers and saving them; peek registers and data."""
    before = [rv.lui(31, REGISTERS >> 12).code]
    before += [rv.load("lw", r, 31, 4 * r).code for r in range(1, 32)]
    mscratch = 0x340
    after = [rv.i_type(0x73, 1, 0, 31, mscratch), rv.lui(31, REGISTERS >> 12).code]
    after += [rv.store("sw", r, 31, 128 + 4 * r).code for r in range(1, 31)]
    after += [rv.i_type(0x73, 2, 1, 0, mscratch), rv.store("sw", 1, 31, 128 + 4 * 31).code]
    after += [
        rv.lui(1, 0x100).code,
        rv.lui(2, 0x5).code,
        rv.immediate("add", 2, 2, 0x555).code,
        rv.store("sw", 2, 1, 0).code,
    ]
    program = b"".join(before) + code + b"".join(after)
    assert RAM + len(program) <= DATA
    elf = make_elf([(RAM, program)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.elf"
        path.write_bytes(elf)
        return run_elf(
            path,
            pokes={REGISTERS: struct.pack("<32I", *registers), DATA: memory},
            peeks={REGISTERS + 128: 128, DATA: DATA_BYTES},
            max_cycles=100_000,
        )


def start_state(registers: list[int], memory: bytes) -> State:
    x = [0, *registers[1:]]
    x[2] = x[8] = POINTER
    return State(x, DATA, bytearray(memory))


def check(program: list[Instruction], registers: list[int], memory: bytes) -> None:
    state = start_state(registers, memory)
    result = run_code(b"".join(i.code for i in program), state.x, memory)
    for instruction in program:
        instruction.effect(state)
    after = list(struct.unpack("<32I", result.memory[REGISTERS + 128]))
    text = "; ".join(i.text for i in program)
    wrong = {r: (hex(after[r]), hex(state.x[r])) for r in range(1, 32) if after[r] != state.x[r]}
    assert not wrong, text
    assert result.memory[DATA] == bytes(state.memory), text


states = st.tuples(st.lists(values, min_size=32, max_size=32), st.binary(min_size=64, max_size=64))


@settings(max_examples=120, deadline=None)
@given(st.lists(st.one_of(thirty_two_bit, sixteen_bit), min_size=40, max_size=120), states)
def test_straight_code(program: list[Instruction], state: tuple[list[int], bytes]) -> None:
    registers, pattern = state
    check(program, registers, pattern * (DATA_BYTES // 64))


def test_stack_pointer() -> None:
    """sp takes part in everything: the simulator treats what writes it apart."""
    program = [rv.immediate("add", 9, 0, 100)]
    steps = [rv.c_addi16sp(16 * n) for n in range(-32, 32) if n]
    steps += [rv.immediate("add", 2, 2, 5), rv.binary("add", 2, 2, 9), rv.binary("sub", 2, 9, 2)]
    steps += [rv.c_mv(2, 9), rv.c_add(2, 9), rv.binary("xor", 2, 2, 9), rv.lui(2, 5)]
    steps += [rv.c_li(2, 3), rv.c_addi(2, -3), rv.c_slli(2, 3), rv.load("lh", 2, 8, 4)]
    for number, step in enumerate(steps):
        program += [rv.binary("add", 2, 8, 0), step, rv.store("sw", 2, 8, 4 * number - 500)]
    check(program, [0] * 32, bytes(range(256)) * (DATA_BYTES // 256))


@pytest.mark.parametrize("name", sorted(rv.BINARY))
def test_operation_on_all_edges(name: str) -> None:
    """Every pair of extreme operands, so that no corner depends on luck."""
    pairs = [(a, b) for a in EDGES for b in EDGES]
    code = b""
    for index in range(len(pairs)):
        code += rv.load("lw", 3, 8, 8 * index - 512).code
        code += rv.load("lw", 4, 8, 8 * index + 4 - 512).code
        code += rv.binary(name, 5, 3, 4).code
        code += rv.store("sw", 5, 8, 8 * index - 512).code
    memory = b"".join(struct.pack("<2I", a, b) for a, b in pairs).ljust(DATA_BYTES, b"\0")
    result = run_code(code, start_state([0] * 32, memory).x, memory)
    for index, (a, b) in enumerate(pairs):
        got = struct.unpack_from("<I", result.memory[DATA], 8 * index)[0]
        assert got == rv.BINARY[name](a, b) & rv.MASK, (name, hex(a), hex(b))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(rv.CONDITIONS)), st.lists(st.tuples(values, values), min_size=8))
def test_branches(name: str, pairs: list[tuple[int, int]]) -> None:
    """x7 collects a bit for every branch not taken, forwards over one instruction."""
    f3, holds = rv.CONDITIONS[name]
    pairs = pairs[:24]
    code, expected = rv.immediate("add", 7, 0, 0).code, 0
    for bit, (a, b) in enumerate(pairs):
        for register, value in ((5, a), (6, b)):
            low = rv.signed(value << 20) >> 20
            code += rv.lui(register, ((value - low) & rv.MASK) >> 12).code
            code += rv.immediate("add", register, register, low).code
        code += rv.immediate("add", 9, 0, 1).code + rv.immediate("sll", 9, 9, bit).code
        code += rv.b_type(f3, 5, 6, 8)
        code += rv.binary("or", 7, 7, 9).code
        expected |= 0 if holds(a, b) else 1 << bit
    result = run_code(code, start_state([0] * 32, bytes(DATA_BYTES)).x, bytes(DATA_BYTES))
    assert struct.unpack_from("<I", result.memory[REGISTERS + 128], 4 * 7)[0] == expected


NEAR = [12, 18, 34, 66, 130, 254]
JUMPS = {
    "c.beqz": NEAR,
    "c.bnez": NEAR,
    "c.j": [*NEAR, 514, 1026],
    "c.jal": [*NEAR, 514, 1026],
    "beq": [*NEAR, 514, 1026, 2050],
    "jalr": [*NEAR, 514, 1026],
    "jal": [*NEAR, 514, 1026, 2050, 4098, 65_538, 524_290],
}
"""Distances that together set each bit of the offset's field."""


def jump(kind: str, step: int) -> bytes:
    """A jump that is taken if x9 is 0 and x10 is not."""
    if kind == "jalr":
        auipc = 0x17 | 11 << 7  # x11 = pc
        return rv.word(auipc) + rv.i_type(0x67, 0, 1, 11, step)
    return {
        "c.beqz": lambda: rv.c_branch(True, 9, step),
        "c.bnez": lambda: rv.c_branch(False, 10, step),
        "c.j": lambda: rv.c_jump(False, step),
        "c.jal": lambda: rv.c_jump(True, step),
        "beq": lambda: rv.b_type(0, 9, 9, step),
        "jal": lambda: rv.j_type(1, step),
    }[kind]()


@pytest.mark.parametrize(("kind", "step"), [(k, s) for k, steps in JUMPS.items() for s in steps])
def test_jump_distances(kind: str, step: int) -> None:
    """Forwards by ``step``, backwards to behind the first jump, and from there to the end.

    In between lie illegal instructions, so that a distance off by a bit traps.
    """
    there = jump(kind, step)
    back = jump(kind, len(there) - step)
    out = rv.j_type(0, step + len(back) - len(there))
    code = (there + out).ljust(step, b"\0") + back
    registers = start_state([0] * 32, bytes(DATA_BYTES)).x
    registers[10] = 1
    assert run_code(code, registers, bytes(DATA_BYTES)).exit_code == 0
