"""A run of a firmware for a Cortex-M core, wherever its instructions are executed.

A step's instructions are those from the first of its kernel to its return, as the symbols of the
firmware tell; nothing is added to the program for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from htvm.firmware.elf import read_segments
from htvm.sim.thumb import Executed

if TYPE_CHECKING:
    from htvm.firmware.arm import ArmFirmware

MAX_INSTRUCTIONS = 20_000_000_000
"""Default limit of a run in instructions: some minutes."""

PAINT = bytes([0xA5])
"""The byte that the stack is filled with before a run."""

Place: TypeAlias = Literal["kernel", "entry", "main"]
"""Code at which steps begin and end: the first of a kernel, the entry function's, or main's."""

_P = TypeVar("_P", bound=str)


@dataclass(frozen=True)
class ArmRun:
    """The results of running a firmware.

    Attributes:
        instructions: executed from the call of the entry function to its return.
        steps: for each kernel called by the entry function, in order: its symbol, and the
            instructions before its first and before the one after its last, counted from the entry
            function's call.
        outputs: contents of each symbol in ``outputs``.
        stack_used: largest use of the stack in bytes.
        executed: classes of these instructions; None if the machine does not tell.
        step_executed: the same of each step; empty if the machine does not tell.
        core_instructions: executed by each of two cores meanwhile; empty with one core.  A wait
            takes none, but counts as instructions of the program.
    """

    instructions: int
    steps: tuple[tuple[str, int, int], ...]
    outputs: dict[str, bytes] = field(repr=False)
    stack_used: int
    executed: Executed | None = None
    step_executed: tuple[Executed, ...] = ()
    core_instructions: tuple[int, ...] = ()


class Reached(NamedTuple):
    """How far a run has come: begun, steps that have ended, whether inside of one, ended."""

    begun: bool
    steps: int
    inside: bool
    ended: bool


class StepCounts:
    """Where steps begin and end, and what a run has left when it is over.

    Args:
        firmware: the firmware.
        entry: symbol of the entry function, which ``main`` calls.
        kernels: symbols of the functions that it calls, one per step.

    Raises:
        SimulationError: the firmware lacks one of these.
    """

    def __init__(self, firmware: ArmFirmware, entry: str, kernels: Sequence[str]) -> None:
        self.firmware, self.entry = firmware, entry
        self.kernels = {firmware.symbol(name).address & ~1: name for name in kernels}
        self.low, self.top = (
            firmware.symbol(name).address for name in ("__stack_low", "__stack_top")
        )
        rows = f"{entry.removesuffix('_run')}_row"
        named = (entry, f"{entry}_in", rows, f"{rows}_in")
        entries = [name for name in named if name in firmware.symbols]
        self.ranges: list[tuple[int, int, Place]] = [self.range("main", "main")]
        self.ranges += [self.range(name, "entry") for name in entries or [entry]]
        self.begin: int | None = None
        self.end: int | None = None
        self._steps: list[tuple[str, int, int]] = []
        self._open: tuple[str, int] | None = None

    def range(self, name: str, place: _P) -> tuple[int, int, _P]:
        """Return a function's first address, that behind its last, and what it is for."""
        symbol = self.firmware.symbol(name)
        first = symbol.address & ~1
        return first, first + max(symbol.size, 2), place

    def note(self, place: Place, address: int, now: int) -> None:
        """Note that a block of this code begins, after ``now`` instructions."""
        if place == "kernel":
            if self.begin is not None and self._open is None:
                self._open = (self.kernels[address], now)
        elif place == "entry":
            if self.begin is None:
                self.begin = now
            else:
                self._close(self.begin, now)
        elif self.begin is not None and self.end is None:
            # A last kernel whose code is the entry function's, too, returns to main.
            self._close(self.begin, now)
            self.end = now

    @property
    def reached(self) -> Reached:
        """How far the run has come."""
        begun, ended = self.begin is not None, self.end is not None
        return Reached(begun, len(self._steps), self._open is not None, ended)

    def _close(self, begin: int, now: int) -> None:
        """Note that the kernel has returned that was called last, if it has not before."""
        if self._open is not None:
            kernel, start = self._open
            self._steps.append((kernel, start - begin, now - begin))
            self._open = None

    def result(
        self,
        outputs: dict[str, bytes],
        stack: bytes,
        executed: Executed | None = None,
        step_executed: Sequence[Executed] = (),
    ) -> ArmRun:
        """Return the results of a run, given the contents of outputs and stack after it.

        Raises:
            SimulationError: the entry function was not called, or the stack has no room left.
        """
        if self.begin is None or self.end is None:
            raise self.firmware.error(f"the firmware never called {self.entry!r}")
        used = len(stack.lstrip(PAINT))
        if used == len(stack):
            raise self.firmware.error(
                f"the program used all {used:,} B of its stack",
                "reserve more in the SoC's description: Host.stack",
            )
        steps, now = tuple(self._steps), self.end - self.begin
        return ArmRun(now, steps, outputs, used, executed, tuple(step_executed))


def flash_image(firmware: ArmFirmware) -> bytes:
    """Return the contents of the memory with code, from its first byte on."""
    base, image = firmware.machine.memory(firmware.machine.code_memory).base, bytearray()
    for segment in read_segments(firmware.elf):
        offset = segment.address - base
        image.extend(bytes(max(0, offset + len(segment.data) - len(image))))
        image[offset : offset + len(segment.data)] = segment.data
    return bytes(image)
