"""The instruction set of the accelerator as data (Sponner et al., Table 2 and Appendix B).

Everything that knows the instruction set is made from `REGISTERS` and `INSTRUCTIONS`: `encode` and
`decode`, the disassembler, the C header that driver and simulator include (`header.py`), and the
page of the documentation (`page.py`).

A command stream is a sequence of 32-bit words.  Bits 31 to 24 of a word are its opcode.  `SET`
names a configuration register in bits 7 to 0 and is followed by its new value; every other word is
an instruction, which reads the registers listed in the table, and has flags in bits 23 to 0.
Registers keep their values.

Published are the mnemonics from OP_CONV to OP_DMA_WRITE, their types, that shifts of 32-bit data
exist, and that the CPU writes registers that keep their values.  Registers, encodings, the
requantization (one right shift, which floors, and a clip) and rounding are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from byoc_dory.errors import UnsupportedError

__all__ = [
    "AVERAGE",
    "BIAS",
    "BY_NAME",
    "FLAGS",
    "INSTRUCTIONS",
    "NUMBER",
    "REGISTERS",
    "REQUANT",
    "SET",
    "SLOTS",
    "Command",
    "Flag",
    "Instruction",
    "Register",
    "decode",
    "disassemble",
    "encode",
    "pair",
]

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
        signed: whether the value is shown as a signed number.
        halves: whether it holds two numbers of 16 bits, the first one above.
    """

    name: str
    meaning: str
    signed: bool = False
    halves: bool = False


REGISTERS = (
    Register("IN0", "SRAM address of the first operand"),
    Register("IN1", "SRAM address of the second operand"),
    Register("WEIGHTS", "SRAM address of the weights, K x fy x fx x C; depthwise C x fy x fx"),
    Register("BIAS", "SRAM address of the biases, int32 [K], a multiple of 4"),
    Register("OUT", "SRAM address of the result; of int32, a multiple of 4"),
    Register("CHANNELS", "channels of the input that are summed"),
    Register("IN_HEIGHT", "rows of the input"),
    Register("IN_WIDTH", "columns of the input"),
    Register("IN_PIXEL", "bytes from pixel to pixel of the first operand"),
    Register("IN_ROW", "bytes from row to row of the first operand"),
    Register("IN1_PIXEL", "bytes from pixel to pixel of the second operand"),
    Register("IN1_ROW", "bytes from row to row of the second operand"),
    Register("OUT_CHANNELS", "channels of the result"),
    Register("OUT_HEIGHT", "rows of the result"),
    Register("OUT_WIDTH", "columns of the result"),
    Register("OUT_PIXEL", "bytes from pixel to pixel of the result"),
    Register("OUT_ROW", "bytes from row to row of the result"),
    Register("KERNEL", "height and width of the window", halves=True),
    Register("STRIDE", "stride in y and x", halves=True),
    Register("PAD", "zeros above and left of the input; all others follow from sizes", halves=True),
    Register("SHIFT", "bits of a shift, 0 to 31"),
    Register("CLIP", "smallest and largest result of a requantization, int8 each", halves=True),
    Register("ALPHA", "bits of the right shift of negative values (leaky ReLU), 0 to 7"),
    Register("SLOT", "number of the slot whose system address a transfer starts from"),
    Register("OFFSET", "bytes from there"),
    Register("LOCAL", "SRAM address of a transfer"),
    Register("ROWS", "rows of a transfer"),
    Register("BYTES", "bytes of a row"),
    Register("FAR_PITCH", "bytes from row to row in system memory"),
    Register("LOCAL_PITCH", "bytes from row to row in SRAM"),
)

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

_WINDOW = ("IN_HEIGHT", "IN_WIDTH", "KERNEL", "STRIDE", "PAD")
_MAP = ("OUT_CHANNELS", "OUT_HEIGHT", "OUT_WIDTH", "IN_PIXEL", "IN_ROW", "OUT_PIXEL", "OUT_ROW")
_ONE = ("IN0", "OUT", *_MAP)
_TWO = ("IN0", "IN1", "IN1_PIXEL", "IN1_ROW", "OUT", *_MAP)
_CONV = ("IN0", "WEIGHTS", "OUT", "CHANNELS", *_MAP, *_WINDOW)
_MOVE = ("SLOT", "OFFSET", "LOCAL", "ROWS", "BYTES", "FAR_PITCH", "LOCAL_PITCH")


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


INSTRUCTIONS = (
    Instruction(
        "OP_CONV", 0x10, "CONV", "int8", "int32 or int8", _CONV, (REQUANT, BIAS),
        "convolution over all input channels, optionally requantized",
    ),
    Instruction(
        "OP_CONV_RELU", 0x11, "CONV", "int8", "int8", _CONV, (BIAS,),
        "convolution, requantized, negative results become zero",
    ),
    Instruction(
        "OP_DEPTH_CONV", 0x12, "DEPTH", "int8", "int32 or int8",
        tuple(name for name in _CONV if name != "CHANNELS"), (REQUANT, BIAS),
        "depthwise convolution of OUT_CHANNELS channels, optionally requantized",
    ),
    Instruction(
        "OP_MAT_MUL", 0x13, "CONV", "int8", "int32", ("IN0", "WEIGHTS", "OUT", "CHANNELS", *_MAP),
        (BIAS,),
        "product of a matrix, whose rows are the pixels of the operand, with weights K x C",
    ),
    Instruction(
        "OP_ACT_RELU", 0x20, "OTHER", "int8", "int8", _ONE, (), "max(x, 0)",
    ),
    Instruction(
        "OP_ACT_LRELU", 0x21, "OTHER", "int8", "int8", (*_ONE, "ALPHA"), (),
        "x, or x >> ALPHA if it is negative",
    ),
    Instruction(
        "OP_POOL", 0x22, "OTHER", "int8", "int8", (*_ONE, *_WINDOW), (AVERAGE,),
        "maximum, or average, of the elements of each window that are inside the input",
    ),
    Instruction("OP_E_ABS", 0x30, "OTHER", "int8", "int8", _ONE, (), "|x|, at most 127"),
    Instruction("OP_C_MIN", 0x31, "OTHER", "int8", "int8", _TWO, (), "the smaller one"),
    Instruction("OP_C_MAX", 0x32, "OTHER", "int8", "int8", _TWO, (), "the larger one"),
    Instruction(
        "OP_E_ADD", 0x33, "OTHER", "int8", "int8", (*_TWO, "SHIFT", "CLIP"), (),
        "clip((a + b) >> SHIFT)",
    ),
    Instruction(
        "OP_E32_ADD", 0x34, "OTHER", "int32", "int32", _TWO, (), "a + b, which wraps",
    ),
    Instruction(
        "OP_E32_SHR", 0x35, "REQUANT", "int32", "int32 or int8", (*_ONE, "SHIFT"), (REQUANT,),
        "x >> SHIFT, which floors; requantized, clip(x >> SHIFT)",
    ),
    Instruction(
        "OP_E32_SHL", 0x36, "REQUANT", "int32", "int32", (*_ONE, "SHIFT"), (),
        "x << SHIFT, which wraps",
    ),
    Instruction(
        "OP_DMA_READ", 0x40, "DMA", "-", "-", _MOVE, (), "moves rows from system memory to SRAM",
    ),
    Instruction(
        "OP_DMA_WRITE", 0x41, "DMA", "-", "-", _MOVE, (), "moves rows from SRAM to system memory",
    ),
)  # fmt: skip

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
    at = 0
    while at < len(words):
        word, where = words[at], f"word {at}"
        opcode, low = word >> 24, word & 0xFFFFFF
        if opcode == SET:
            if low >= len(REGISTERS):
                raise _unknown(f"register {low} is written, there are {len(REGISTERS)}", where)
            if at + 1 == len(words):
                raise _unknown(f"{REGISTERS[low].name} is written, but the stream ends", where)
            yield Command(at, "SET", register=REGISTERS[low].name, value=words[at + 1])
            at += 2
            continue
        if opcode not in _BY_OPCODE:
            raise _unknown(f"there is no instruction {opcode:#04x}", where)
        instruction = _BY_OPCODE[opcode]
        if low & ~sum(flag.mask for flag in instruction.flags):
            raise _unknown(f"{instruction.name} has no flags {low:#x}", where)
        yield Command(at, instruction.name, flags=low)
        at += 1


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
