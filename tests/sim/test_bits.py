"""Zba, Zbb, Zbs and Zcb: every instruction, as the assembler encodes it, on edges and at random."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from byoc_dory.soc.boards.description import CORES
from byoc_dory.soc.header import render
from byoc_dory.soc.registry import resolve
from htvm.firmware.isa import march, rv32_flags
from htvm.firmware.machine import BARE, SocModel
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from htvm.sim.iss import TrapError, run_elf
from tests.reference.rv32 import MASK, signed
from tests.sim.bare import RAM, assemble

BITS = replace(
    BARE,
    name="bare-bits",
    soc_model=SocModel(
        sources=(runtime_c() / "soc" / "none" / "none_model.c",),
        headers=(("htvm_soc.h", "#define HTVM_CORE_BITS 1\n"),),
    ),
)
EDGES = (0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x8000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)
DATA = RAM + 0x20_0000


def _rotated(value: int, amount: int) -> int:
    amount &= 31
    return (value >> amount | value << (32 - amount)) & MASK


def _sign(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _bytes(value: int) -> bytes:
    return value.to_bytes(4, "little")


BINARY: dict[str, Callable[[int, int], int]] = {
    "sh1add": lambda a, b: 2 * a + b,
    "sh2add": lambda a, b: 4 * a + b,
    "sh3add": lambda a, b: 8 * a + b,
    "andn": lambda a, b: a & ~b,
    "orn": lambda a, b: a | ~b,
    "xnor": lambda a, b: ~(a ^ b),
    "min": lambda a, b: min(signed(a), signed(b)),
    "minu": min,
    "max": lambda a, b: max(signed(a), signed(b)),
    "maxu": max,
    "rol": lambda a, b: _rotated(a, -b),
    "ror": _rotated,
    "bclr": lambda a, b: a & ~(1 << (b & 31)),
    "bext": lambda a, b: a >> (b & 31) & 1,
    "binv": lambda a, b: a ^ 1 << (b & 31),
    "bset": lambda a, b: a | 1 << (b & 31),
    "c.mul": lambda a, b: a * b,
}
UNARY: dict[str, Callable[[int], int]] = {
    "clz": lambda a: 32 - a.bit_length(),
    "ctz": lambda a: len(f"{a:032b}") - len(f"{a:032b}".rstrip("0")),
    "cpop": lambda a: f"{a:b}".count("1"),
    "sext.b": lambda a: _sign(a, 8),
    "sext.h": lambda a: _sign(a, 16),
    "zext.h": lambda a: a & 0xFFFF,
    "orc.b": lambda a: int.from_bytes(bytes(255 * bool(b) for b in _bytes(a)), "little"),
    "rev8": lambda a: int.from_bytes(_bytes(a), "big"),
    "c.zext.b": lambda a: a & 0xFF,
    "c.sext.b": lambda a: _sign(a, 8),
    "c.zext.h": lambda a: a & 0xFFFF,
    "c.sext.h": lambda a: _sign(a, 16),
    "c.not": lambda a: ~a,
}
SHIFTS = {"rori": "ror", "bclri": "bclr", "bexti": "bext", "binvi": "binv", "bseti": "bset"}


def _cases() -> list[tuple[str, int, int, int]]:
    """Text of an instruction on s0 (and s1), its operands, and the result in s0."""
    rng = random.Random(7)
    values = (*EDGES, *(rng.getrandbits(32) for _ in range(6)))
    cases = []
    for name, of_two in BINARY.items():
        text = f"{name} s0, s1" if name == "c.mul" else f"{name} s0, s0, s1"
        cases += [(text, a, b, of_two(a, b)) for a in values for b in values]
    for name, of_one in UNARY.items():
        text = f"{name} s0" if name.startswith("c.") else f"{name} s0, s0"
        cases += [(text, a, 0, of_one(a)) for a in values]
    for name, like in SHIFTS.items():
        cases += [
            (f"{name} s0, s0, {n}", a, 0, BINARY[like](a, n))
            for a in values
            for n in (0, 1, 13, 31)
        ]
    return cases


def _program(tests: list[list[str]]) -> str:
    """Text of a program that executes tests, each of which leaves a word in s0."""
    lines = [".option arch, +zba, +zbb, +zbs, +zcb", ".globl _start", "_start:"]
    lines += [f"    li s2, {DATA:#x}"]
    for test in tests:
        lines += [f"    {line}" for line in (*test, "sw s0, 0(s2)", "addi s2, s2, 4")]
    lines += ["    li a0, 0x5555", "    li a1, 0x100000", "    sw a0, 0(a1)"]
    return "\n".join(lines) + "\n"


def _run(tests: list[list[str]], folder: Path, compiler: Compiler) -> list[int]:
    elf = assemble(_program(tests), folder, compiler)
    result = run_elf(elf, BITS, peeks={DATA: 4 * len(tests)}, compiler=compiler)
    return list(struct.unpack(f"<{len(tests)}I", result.memory[DATA]))


def test_operations(tmp_path: Path, compiler: Compiler) -> None:
    cases = _cases()
    tests = [[f"li s0, {a:#x}", f"li s1, {b:#x}", text] for text, a, b, _ in cases]
    for case, found in zip(cases, _run(tests, tmp_path, compiler), strict=True):
        assert found == case[3] & MASK, (case[0], hex(case[1]), hex(case[2]))


def test_accesses_of_16_bits(tmp_path: Path, compiler: Compiler) -> None:
    """Loads of bytes and halfwords at every offset, and stores between two others."""
    scratch, value = DATA - 0x100, 0x80C1_F2A3
    ready = [f"li s1, {scratch:#x}", f"li s0, {value:#x}", "sw s0, 0(s1)", "sw s0, 4(s1)"]
    tests, expected = [], []
    for offset in range(4):
        tests.append([*ready, f"c.lbu s0, {offset}(s1)"])
        expected.append(value >> 8 * offset & 0xFF)
        tests.append([*ready, "li a0, 0x5e", f"c.sb a0, {offset}(s1)", "lw s0, 0(s1)"])
        expected.append(value & ~(0xFF << 8 * offset) | 0x5E << 8 * offset)
    for offset in (0, 2):
        half = value >> 8 * offset & 0xFFFF
        tests.append([*ready, f"c.lhu s0, {offset}(s1)"])
        tests.append([*ready, f"c.lh s0, {offset}(s1)"])
        expected += [half, _sign(half, 16) & MASK]
        tests.append([*ready, "li a0, 0x5e1d", f"c.sh a0, {offset}(s1)", "lw s0, 0(s1)"])
        expected.append(value & ~(0xFFFF << 8 * offset) | 0x5E1D << 8 * offset)
    assert _run(tests, tmp_path, compiler) == expected


@pytest.mark.parametrize("text", ["sh2add s0, s0, s1", "clz s0, s0", "bseti s0, s0, 3", "c.not s0"])
def test_other_cores_have_none(text: str, tmp_path: Path, compiler: Compiler) -> None:
    elf = assemble(_program([[text]]), tmp_path, compiler)
    with pytest.raises(TrapError, match="illegal instruction"):
        run_elf(elf, compiler=compiler)


def test_the_core_of_a_board_has_them() -> None:
    soc = resolve("pico-2-riscv").soc
    assert soc.host == CORES["hazard3"]
    assert "#define HTVM_CORE_BITS 1" in render(soc)
    assert "HTVM_CORE_BITS" not in render(resolve("rv32imac").soc)


def test_gcc_compiles_for_the_standard_part() -> None:
    isa = CORES["hazard3"].isa
    assert rv32_flags(isa, gcc=True)[0] == "-march=rv32imac"
    assert march(isa) == "rv32imac_zicsr"
    assert "+zba+zbb+zbs+zcb" in "".join(rv32_flags(isa))
