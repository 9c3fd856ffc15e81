"""The instruction set of the accelerator as data (Sponner et al., Table 2 and Appendix B).

Everything that knows the instruction set is made from `REGISTERS` and `INSTRUCTIONS`, which are in
``isa.json``: `encode` and `decode`, the disassembler, the C header that driver and simulator
include (`header.py`), and the page of the documentation (`page.py`).

A command stream is a sequence of 32-bit words.  Bits 31 to 24 of a word are its opcode.  `SET`
names a configuration register in bits 7 to 0 and is followed by its new value; every other word is
an instruction, which reads the registers listed in the table, and has flags in bits 23 to 0.
Registers keep their values.

Published are the mnemonics from OP_CONV to OP_DMA_WRITE, their types, that shifts of 32-bit data
exist, and that the CPU writes registers that keep their values.  Registers, encodings, the
requantization (one right shift, which floors, and a clip) and rounding are ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byoc_dory.errors import UnsupportedError

SET = 0x01
"""Opcode of a register write."""

SLOTS = ("weights", "operand 0", "operand 1", "result")
"""What the system addresses in the slot registers belong to, by number."""


@dataclass(frozen=True)
class Register:
    """A configuration register of 32 bits.

    Attributes:
        name: its name; the number is its place in `REGISTERS`.
        meaning: what it holds.
        halves: whether it holds two numbers of 16 bits, the first one above.
    """

    name: str
    meaning: str
    halves: bool = False


_TABLES: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("isa.json").read_text("utf-8")
)

REGISTERS = tuple(Register(**entry) for entry in _TABLES["registers"])

NUMBER = {register.name: number for number, register in enumerate(REGISTERS)}
"""Number of each register by its name."""


@dataclass(frozen=True)
class Flag:
    """A bit of an instruction word that changes what it does."""

    name: str
    bit: int
    meaning: str

    @property
    def mask(self) -> int:
        """The bit's value."""
        return 1 << self.bit


REQUANT = Flag("REQUANT", 0, "the result is int8: clip(sum >> SHIFT); otherwise int32")
AVERAGE = Flag("AVERAGE", 1, "the average instead of the maximum, halves rounded up")
BIAS = Flag("BIAS", 2, "sums start with the biases; otherwise with zero")
FLAGS = (REQUANT, AVERAGE, BIAS)


@dataclass(frozen=True)
class Instruction:
    """An instruction.

    Attributes:
        name: mnemonic.
        opcode: bits 31 to 24 of its word.
        kind: what its cycles are counted as: CONV, DEPTH, REQUANT, OTHER or DMA.
        takes, gives: element types of operands and result.
        reads: names of the registers that it always reads.
        flags: flags that it may have.
        meaning: what it computes.
    """

    name: str
    opcode: int
    kind: str
    takes: str
    gives: str
    reads: tuple[str, ...]
    flags: tuple[Flag, ...]
    meaning: str

    def registers(self, flags: int) -> tuple[str, ...]:
        """Return the registers that it reads with these flags, in the order of `REGISTERS`."""
        names = set(self.reads)
        if flags & REQUANT.mask or self.name == "OP_CONV_RELU":
            names |= {"SHIFT", "CLIP"}
        if flags & BIAS.mask:
            names.add("BIAS")
        return tuple(register.name for register in REGISTERS if register.name in names)


def _instruction(*, reads: Sequence[str], flags: Sequence[str], **rest: Any) -> Instruction:
    own = tuple(flag for flag in FLAGS if flag.name in flags)
    return Instruction(reads=tuple(reads), flags=own, **rest)


INSTRUCTIONS = tuple(_instruction(**entry) for entry in _TABLES["instructions"])

BY_NAME = {instruction.name: instruction for instruction in INSTRUCTIONS}
"""Instructions by mnemonic."""

_BY_OPCODE = {instruction.opcode: instruction for instruction in INSTRUCTIONS}
_WORD = 1 << 32


@dataclass(frozen=True)
class Command:
    """One decoded entry of a command stream.

    Attributes:
        at: index of its first word.
        name: mnemonic, or ``SET``.
        flags: flags of an instruction.
        register, value: of a register write; None and 0 of an instruction.
    """

    at: int
    name: str
    flags: int = 0
    register: str | None = None
    value: int = 0


def pair(high: int, low: int) -> int:
    """Return two numbers of 16 bits as the value of a register with halves."""
    return (high & 0xFFFF) << 16 | (low & 0xFFFF)


def encode(commands: Sequence[Command]) -> list[int]:
    """Return the words of commands; `Command.at` does not matter.

    Raises:
        UnsupportedError: an instruction, register, flag or value does not exist.
    """
    words: list[int] = []
    for command in commands:
        where = f"command {len(words)}"
        if command.register is not None:
            if command.register not in NUMBER:
                raise _unknown(f"there is no register {command.register!r}", where)
            if not -(_WORD // 2) <= command.value < _WORD:
                raise _unknown(f"{command.register} cannot hold {command.value}", where)
            words += [SET << 24 | NUMBER[command.register], command.value % _WORD]
            continue
        if command.name not in BY_NAME:
            raise _unknown(f"there is no instruction {command.name!r}", where)
        instruction = BY_NAME[command.name]
        if command.flags & ~sum(flag.mask for flag in instruction.flags):
            raise _unknown(f"{command.name} has no flags {command.flags:#x}", where)
        words.append(instruction.opcode << 24 | command.flags)
    return words


def decode(words: Sequence[int]) -> Iterator[Command]:
    """Yield the commands of a stream.

    Raises:
        UnsupportedError: an opcode, a register or a flag does not exist, or the last word is a
            register write without its value; the message names the word.
    """
    index = 0
    while index < len(words):
        word, where = words[index], f"word {index}"
        opcode, low = word >> 24, word & 0xFFFFFF
        if opcode == SET:
            if low >= len(REGISTERS):
                raise _unknown(f"register {low} is written, there are {len(REGISTERS)}", where)
            if index + 1 == len(words):
                raise _unknown(f"{REGISTERS[low].name} is written, but the stream ends", where)
            yield Command(index, "SET", register=REGISTERS[low].name, value=words[index + 1])
            index += 2
            continue
        if opcode not in _BY_OPCODE:
            raise _unknown(f"there is no instruction {opcode:#04x}", where)
        instruction = _BY_OPCODE[opcode]
        if low & ~sum(flag.mask for flag in instruction.flags):
            raise _unknown(f"{instruction.name} has no flags {low:#x}", where)
        yield Command(index, instruction.name, flags=low)
        index += 1


def disassemble(words: Sequence[int]) -> Iterator[str]:
    """Yield one line per command: its first word's index, and its text.

    Raises:
        UnsupportedError: as `decode`.
    """
    held: Mapping[str, Register] = {register.name: register for register in REGISTERS}
    for command in decode(words):
        if command.register is not None:
            value = command.value
            shown = f"{value:#x}" if value >= _WORD // 2 else str(value)
            if held[command.register].halves:
                shown = f"{_half(value >> 16)}, {_half(value)}"
            yield f"{command.at:6d}  SET {command.register} = {shown}"
        else:
            names = "".join(f" .{flag.name}" for flag in FLAGS if command.flags & flag.mask)
            yield f"{command.at:6d}  {command.name}{names}"


def _half(value: int) -> int:
    low = value & 0xFFFF
    return low - 0x10000 if low >= 0x8000 else low


def _unknown(what: str, where: str) -> UnsupportedError:
    return UnsupportedError(
        what,
        where=f"command stream, {where}",
        hint="the page on the instruction set lists instructions, registers and flags",
    )
