"""Helper: assembly text of CORE-V instructions, at random or, for hardware loops, as words.

The assembler has no hardware loops: they are words made of differences of labels, which it only
computes without relaxation.  The instructions must be on word boundaries, and no instruction of a
body may have 16 bits.
"""

from __future__ import annotations

import random

__all__ = [
    "EXTENSIONS",
    "PRINT_HEX",
    "all_operations",
    "hardware_loop",
    "print_results",
    "random_instruction",
]

EXTENSIONS = ".option arch, +xcvmem, +xcvalu, +xcvmac, +xcvsimd, +xcvbi, +xcvbitmanip"
"""Directive that lets the assembler take the instructions."""

_NUMBERS = {"a": 10, "t": 5, "s": 8}

# What they set, by bits 11:8.
_SETS = ("starti", "start", "endi", "end", "counti", "count", "setupi", "setup")


def _number(register: str) -> int:
    """Number of a register by its name."""
    kind, index = register[0], int(register[1:])
    if kind == "s" and index >= 2:
        return 16 + index
    if kind == "t" and index >= 3:
        return 25 + index
    return _NUMBERS[kind] + index


def hardware_loop(what: str, loop: int, value: str = "0", target: str = "") -> str:
    """Return a line that sets a hardware loop up.

    Args:
        what: ``starti``, ``start``, ``endi``, ``end``, ``counti``, ``count``, ``setupi`` or
            ``setup``.
        loop: 0 (the inner one) or 1.
        value: the count, or the register that has the count or the address.
        target: label of the start or, else, of the place behind the body.
    """
    word = 0x402B | _SETS.index(what) << 8 | loop << 7
    distance = f"(({target}-777b)>>2)"
    fields = {
        "starti": f"({distance}<<20)",
        "endi": f"({distance}<<20)",
        "counti": f"({value}<<20)",
        "setupi": f"({distance}<<15)|({value}<<20)",
    }
    if what in fields:
        field = fields[what]
    else:
        field = f"({_number(value)}<<15)" + (f"|({distance}<<20)" if what == "setup" else "")
    return f"777: .word {word:#x}|{field}"


_LANES = ("add", "sub", "avg", "min", "max", "or", "xor", "and", "dotusp", "dotsp", "sdotusp")
_LANES += ("sdotsp", "cmpeq", "cmpne", "cmpgt", "cmpge", "cmplt", "cmple")
_LANES_UNSIGNED = (
    "avgu",
    "minu",
    "maxu",
    "dotup",
    "sdotup",
    "cmpgtu",
    "cmpgeu",
    "cmpltu",
    "cmpleu",
)
_LANES_SHIFT = ("srl", "sra", "sll")
_TWO = ("slet", "sletu", "min", "minu", "max", "maxu", "clipr", "clipur", "ror", "mac", "msu")
_TWO += ("extractr", "extractur", "insertr", "bclrr", "bsetr")
_TWO += tuple(f"{op}{u}{r}nr" for op in ("add", "sub") for u in ("", "u") for r in ("", "r"))
_TWO += ("shuffle.h", "shuffle.b", "shuffle2.h", "shuffle2.b", "pack", "pack.h", "packlo.b")
_TWO += ("packhi.b", *(f"cplxmul.{part}{by}" for part in "ri" for by in ("", ".div2", ".div4")))
_TWO += ("cplxmul.r.div8", "cplxmul.i.div8", "subrotmj", "subrotmj.div2", "subrotmj.div4")
_TWO += ("subrotmj.div8", *(f"{op}.div{by}" for op in ("add", "sub") for by in (2, 4, 8)))
_ONE = ("abs", "exths", "exthz", "extbs", "extbz", "ff1", "fl1", "clb", "cnt", "abs.h", "abs.b")
_ONE += ("cplxconj",)
_SHIFTED = tuple(f"{op}{u}{r}n" for op in ("add", "sub") for u in ("", "u") for r in ("", "r"))
_SHIFTED += tuple(
    f"{op}{s}{r}n" for op in ("mul", "mulhh", "mac", "machh") for s in "su" for r in ("", "r")
)
_FIELDS = ("extract", "extractu", "insert", "bclr", "bset")


def random_instruction(rng: random.Random, registers: tuple[str, ...], buffer_bytes: int) -> str:
    """Return an ALU, multiply or SIMD instruction, or an access behind what sets its base.

    Args:
        rng: where chance is from.
        registers: what may be read and written; s7 and s8 are written, too.
        buffer_bytes: size of the memory that s0 points to.
    """
    kind = rng.choices(
        (_lanes, _two, _one, _shifted, _constant, _lane, _access), (8, 8, 3, 5, 4, 3, 8)
    )[0]
    return kind(rng, registers, buffer_bytes)


def _lanes(rng: random.Random, registers: tuple[str, ...], _: int) -> str:
    name, size = rng.choice(_LANES + _LANES_UNSIGNED + _LANES_SHIFT), rng.choice("hb")
    d, a, b = (rng.choice(registers) for _ in range(3))
    form = rng.choice(("", ".sc", ".sci"))
    if form == ".sci":
        low, high = (0, 64) if name in _LANES_UNSIGNED else (-32, 32)
        if name in _LANES_SHIFT:
            low, high = 0, 16 if size == "h" else 8
        b = str(rng.randrange(low, high))
    return f"cv.{name}{form}.{size} {d}, {a}, {b}"


def _two(rng: random.Random, registers: tuple[str, ...], _: int) -> str:
    d, a, b = (rng.choice(registers) for _ in range(3))
    return f"cv.{rng.choice(_TWO)} {d}, {a}, {b}"


def _one(rng: random.Random, registers: tuple[str, ...], _: int) -> str:
    return f"cv.{rng.choice(_ONE)} {rng.choice(registers)}, {rng.choice(registers)}"


def _shifted(rng: random.Random, registers: tuple[str, ...], _: int) -> str:
    d, a, b = (rng.choice(registers) for _ in range(3))
    return f"cv.{rng.choice(_SHIFTED)} {d}, {a}, {b}, {rng.randrange(32)}"


def _constant(rng: random.Random, registers: tuple[str, ...], _: int) -> str:
    d, a = rng.choice(registers), rng.choice(registers)
    kind = rng.randrange(4)
    if kind == 0:
        return f"cv.{rng.choice(('clip', 'clipu'))} {d}, {a}, {rng.randrange(32)}"
    if kind == 1:
        return f"cv.bitrev {d}, {a}, {rng.randrange(3)}, {rng.randrange(32)}"
    width = rng.randrange(32)
    return f"cv.{rng.choice(_FIELDS)} {d}, {a}, {width}, {rng.randrange(32 - width)}"


def _lane(rng: random.Random, registers: tuple[str, ...], _: int) -> str:
    d, a = rng.choice(registers), rng.choice(registers)
    size = rng.choice("hb")
    if rng.random() < 0.7:
        name = rng.choice(("extract", "extractu", "insert"))
        return f"cv.{name}.{size} {d}, {a}, {rng.randrange(2 if size == 'h' else 4)}"
    if size == "h":
        return f"cv.shuffle.sci.h {d}, {a}, {rng.randrange(4)}"
    return f"cv.shufflei{rng.randrange(4)}.sci.b {d}, {a}, {rng.randrange(64)}"


def _access(rng: random.Random, registers: tuple[str, ...], buffer_bytes: int) -> str:
    """Instructions that set s7 to somewhere in the buffer, and use and look at it."""
    name, size = rng.choice((("lb", 1), ("lbu", 1), ("lh", 2), ("lhu", 2), ("lw", 4), ("lw", 4)))
    if rng.random() < 0.4:
        name = {1: "sb", 2: "sh", 4: "sw"}[size]
    offset = rng.randrange(0, buffer_bytes - 4)
    offset -= offset % size if rng.random() < 0.7 else 0
    data = rng.choice(registers)
    by = rng.randrange(-offset, buffer_bytes - 4 - offset)
    form = rng.randrange(4)
    if form == 0:
        lines = [f"li s8, {by}", f"addi s7, s0, {offset}", f"cv.{name} {data}, s8(s7)"]
    elif form == 1:
        lines = [f"li s8, {by}", f"addi s7, s0, {offset}", f"cv.{name} {data}, (s7), s8"]
    else:
        lines = [f"addi s7, s0, {offset}", f"cv.{name} {data}, (s7), {by}"]
    if rng.random() < 0.4:
        lines.append(f"sub {rng.choice(registers)}, s7, s0")
    elif form != 0 and rng.random() < 0.3:
        lines.append(f"cv.lb {rng.choice(registers)}, (s7), 1")
    return "\n    ".join(lines)


EDGES = (
    0,
    1,
    -1,
    2**31 - 1,
    -(2**31),
    0x80807F7F - 2**32,
    0x12345678,
    0x8000FFFF - 2**32,
    0x01020304,
)

Case = tuple[str, tuple[int, int, int]]
"""An instruction that writes a0, and the values of a0, a1 and a2 before."""


def all_operations() -> list[Case]:
    """Return every instruction without access to memory, with extreme operands."""
    pairs = [(3, a, b) for a in EDGES for b in EDGES] + [(-5, a, a) for a in EDGES]
    few = pairs[::5]
    cases = [(f"cv.{name} a0, a1, a2", values) for name in _TWO for values in pairs]
    cases += [(f"cv.{name} a0, a1", values) for name in _ONE for values in pairs]
    cases += [
        (f"cv.{name} a0, a1, a2, {by}", values)
        for name in _SHIFTED
        for by in (0, 1, 7, 31)
        for values in few
    ]
    cases += [
        (f"cv.{name} a0, a1, {width}, {place}", values)
        for name in _FIELDS
        for width, place in ((0, 0), (31, 0), (7, 9), (0, 31), (30, 1))
        for values in few
    ]
    for size in "hb":
        for name in (*_LANES, *_LANES_UNSIGNED, *_LANES_SHIFT):
            for form in ("", ".sc"):
                cases += [(f"cv.{name}{form}.{size} a0, a1, a2", values) for values in few]
            constants = (0, 1, 7) if name in _LANES_SHIFT else (0, 5, 32, 63)
            if name not in _LANES_UNSIGNED + _LANES_SHIFT:
                constants = (-32, -1, 0, 31)
            cases += [
                (f"cv.{name}.sci.{size} a0, a1, {constant}", values)
                for constant in constants
                for values in few
            ]
        for name in ("extract", "extractu", "insert"):
            cases += [
                (f"cv.{name}.{size} a0, a1, {lane}", values)
                for lane in range(2 if size == "h" else 4)
                for values in few
            ]
    some = [(3, 0x12345678, 0), (0, 0x89ABCDEF - 2**32, 0)]
    cases += [(f"cv.shuffle.sci.h a0, a1, {n}", values) for n in range(4) for values in some]
    cases += [
        (f"cv.shufflei{i}.sci.b a0, a1, {n}", values)
        for i in range(4)
        for n in range(64)
        for values in some
    ]
    cases += [
        (f"cv.{name} a0, a1, {n}", (0, a, 0))
        for name in ("clip", "clipu")
        for n in range(32)
        for a in EDGES
    ]
    cases += [
        (f"cv.bitrev a0, a1, {radix}, {n}", values)
        for radix in range(3)
        for n in (0, 1, 5, 31)
        for values in few
    ]
    return cases


def print_results(cases: list[Case]) -> str:
    """Return a program that prints the value of a0 behind each instruction."""
    lines = [EXTENSIONS, ".globl _start", "_start:", "    la sp, stack_top"]
    for instruction, values in cases:
        lines += [f"    li a{n}, {value}" for n, value in enumerate(values)]
        lines += [f"    {instruction}", "    call print_hex"]
    lines += ["    li a0, 0x5555", "    li a1, 0x100000", "    sw a0, 0(a1)", "stop:", "    j stop"]
    return (
        "\n".join([*lines, *PRINT_HEX, ".bss", ".balign 16", "    .space 64", "stack_top:"]) + "\n"
    )


PRINT_HEX = """\
print_hex:
    li a1, 28
    li a3, 0x10000000
digit:
    srl a2, a0, a1
    andi a2, a2, 15
    addi a2, a2, 48
    li a4, 58
    blt a2, a4, decimal
    addi a2, a2, 39
decimal:
    sb a2, 0(a3)
    addi a1, a1, -4
    bgez a1, digit
    li a2, 10
    sb a2, 0(a3)
    ret""".splitlines()
"""Prints a0 as a line of 8 digits."""
