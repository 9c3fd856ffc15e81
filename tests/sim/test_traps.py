"""Programs that go wrong end with a message that says what and where."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from htvm.errors import SimulationError
from htvm.firmware.machine import BARE
from htvm.sim.iss import TrapError, main, run_elf
from tests.reference import rv32 as rv
from tests.sim.bare import RAM, make_elf, words

NOP = 0x13


def run(folder: Path, code: bytes, **options: object) -> None:
    elf = folder / "p.elf"
    elf.write_bytes(make_elf([(RAM, code)]))
    run_elf(elf, **options)  # type: ignore[arg-type]


TRAPS = {
    "zeros": (words(NOP, 0), r"illegal instruction \(pc 0x80000004, instruction 0x0000\)"),
    "unknown": (words(NOP, 0x53), r"illegal instruction \(pc 0x80000004, instruction 0x00000053"),
    "load": (rv.load("lw", 5, 0, 16).code, r"load of 4 bytes from 0x00000010.*pc 0x80000000"),
    "load of a byte": (rv.load("lbu", 5, 0, 16).code, "load of 1 bytes from 0x00000010"),
    "store": (rv.store("sh", 5, 0, 16).code, "store of 2 bytes to 0x00000010"),
    "load across the end": (
        rv.lui(5, 0x80400).code + rv.load("lw", 5, 5, -2).code,
        "load of 4 bytes from 0x803ffffe",
    ),
    "store to exit, not a word": (
        rv.lui(5, 0x100).code + rv.store("sb", 5, 5, 0).code,
        "store of 1 bytes to 0x00100000",
    ),
    "jump out of RAM": (rv.i_type(0x67, 0, 0, 0, 64), "instruction fetch from 0x00000040.*no RAM"),
    "branch out of RAM": (rv.b_type(0, 0, 0, -8), "instruction fetch from 0x7ffffff8"),
    "ecall": (words(0x73), "ecall"),
    "ebreak": (rv.half(0x9002), "ebreak"),
    "wfi": (words(0x10500073), "wfi would wait for ever"),
    "mret": (words(0x30200073), "illegal instruction"),
    "unknown CSR": (rv.i_type(0x73, 2, 5, 0, 0x7C0), "illegal instruction"),
    "write to a read-only CSR": (rv.i_type(0x73, 1, 5, 5, 0xC00 - 0x1000), "illegal instruction"),
    "set bits of a read-only CSR": (rv.i_type(0x73, 6, 5, 1, 0xF14 - 0x1000), "illegal instr"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str, tmp_path: Path) -> None:
    code, message = TRAPS[name]
    with pytest.raises(TrapError, match=message):
        run(tmp_path, code)


def test_running_over_the_end_of_ram(tmp_path: Path) -> None:
    machine = replace(BARE, ram=((RAM, 16),))
    with pytest.raises(TrapError, match="over the end of RAM"):
        run(tmp_path, words(NOP, NOP, NOP, NOP), machine=machine)


def test_several_rams(tmp_path: Path) -> None:
    """Jumps, loads and stores between RAMs; neighbours do not make one RAM."""
    second = RAM + 0x100
    machine = replace(BARE, ram=((RAM, 0x100), (second, 0x100)))
    there = rv.lui(5, RAM >> 12).code + rv.i_type(0x67, 0, 1, 5, 0x100)  # jalr x1, 0x100(x5)
    back = rv.load("lw", 7, 5, 0x40).code + rv.immediate("add", 7, 7, 1).code
    back += rv.store("sw", 7, 5, 0x180).code + rv.i_type(0x67, 0, 0, 1, 0)
    end = rv.load("lw", 8, 5, 0x180).code + rv.lui(6, 0x100).code + rv.store("sw", 8, 6, 0).code
    elf = tmp_path / "p.elf"
    elf.write_bytes(make_elf([(RAM, there + end), (second, back), (RAM + 0x40, rv.word(41))]))
    assert run_elf(elf, machine).exit_code == 42
    elf.write_bytes(make_elf([(RAM, rv.lui(5, RAM >> 12).code + rv.load("lw", 6, 5, 0xFE).code)]))
    with pytest.raises(TrapError, match="load of 4 bytes from 0x800000fe"):
        run_elf(elf, machine)


def test_overlapping_rams(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match="--ram: unknown option, or its value"):
        run(tmp_path, words(0), machine=replace(BARE, ram=((RAM, 64), (RAM + 32, 64))))


def test_instruction_cut_off_by_the_end_of_ram(tmp_path: Path) -> None:
    machine = replace(BARE, ram=((RAM, 6),))
    with pytest.raises(TrapError, match="over the end of RAM"):
        run(tmp_path, words(NOP) + b"\x13\x00", machine=machine)


def test_endless_loop(tmp_path: Path) -> None:
    with pytest.raises(TrapError, match="not finished after 1000 cycles") as caught:
        run(tmp_path, rv.j_type(0, 0), max_cycles=1000)
    assert caught.value.cycles >= 1000 and caught.value.pc == RAM


def test_what_was_printed_before_is_kept(tmp_path: Path) -> None:
    code = rv.immediate("add", 5, 0, ord("x")).code + rv.lui(6, 0x10000).code
    code += rv.store("sb", 5, 6, 0).code + words(0)
    with pytest.raises(TrapError) as caught:
        run(tmp_path, code)
    assert caught.value.output == b"x"


def test_stack_overflow(tmp_path: Path) -> None:
    code = rv.lui(2, 0x80001).code + rv.immediate("add", 2, 2, -512).code
    code += rv.immediate("add", 2, 2, -16).code
    with pytest.raises(TrapError, match="stack overflow: .* 0x80000df0, below .* 0x80000e00"):
        run(tmp_path, code, stack=(RAM + 0xE00, RAM + 0x1000))


def test_stack_high_water_mark(tmp_path: Path) -> None:
    code = rv.lui(2, 0x80001).code + rv.immediate("add", 2, 2, -64).code
    code += rv.immediate("add", 2, 2, 64).code + rv.immediate("add", 5, 0, -32).code
    code += rv.binary("add", 2, 2, 5).code
    code += rv.lui(6, 0x100).code + rv.store("sw", 0, 6, 0).code
    elf = tmp_path / "p.elf"
    elf.write_bytes(make_elf([(RAM, code)]))
    assert run_elf(elf, stack=(RAM + 0xE00, RAM + 0x1000)).stack_used == 64


@pytest.mark.parametrize(
    ("word", "code"),
    [(0x5555, 0), (0x0007_3333, 7), (0x3333, 1), (0, 0), (3, 3), (0x1_5556, 0x15556)],
)
def test_exit_codes(word: int, code: int, tmp_path: Path) -> None:
    elf = tmp_path / "p.elf"
    low = rv.signed(word << 20) >> 20
    program = rv.lui(5, (word - low) >> 12 & 0xFFFFF).code + rv.immediate("add", 5, 5, low).code
    program += rv.lui(6, 0x100).code + rv.store("sw", 5, 6, 0).code
    elf.write_bytes(make_elf([(RAM, program)]))
    assert run_elf(elf).exit_code == code


def test_modified_code_runs_after_fence_i(tmp_path: Path) -> None:
    """Twice through an instruction that the first round overwrites, with and without fence.i."""
    for fence, expected in ((0x0000100F, 2), (0x0000000F, 1)):
        change = [
            rv.load("lw", 6, 5, 40).code,  # x5 = RAM
            rv.store("sw", 6, 5, 8).code,  # over the instruction at 8
            fence.to_bytes(4, "little"),
            rv.immediate("add", 8, 8, 1).code,
            rv.immediate("add", 9, 0, 2).code,
            rv.b_type(1, 8, 9, -24),
        ]
        code = rv.lui(5, 0x80000).code + rv.immediate("add", 8, 0, 0).code
        code += rv.immediate("add", 7, 0, 1).code + b"".join(change)
        code += rv.j_type(0, 8) + rv.immediate("add", 7, 0, 2).code
        code += rv.lui(6, 0x100).code + rv.store("sw", 7, 6, 0).code
        elf = tmp_path / "p.elf"
        elf.write_bytes(make_elf([(RAM, code)]))
        assert run_elf(elf, max_cycles=10_000).exit_code == expected


def test_not_a_program(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("hello")
    with pytest.raises(SimulationError, match="not an ELF file"):
        run_elf(text)
    with pytest.raises(SimulationError, match="cannot be opened"):
        run_elf(tmp_path / "missing")


def test_poke_outside_of_ram(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match="does not fit into RAM"):
        run(tmp_path, words(0), pokes={RAM + (4 << 20) - 1: b"ab"})


def test_peek_outside_of_ram(tmp_path: Path) -> None:
    code = rv.lui(6, 0x100).code + rv.store("sw", 0, 6, 0).code
    with pytest.raises(SimulationError, match="not in RAM"):
        run(tmp_path, code, peeks={0x10: 4})


def test_command_line_has_one_message_and_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elf = tmp_path / "p.elf"
    elf.write_bytes(make_elf([(RAM, words(0))]))
    assert main([str(elf)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: illegal instruction")
    assert main([str(tmp_path / "missing")]) == 2
    assert main([]) == 2


def test_importing_the_simulator_is_light() -> None:
    code = (
        "import sys, htvm.sim.iss; print([m for m in ('tvm', 'numpy', 'pulp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
