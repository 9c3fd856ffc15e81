"""The plain records that a SoC's description is made of."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Dma", "Memory", "Power", "SimControl", "TargetSpec", "round_up"]


def round_up(value: int, step: int) -> int:
    """Return ``value`` rounded up to a multiple of ``step``."""
    return -(-value // step) * step


@dataclass(frozen=True)
class Memory:
    """One memory of the SoC.

    Attributes:
        name: "L1", "L2", ...; accelerators and messages refer to it.
        base: device address of its first byte.
        size: usable bytes.
        title: what it is called in reports.
        mapped: whether harts load from it and store to it like L2; otherwise only devices reach
            it.
        reserved: bytes behind the usable ones that the runtime keeps for itself (stacks, queues).
    """

    name: str
    base: int
    size: int
    title: str = ""
    mapped: bool = False
    reserved: int = 0

    @property
    def end(self) -> int:
        """First device address behind the memory."""
        return self.base + self.size


@dataclass(frozen=True)
class Dma:
    """The DMA engine between L2 and L1: a queue of one-dimensional commands, executed in order.

    A call of the driver moves a block; where its dimensions are contiguous in both memories the
    driver collapses them.  A block that is one command costs ``call_cycles`` plus its bytes; one
    of n > 1 commands costs ``call_cycles + n * command_cycles`` plus its bytes.  Both constants
    include the host's driver code, whose measured share is ``driver_*``: the device itself is
    busy for the difference.  A driver that waits for each command costs the sum; one that lets
    them queue up while something else runs costs less.

    Attributes:
        registers: device address of the register block.
        bytes_per_cycle: width of the port.
        granule: the bytes of each command are charged rounded up to this.
        l1_align, l2_align: required alignment of each command's addresses.
        queue_depth: commands that can be under way at once, the running one included.
        call_cycles, command_cycles: see above.
        driver_single_cycles: host cycles of a call that is one command.
        driver_first_cycles: host cycles of a call of several commands, entry, exit and one
            command (the device charges the rest of call + command with the first one).
        driver_next_cycles: host cycles of each further command of such a call.
    """

    name: str
    registers: int
    bytes_per_cycle: int
    granule: int
    l1_align: int
    l2_align: int
    queue_depth: int
    call_cycles: int
    command_cycles: int
    driver_single_cycles: int
    driver_first_cycles: int
    driver_next_cycles: int

    def cycles(self, command_bytes: int, commands: int = 1) -> int:
        """Return the cycles of one driver call.

        Args:
            command_bytes: bytes of each 1-D command, after collapsing contiguous dimensions.
            commands: how many such commands the call issues.
        """
        moved = -(-round_up(command_bytes, self.granule) // self.bytes_per_cycle)
        setup = self.call_cycles + (self.command_cycles * commands if commands > 1 else 0)
        return setup + commands * moved


@dataclass(frozen=True)
class SimControl:
    """Registers of the simulator, not of any chip: print, end of run, trace marks.

    Attributes:
        putchar: a byte stored here is printed.
        exit: a word stored here ends the run (how it carries the exit code: htvm.firmware.machine).
        trace: a word stored here is a mark, (index << 1) | (0 begin, 1 end).
    """

    putchar: int
    exit: int
    trace: int


@dataclass(frozen=True)
class Power:
    """An average power, with which the energy of what ran is estimated.

    Attributes:
        units: names of the accelerators at work ("cpu" for the host, or for cores that run
            without one); the power is that of the whole while exactly these are.
        milliwatts: average, at the SoC's clock.
        source: kind (published, public code, derived, assumed) and where the figure is from.
    """

    units: tuple[str, ...]
    milliwatts: float
    source: str


@dataclass(frozen=True)
class TargetSpec:
    """A name a user can build for, and the accelerators it may use.

    Attributes:
        name: e.g. "diana.digital".
        accelerators: names, in order of preference.
        policy: name of the dispatch policy that decides between them, unless the user chooses
            one (see `htvm.policy`).
    """

    name: str
    accelerators: tuple[str, ...]
    policy: str = "bitwidth"
