"""Classes of Thumb instructions: what a core's manual gives cycles for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from byoc_dory.soc.cores import ArmCycles, FlashReads

_NO_REGISTER = -1


@dataclass(frozen=True)
class Instruction:
    """An instruction, as far as its cycles depend on it.

    Attributes:
        bytes: 2 or 4.
        kind: a field of `ArmCycles`, or ``"plain"``.
        registers: of a load or store of several.
        base, loaded: registers of an address and of a result, where loads can overlap.
        returns: whether it loads the program counter.
        calls: whether it is a call of a constant address.
    """

    bytes: int
    kind: str = "plain"
    registers: int = 0
    base: int = _NO_REGISTER
    loaded: int = _NO_REGISTER
    returns: bool = False
    calls: bool = False


@dataclass(frozen=True)
class Executed:
    """How many instructions of which class were executed.

    Attributes:
        kinds: instructions of each kind.
        registers: registers that loads and stores of several moved.
        calls, returns: as of `Instruction`.
        taken: branches, calls and returns that were taken.
        fetched, loaded: lines of code and of constants that were read from flash, if it is known
            how that is read.
    """

    kinds: Counter[str]
    registers: int
    calls: int
    returns: int
    taken: int
    fetched: int = 0
    loaded: int = 0

    @property
    def instructions(self) -> int:
        """All instructions."""
        return self.kinds.total()


def sum_of(parts: Sequence[Executed]) -> Executed:
    """Return what several pieces of a run executed together."""
    return Executed(
        sum((part.kinds for part in parts), Counter()),
        sum(part.registers for part in parts),
        sum(part.calls for part in parts),
        sum(part.returns for part in parts),
        sum(part.taken for part in parts),
        sum(part.fetched for part in parts),
        sum(part.loaded for part in parts),
    )


def executed(code: bytes, entered: npt.NDArray[np.int64], taken: int) -> Executed:
    """Return what was executed.

    Args:
        code: the program.
        entered: at each halfword, how many runs of instructions began there, less those that ended
            before it.
        taken: branches that were taken.
    """
    times = np.cumsum(entered)
    words = np.frombuffer(code[: len(code) // 2 * 2], "<u2")
    kinds: Counter[str] = Counter()
    registers = calls = returns = 0
    address, previous = 0, Instruction(2)
    reached = np.flatnonzero(times[: len(words)])
    for start in reached.tolist():
        if start < address:  # the second half of an instruction
            continue
        if start > address:
            previous = Instruction(2)
        number = int(times[start])
        instruction = decode(
            int(words[start]), int(words[start + 1]) if start + 1 < len(words) else 0
        )
        kinds[_overlapped(instruction, previous)] += number
        registers += number * instruction.registers
        calls += number * instruction.calls
        returns += number * instruction.returns
        address, previous = start + instruction.bytes // 2, instruction
    return Executed(kinds, registers, calls, returns, taken)


def _overlapped(instruction: Instruction, previous: Instruction) -> str:
    if instruction.kind != "load" or previous.kind not in ("load", "store"):
        return instruction.kind
    depends = previous.loaded != _NO_REGISTER and previous.loaded == instruction.base
    return "load" if depends else "next_load"


def estimate(what: Executed, cycles: ArmCycles, flash: FlashReads | None = None) -> tuple[int, int]:
    """Return the fewest and the most cycles that a core's manual gives for these instructions.

    Args:
        what: the instructions.
        cycles: of the manual.
        flash: how the code's memory is read, if it waits.  The core waits for each line of
            constants; for those of code it may not have to, where they are read before they are
            needed.
    """
    low = high = what.kinds["plain"] + what.registers
    published = {field.name for field in fields(cycles)} - {"source"}
    for kind, number in [
        *((kind, number) for kind, number in what.kinds.items() if kind in published),
        ("refill", what.taken),
        ("call", what.calls),
        ("return_load", what.returns),
    ]:
        least, most = getattr(cycles, kind)
        low, high = low + number * least, high + number * most
    waits = 0 if flash is None else flash.waits
    return low + waits * what.loaded, high + waits * (what.loaded + what.fetched)


def decode(first: int, second: int) -> Instruction:
    """Return the class of an instruction.

    Args:
        first, second: its halfwords; the second is ignored if it has only one.
    """
    if first >> 11 in (0x1D, 0x1E, 0x1F):
        return _wide_instruction(first, second)
    if first & 0xFFC0 == 0x4340:
        return Instruction(2, "multiply")
    if first >> 11 == 0x09:  # from the constants behind the code
        return Instruction(2, "load", loaded=first >> 8 & 7)
    if first >> 12 == 0x5:
        return _single(first, stores=first >> 9 & 7 < 3)
    if first >> 13 == 0x3 or first >> 12 == 0x8:
        return _single(first, stores=not first >> 11 & 1)
    if first >> 12 == 0x9:  # relative to the stack
        if first >> 11 & 1:
            return Instruction(2, "load", base=13, loaded=first >> 8 & 7)
        return Instruction(2, "store")
    if first & 0xF600 == 0xB400:  # PUSH, POP
        last = first >> 8 & 1
        returns = bool(first >> 11 & 1 and last)
        return Instruction(2, "multiple", (first & 0xFF).bit_count() + last, returns=returns)
    if first >> 12 == 0xC:
        return Instruction(2, "multiple", (first & 0xFF).bit_count())
    return Instruction(2)


def _single(first: int, stores: bool) -> Instruction:
    if stores:
        return Instruction(2, "store")
    return Instruction(2, "load", base=first >> 3 & 7, loaded=first & 7)


def _wide_instruction(first: int, second: int) -> Instruction:
    group, code = first >> 11 & 3, first >> 4 & 0x7F
    if group == 1 and code & 0x64 == 0x00:
        returns = bool(first >> 4 & 1 and second >> 15)
        return Instruction(4, "multiple", second.bit_count(), returns=returns)
    if group == 1 and code & 0x64 == 0x04:
        if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:  # a table of branches
            return Instruction(4, "load", base=first & 15)
        return Instruction(4, "multiple", 2)
    if group == 2 and second & 0xD000 == 0xD000:
        return Instruction(4, calls=True)
    if group == 3:
        return _wide_access(first, second, code)
    return Instruction(4)


def _wide_access(first: int, second: int, code: int) -> Instruction:
    if code & 0x71 == 0x00:
        return Instruction(4, "store")
    if code & 0x67 in (0x01, 0x03, 0x05):
        loaded = second >> 12
        return Instruction(4, "load", base=first & 15, loaded=loaded, returns=loaded == 15)
    if code & 0x78 == 0x30:
        word = code & 7 == 0 and second >> 4 & 3 <= 1
        sums = second >> 12 != 15
        return Instruction(4, "accumulate" if word and sums else "multiply" if word else "plain")
    if code & 0x78 == 0x38:
        kinds = ("long_multiply", "divide", "long_multiply", "divide")
        number = code & 7
        return Instruction(4, kinds[number] if number < 4 else "long_accumulate")
    return Instruction(4)
