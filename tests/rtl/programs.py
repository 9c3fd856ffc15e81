"""Helper: random assembly programs that end, to compare two machines cycle for cycle.

A program runs counted loops over straight pieces with forward branches, calls, returns and
computed jumps in between.  It hashes its registers and its buffer at the end and prints cycles,
instructions and hash, so that both timing and function are compared.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.rtl.corev_text import EXTENSIONS, PRINT_HEX, hardware_loop, random_instruction

WORK = ("a0", "a1", "a2", "a3", "a4", "a5", "t3", "t4", "t5", "s6")
"""Registers that random instructions use; the others hold the program together:
s0 buffer, s1 loop counter, s2 and s3 start counts, s4 jump table, ra, t0, t1, t2 jumps and links;
with CORE-V instructions, s7 and s8 addresses and increments, s9 to s11 bounds and counts of loops.
"""

BUFFER_BYTES = 256

_ALU = ("add", "sub", "xor", "or", "and", "sll", "srl", "sra", "slt", "sltu")
_ALU_IMMEDIATE = ("addi", "xori", "ori", "andi", "slti", "sltiu")
_SHIFT_IMMEDIATE = ("slli", "srli", "srai")
_MULTIPLY = ("mul", "mul", "mulh", "mulhu", "mulhsu")
_DIVIDE = ("div", "divu", "rem", "remu")
_LOADS = (("lb", 1), ("lbu", 1), ("lh", 2), ("lhu", 2), ("lw", 4), ("lw", 4))
_STORES = (("sb", 1), ("sh", 2), ("sw", 4), ("sw", 4))
_BRANCHES = ("beq", "bne", "blt", "bge", "bltu", "bgeu")
_CSRS = ("mcycle", "minstret", "mscratch", "mcause", "mhpmcounter3")


@dataclass
class _Writer:
    """Collects the text of one program."""

    rng: random.Random
    corev: bool = False
    lines: list[str] = field(default_factory=list)
    labels: int = 0

    def emit(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def label(self) -> str:
        self.labels += 1
        return f".L{self.labels}"

    def place(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def reg(self) -> str:
        return self.rng.choice(WORK)

    def address(self, size: int) -> str:
        """An operand in the buffer: mostly aligned, sometimes across a word."""
        offset = self.rng.randrange(0, BUFFER_BYTES - 4)
        if self.rng.random() < 0.6:
            offset -= offset % size
        return f"{offset}(s0)"


def random_program(seed: int, pieces: int = 60, rounds: int = 12, *, corev: bool = False) -> str:
    """Return the assembly text of a program; the same for the same arguments.

    Args:
        seed: of the random numbers.
        pieces: random pieces in the body of the loop.
        rounds: times the loop runs.
        corev: half of the instructions are CORE-V, and there are hardware loops.
    """
    out = _Writer(random.Random(seed), corev)
    _begin(out, rounds)
    out.place("loop")
    for _ in range(pieces):
        kinds = (
            (_straight, 8),
            (_skip, 6),
            (_call, 2),
            (_load_and_jump, 1),
            (_computed_jump, 1),
            (_busy_jump, 2),
            (_inner_loop, 1),
            (_oddity, 1),
            (_hardware_loops, 5 if corev else 0),
            (_immediate_branch, 2 if corev else 0),
        )
        out.rng.choices([make for make, _ in kinds], [weight for _, weight in kinds])[0](out)
    out.emit("addi s1, s1, -1")
    out.emit("beqz s1, finish")
    out.emit("j loop")
    out.place("finish")
    _end(out)
    _functions(out)
    _data(out)
    return "\n".join(out.lines) + "\n"


def _simple(out: _Writer) -> str:
    """One instruction that does not jump and writes working registers or the buffer only."""
    rng = out.rng
    if out.corev and rng.random() < 0.5:
        return random_instruction(rng, WORK, BUFFER_BYTES)
    kind = rng.choices(
        ("alu", "imm", "shift", "mul", "div", "load", "store", "li", "csr", "zero"),
        (20, 14, 8, 6, 3, 24, 12, 8, 1, 1),
    )[0]
    if kind == "alu":
        return f"{rng.choice(_ALU)} {out.reg()}, {out.reg()}, {out.reg()}"
    if kind == "imm":
        same = out.reg()
        other = same if rng.random() < 0.5 else out.reg()
        return f"{rng.choice(_ALU_IMMEDIATE)} {same}, {other}, {rng.randrange(-32, 32)}"
    if kind == "shift":
        same = out.reg()
        return f"{rng.choice(_SHIFT_IMMEDIATE)} {same}, {same}, {rng.randrange(1, 32)}"
    if kind == "mul":
        return f"{rng.choice(_MULTIPLY)} {out.reg()}, {out.reg()}, {out.reg()}"
    if kind == "div":
        return f"{rng.choice(_DIVIDE)} {out.reg()}, {out.reg()}, {out.reg()}"
    if kind == "load":
        name, size = rng.choice(_LOADS)
        return f"{name} {out.reg()}, {out.address(size)}"
    if kind == "store":
        name, size = rng.choice(_STORES)
        return f"{name} {out.reg()}, {out.address(size)}"
    if kind == "li":
        return f"li {out.reg()}, {rng.choice((0, 1, -1, 5, 1000, -70000, 0x7FFFFFFF))}"
    if kind == "zero":
        return rng.choice(("lw zero, 0(s0)", "add zero, a0, a1", "mulh zero, a0, a1"))
    # The value of a counter differs between machines with another start: only its time counts.
    return f"csrr {rng.choice(('t0', 'zero'))}, {rng.choice(_CSRS)}"


def _straight(out: _Writer) -> None:
    for _ in range(out.rng.randrange(1, 6)):
        out.emit(_simple(out))


def _skip(out: _Writer) -> None:
    """A branch or jump over a few instructions."""
    target = out.label()
    if out.rng.random() < 0.25:
        out.emit(f"j {target}")
    else:
        right = out.rng.choice((out.reg(), "zero"))
        out.emit(f"{out.rng.choice(_BRANCHES)} {out.reg()}, {right}, {target}")
    _straight(out)
    out.place(target)
    out.emit(_simple(out))


def _call(out: _Writer) -> None:
    """A call: the functions return through ra or t0, at once or after work."""
    number = out.rng.randrange(4)
    link = "t0" if number >= 2 else "ra"
    out.emit(f"jal {link}, function{number}")


def _load_and_jump(out: _Writer) -> None:
    """A jump to an address just loaded, with 0 to 2 instructions in between."""
    index = out.rng.randrange(4)
    link = "t0" if index >= 2 else "ra"
    out.emit(f"lw t1, {4 * index}(s4)")
    for _ in range(out.rng.randrange(3)):
        out.emit(_simple(out))
    out.emit(f"jalr {link}, 0(t1)")


def _computed_jump(out: _Writer) -> None:
    """A jump to an address just computed; sometimes the link overwrites the base."""
    target = out.label()
    link = out.rng.choice(("zero", "t1", "t2"))
    out.emit(f"la t2, {target}")
    for _ in range(out.rng.randrange(3)):
        out.emit(_simple(out))
    if out.rng.random() < 0.3:
        out.emit("mv t2, t2")
    out.emit(f"jalr {link}, 0(t2)")
    _straight(out)
    out.place(target)


def _busy_jump(out: _Writer) -> None:
    """A jump right behind an instruction of several cycles, which hides its bubble."""
    rng = out.rng
    target = out.label()
    busy = rng.choice(
        (
            f"mulh {out.reg()}, {out.reg()}, {out.reg()}",
            f"divu {out.reg()}, {out.reg()}, {out.reg()}",
            f"lw {out.reg()}, {rng.choice((1, 2, 3))}(s0)",
            f"sh {out.reg()}, 3(s0)",
        )
    )
    style = rng.randrange(5)
    if style == 0:
        out.emit(busy)
        out.emit(f"j {target}")
    elif style == 1:  # the callee returns at once: its base was just written by the jump
        out.emit(busy)
        out.emit(f"jal {rng.choice(('ra, function0', 't0, function2'))}")
    elif style == 2:  # the base was loaded before the busy instruction
        out.emit(f"lw t1, {4 * rng.randrange(2)}(s4)")
        out.emit(busy)
        out.emit("jalr ra, 0(t1)")
    elif style == 3:  # the base is loaded across a word
        out.emit("lw t1, 18(s4)")
        out.emit("jalr ra, 0(t1)")
    else:  # link and base are the same register
        out.emit(f"la t2, {target}")
        out.emit(busy)
        out.emit("jalr t2, 0(t2)")
    if style in (0, 4):
        _straight(out)
    out.place(target)


def _oddity(out: _Writer) -> None:
    """Rare neighbours: jumps behind CSR accesses, links just loaded, fences."""
    target = out.label()
    style = out.rng.randrange(5)
    if style == 0:  # a base read from a CSR, with and without a flush of the pipeline
        csr = out.rng.choice(("mscratch", "mepc"))
        out.emit(f"la t2, {target}")
        out.emit(f"csrw {csr}, t2")
        out.emit(f"csrr t1, {csr}")
        out.emit("jalr t0, 0(t1)")
    elif style == 1:  # a load whose register the jump overwrites
        out.emit(f"lw t0, {out.rng.choice((0, 1, 2))}(s0)")
        out.emit(f"jal t0, {target}")
        _straight(out)
    elif style == 2:
        out.emit(f"la t2, {target}")
        out.emit(f"lw t0, {out.rng.choice((0, 1, 2))}(s0)")
        out.emit("jalr t0, 0(t2)")
        _straight(out)
    elif style == 3:
        out.emit(_simple(out))
        out.emit(out.rng.choice(("fence", "fence.i")))
    else:  # a base computed by an instruction of several cycles
        out.emit(f"la t2, {target}")
        out.emit("li t1, 1")
        out.emit(out.rng.choice(("divu t2, t2, t1", "mul t2, t2, t1")))
        out.emit("jr t2")
        _straight(out)
    out.place(target)


def _inner_loop(out: _Writer) -> None:
    head = out.label()
    out.emit(f"li s5, {out.rng.randrange(2, 5)}")
    out.place(head)
    _straight(out)
    out.emit("addi s5, s5, -1")
    out.emit(f"bnez s5, {head}")


def _immediate_branch(out: _Writer) -> None:
    target = out.label()
    out.emit(_simple(out))
    name = out.rng.choice(("cv.beqimm", "cv.bneimm"))
    out.emit(f"{name} {out.reg()}, {out.rng.randrange(-16, 16)}, {target}")
    _straight(out)
    out.place(target)


def _hardware_loops(out: _Writer) -> None:
    """A hardware loop, often with one in it; nothing in it has 16 bits."""
    out.lines.append(".balign 4")
    out.lines += [".option push", ".option norvc", ".option norelax"]
    nested = out.rng.random() < 0.5
    end = _set_up(out, 1 if nested else out.rng.randrange(2), out.rng.choice((0, 1, 2, 3, 5)))
    _body(out, out.rng.randrange(0 if nested else 3, 7))
    if nested:
        inner = _set_up(out, 0, out.rng.choice((0, 1, 2, 4, 7)))
        _body(out, out.rng.randrange(3, 7))
        out.place(inner)
        _body(out, out.rng.randrange(2, 5))
    out.place(end)
    out.lines.append(".option pop")


def _body(out: _Writer, count: int) -> None:
    """Instructions of a hardware loop; the simulator refuses counters at its end."""
    while count > 0:
        text = _simple(out)
        if not text.startswith("csrr"):
            out.emit(text)
            count -= 1


def _set_up(out: _Writer, loop: int, count: int) -> str:
    """Set a loop up that starts here, in one of the ways there are; return its end's label."""
    start, end = out.label(), out.label()
    way = out.rng.randrange(4)
    # A body of up to 31 words is within reach; one with another loop in it need not be.
    if way == 0 and loop == 0:
        out.emit(hardware_loop("setupi", loop, str(count), end))
    elif way <= 1:
        out.emit(f"li s9, {count}")
        out.emit(hardware_loop("setup", loop, "s9", end))
    elif way == 2:
        out.emit(hardware_loop("starti", loop, target=start))
        out.emit(hardware_loop("endi", loop, target=end))
        out.emit(hardware_loop("counti", loop, str(count)))
    else:
        out.emit(f"li s9, {count}")
        out.emit(f"lla s10, {start}")
        out.emit(f"lla s11, {end}")
        out.emit(hardware_loop("start", loop, "s10"))
        out.emit(hardware_loop("end", loop, "s11"))
        out.emit(hardware_loop("count", loop, "s9"))
    out.place(start)
    return end


def _begin(out: _Writer, rounds: int) -> None:
    out.lines += [EXTENSIONS] if out.corev else []
    out.lines += [".globl _start", "_start:"]
    for text in (
        "csrw mcountinhibit, zero",
        "la sp, stack_top",
        "la s0, buffer",
        "la s4, table",
        f"li s1, {rounds}",
    ):
        out.emit(text)
    for register in WORK:
        out.emit(f"li {register}, {out.rng.randrange(-(2**31), 2**31)}")
    out.emit("csrr s2, mcycle")
    out.emit("csrr s3, minstret")


def _end(out: _Writer) -> None:
    """Hash working registers and buffer; print cycles, instructions and hash; end the run."""
    out.emit("csrr t0, mcycle")
    out.emit("csrr t1, minstret")
    out.emit("sub s2, t0, s2")
    out.emit("sub s3, t1, s3")
    out.emit("li t2, 0")
    for register in WORK:
        out.emit("slli t0, t2, 5")
        out.emit("add t2, t2, t0")
        out.emit(f"xor t2, t2, {register}")
    out.emit(f"li t1, {BUFFER_BYTES}")
    out.place("hash")
    for text in (
        "lbu a0, 0(s0)",
        "slli t0, t2, 5",
        "add t2, t2, t0",
        "xor t2, t2, a0",
        "addi s0, s0, 1",
        "addi t1, t1, -1",
        "bnez t1, hash",
    ):
        out.emit(text)
    for register in ("s2", "s3", "t2"):
        out.emit(f"mv a0, {register}")
        out.emit("call print_hex")
    for text in ("li a0, 0x5555", "li a1, 0x100000", "sw a0, 0(a1)"):
        out.emit(text)
    out.place("stop")
    out.emit("j stop")


def _functions(out: _Writer) -> None:
    """Callees: function0 and 1 return through ra, 2 and 3 through t0."""
    for number in range(4):
        link = "t0" if number >= 2 else "ra"
        out.place(f"function{number}")
        if number % 2 == 1:
            for _ in range(out.rng.randrange(1, 4)):
                text = _simple(out)
                if not text.startswith("csrr"):  # they write t0
                    out.emit(text)
        out.emit(f"jr {link}")
    out.lines += PRINT_HEX


def _data(out: _Writer) -> None:
    out.lines += [".data", ".balign 4", "table:"]
    out.lines += [f"    .word function{number}" for number in range(4)]
    # The same table, two bytes off a word boundary.
    out.lines += ["    .half 0", "    .word function0", "    .half 0", "buffer:"]
    for _ in range(BUFFER_BYTES // 4):
        out.lines.append(f"    .word {out.rng.getrandbits(32):#x}")
    out.lines += [".bss", ".balign 16", "    .space 256", "stack_top:"]
