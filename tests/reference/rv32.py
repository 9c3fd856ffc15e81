"""A model of RV32IMC: encoders, and the meaning of each instruction in plain Python.

An independent definition: it shares no code with the product, nor with the simulator's C.  An
instruction is a bit pattern together with a function on a state, written from the ISA manual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

MASK = 0xFFFF_FFFF

Effect = Callable[["State"], None]


@dataclass
class State:
    """Registers and a piece of memory that starts at ``base``."""

    x: list[int]
    base: int
    memory: bytearray

    def write(self, rd: int, value: int) -> None:
        if rd != 0:
            self.x[rd] = value & MASK

    def load(self, address: int, size: int, signed: bool) -> int:
        offset = (address - self.base) & MASK
        data = self.memory[offset : offset + size]
        assert len(data) == size
        return int.from_bytes(data, "little", signed=signed)

    def store(self, address: int, size: int, value: int) -> None:
        offset = (address - self.base) & MASK
        assert offset + size <= len(self.memory)
        self.memory[offset : offset + size] = (value & (2 ** (8 * size) - 1)).to_bytes(
            size, "little"
        )


@dataclass(frozen=True)
class Instruction:
    """Text for messages, encoding, and effect."""

    text: str
    code: bytes
    effect: Effect = field(compare=False)


def signed(value: int) -> int:
    value &= MASK
    return value - 2**32 if value >> 31 else value


def _truncate(a: int, b: int) -> int:
    """Division that rounds towards zero, as C's and RISC-V's."""
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def div(a: int, b: int) -> int:
    return -1 if b == 0 else _truncate(signed(a), signed(b))


def rem(a: int, b: int) -> int:
    if b == 0:
        return a
    return signed(a) - signed(b) * _truncate(signed(a), signed(b))


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "sll": lambda a, b: a << (b & 31),
    "slt": lambda a, b: int(signed(a) < signed(b)),
    "sltu": lambda a, b: int(a < b),
    "xor": lambda a, b: a ^ b,
    "srl": lambda a, b: a >> (b & 31),
    "sra": lambda a, b: signed(a) >> (b & 31),
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "mul": lambda a, b: a * b,
    "mulh": lambda a, b: (signed(a) * signed(b)) >> 32,
    "mulhsu": lambda a, b: (signed(a) * b) >> 32,
    "mulhu": lambda a, b: (a * b) >> 32,
    "div": div,
    "divu": lambda a, b: a // b if b else MASK,
    "rem": rem,
    "remu": lambda a, b: a % b if b else a,
}

_BASE = ("add", "sll", "slt", "sltu", "xor", "srl", "or", "and")
_MULDIV = ("mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu")

CONDITIONS: dict[str, tuple[int, Callable[[int, int], bool]]] = {
    "beq": (0, lambda a, b: a == b),
    "bne": (1, lambda a, b: a != b),
    "blt": (4, lambda a, b: signed(a) < signed(b)),
    "bge": (5, lambda a, b: signed(a) >= signed(b)),
    "bltu": (6, lambda a, b: a < b),
    "bgeu": (7, lambda a, b: a >= b),
}

LOADS = {"lb": (0, 1, True), "lh": (1, 2, True), "lw": (2, 4, True), "lbu": (4, 1, False),
         "lhu": (5, 2, False)}  # fmt: skip
STORES = {"sb": (0, 1), "sh": (1, 2), "sw": (2, 4)}


def word(value: int) -> bytes:
    return (value & MASK).to_bytes(4, "little")


def i_type(opcode: int, f3: int, rd: int, rs1: int, imm: int) -> bytes:
    return word((imm & 0xFFF) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode)


def s_type(f3: int, rs1: int, rs2: int, imm: int) -> bytes:
    high, low = imm >> 5 & 0x7F, imm & 31
    return word(high << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | low << 7 | 0x23)


def b_type(f3: int, rs1: int, rs2: int, offset: int) -> bytes:
    field_ = (offset >> 12 & 1) << 31 | (offset >> 5 & 63) << 25
    field_ |= (offset >> 1 & 15) << 8 | (offset >> 11 & 1) << 7
    return word(field_ | rs2 << 20 | rs1 << 15 | f3 << 12 | 0x63)


def j_type(rd: int, offset: int) -> bytes:
    field_ = (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3FF) << 21
    field_ |= (offset >> 11 & 1) << 20 | (offset >> 12 & 0xFF) << 12
    return word(field_ | rd << 7 | 0x6F)


def binary(name: str, rd: int, rs1: int, rs2: int) -> Instruction:
    if name in _MULDIV:
        f3, f7 = _MULDIV.index(name), 1
    elif name in ("sub", "sra"):
        f3, f7 = (0 if name == "sub" else 5), 0x20
    else:
        f3, f7 = _BASE.index(name), 0
    code = word(f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | 0x33)
    function = BINARY[name]
    return Instruction(
        f"{name} x{rd}, x{rs1}, x{rs2}", code, lambda s: s.write(rd, function(s.x[rs1], s.x[rs2]))
    )


def immediate(name: str, rd: int, rs1: int, imm: int) -> Instruction:
    """``name`` is that of the register form: add stands for addi."""
    f3 = {"sub": 0, "sra": 5}.get(name, _BASE.index(name) if name in _BASE else 0)
    bits = imm | (0x400 if name == "sra" else 0)
    function = BINARY[name]
    return Instruction(
        f"{name}i x{rd}, x{rs1}, {imm}",
        i_type(0x13, f3, rd, rs1, bits),
        lambda s: s.write(rd, function(s.x[rs1], imm & MASK)),
    )


def lui(rd: int, imm: int) -> Instruction:
    code = word(imm << 12 | rd << 7 | 0x37)
    return Instruction(f"lui x{rd}, {imm}", code, lambda s: s.write(rd, imm << 12))


def load(name: str, rd: int, rs1: int, imm: int) -> Instruction:
    f3, size, is_signed = LOADS[name]
    return Instruction(
        f"{name} x{rd}, {imm}(x{rs1})",
        i_type(0x03, f3, rd, rs1, imm),
        lambda s: s.write(rd, s.load(s.x[rs1] + imm, size, is_signed)),
    )


def store(name: str, rs2: int, rs1: int, imm: int) -> Instruction:
    f3, size = STORES[name]
    return Instruction(
        f"{name} x{rs2}, {imm}(x{rs1})",
        s_type(f3, rs1, rs2, imm),
        lambda s: s.store(s.x[rs1] + imm, size, s.x[rs2]),
    )


# --- 16-bit instructions: each as the manual's table, with the 32-bit effect ---------------------


def half(value: int) -> bytes:
    return value.to_bytes(2, "little")


def _ci(f3: int, quadrant: int, rd: int, imm: int) -> bytes:
    return half(f3 << 13 | (imm >> 5 & 1) << 12 | rd << 7 | (imm & 31) << 2 | quadrant)


def _named(name: str, code: bytes, like: Instruction) -> Instruction:
    return Instruction(f"{name} ({like.text})", code, like.effect)


def c_li(rd: int, imm: int) -> Instruction:
    return _named("c.li", _ci(2, 1, rd, imm), immediate("add", rd, 0, imm))


def c_addi(rd: int, imm: int) -> Instruction:
    return _named("c.addi", _ci(0, 1, rd, imm), immediate("add", rd, rd, imm))


def c_lui(rd: int, imm: int) -> Instruction:
    return _named("c.lui", _ci(3, 1, rd, imm), lui(rd, imm & 0xFFFFF))


def c_slli(rd: int, amount: int) -> Instruction:
    return _named("c.slli", _ci(0, 2, rd, amount), immediate("sll", rd, rd, amount))


def c_mv(rd: int, rs2: int) -> Instruction:
    return _named("c.mv", half(4 << 13 | rd << 7 | rs2 << 2 | 2), binary("add", rd, 0, rs2))


def c_add(rd: int, rs2: int) -> Instruction:
    code = half(4 << 13 | 1 << 12 | rd << 7 | rs2 << 2 | 2)
    return _named("c.add", code, binary("add", rd, rd, rs2))


def c_arithmetic(name: str, rd: int, rs2: int) -> Instruction:
    """sub, xor, or, and on the registers x8 to x15."""
    which = ("sub", "xor", "or", "and").index(name)
    code = half(4 << 13 | 3 << 10 | (rd - 8) << 7 | which << 5 | (rs2 - 8) << 2 | 1)
    return _named(f"c.{name}", code, binary(name, rd, rd, rs2))


def c_immediate(name: str, rd: int, imm: int) -> Instruction:
    """srl, sra, and with an immediate on x8 to x15."""
    which = ("srl", "sra", "and").index(name)
    bits = (imm >> 5 & 1) << 12 | which << 10 | (rd - 8) << 7 | (imm & 31) << 2
    return _named(f"c.{name}i", half(4 << 13 | bits | 1), immediate(name, rd, rd, imm))


def c_lw(rd: int, rs1: int, offset: int) -> Instruction:
    bits = (offset >> 3 & 7) << 10 | (offset >> 2 & 1) << 6 | (offset >> 6 & 1) << 5
    code = half(2 << 13 | bits | (rs1 - 8) << 7 | (rd - 8) << 2)
    return _named("c.lw", code, load("lw", rd, rs1, offset))


def c_sw(rs2: int, rs1: int, offset: int) -> Instruction:
    bits = (offset >> 3 & 7) << 10 | (offset >> 2 & 1) << 6 | (offset >> 6 & 1) << 5
    code = half(6 << 13 | bits | (rs1 - 8) << 7 | (rs2 - 8) << 2)
    return _named("c.sw", code, store("sw", rs2, rs1, offset))


def c_lwsp(rd: int, offset: int) -> Instruction:
    bits = (offset >> 5 & 1) << 12 | (offset >> 2 & 7) << 4 | (offset >> 6 & 3) << 2
    return _named("c.lwsp", half(2 << 13 | bits | rd << 7 | 2), load("lw", rd, 2, offset))


def c_swsp(rs2: int, offset: int) -> Instruction:
    bits = (offset >> 2 & 15) << 9 | (offset >> 6 & 3) << 7
    return _named("c.swsp", half(6 << 13 | bits | rs2 << 2 | 2), store("sw", rs2, 2, offset))


def c_addi4spn(rd: int, imm: int) -> Instruction:
    bits = (imm >> 4 & 3) << 11 | (imm >> 6 & 15) << 7 | (imm >> 2 & 1) << 6 | (imm >> 3 & 1) << 5
    code = half(bits | (rd - 8) << 2)
    return _named("c.addi4spn", code, immediate("add", rd, 2, imm))


def c_addi16sp(imm: int) -> Instruction:
    bits = (imm >> 9 & 1) << 12 | (imm >> 4 & 1) << 6 | (imm >> 6 & 1) << 5
    bits |= (imm >> 7 & 3) << 3 | (imm >> 5 & 1) << 2
    return _named("c.addi16sp", half(3 << 13 | 2 << 7 | bits | 1), immediate("add", 2, 2, imm))


def c_branch(zero: bool, rs1: int, offset: int) -> bytes:
    """c.beqz or c.bnez."""
    bits = (offset >> 8 & 1) << 12 | (offset >> 3 & 3) << 10 | (offset >> 6 & 3) << 5
    bits |= (offset >> 1 & 3) << 3 | (offset >> 5 & 1) << 2
    return half((6 if zero else 7) << 13 | bits | (rs1 - 8) << 7 | 1)


def c_jump(link: bool, offset: int) -> bytes:
    """c.jal (link) or c.j."""
    bits = (offset >> 11 & 1) << 12 | (offset >> 4 & 1) << 11 | (offset >> 8 & 3) << 9
    bits |= (offset >> 10 & 1) << 8 | (offset >> 6 & 1) << 7 | (offset >> 7 & 1) << 6
    bits |= (offset >> 1 & 7) << 3 | (offset >> 5 & 1) << 2
    return half((1 if link else 5) << 13 | bits | 1)
