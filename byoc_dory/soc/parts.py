"""The plain records of a SoC description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from byoc_dory.errors import TargetError
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.cores import FlashReads, Host


def round_up(value: int, step: int) -> int:
    """Return ``value`` rounded up to a multiple of ``step``."""
    return -(-value // step) * step


def check_counts(device: Any, *names: str) -> None:
    """Refuse fields of a device that are below 1, for it or a cost model divides by them.

    Raises:
        TargetError: the message names the field, its value and the device.
    """
    for name in names:
        value = getattr(device, name)
        if value < 1:
            raise TargetError(
                f"{name} is {value}", where=f"'{device.name}'", hint="it is at least 1"
            )


def check_powers_of_two(device: Any, *names: str) -> None:
    """Refuse fields of a device that are no powers of two, such as alignments.

    Raises:
        TargetError: the message names the field, its value and the device.
    """
    for name in names:
        value = int(getattr(device, name))
        if value < 1 or value & (value - 1):
            raise TargetError(
                f"{name} is {value}, not a power of two",
                where=f"'{device.name}'",
                hint="give it 1, 2, 4 and so on",
            )


@dataclass(frozen=True)
class Memory:
    """One memory of the SoC.

    Attributes:
        name: "L1", "L2", ...; accelerators and messages refer to it by this name.
        base: device address of its first byte.
        size: usable bytes.
        title: name in reports.
        mapped: whether harts can access it with loads and stores, like L2; otherwise only devices
            can.
        reserved: bytes after the usable ones that the runtime uses itself (stacks, queues).
        constants: whether constants can be placed there, which are loaded with the program.
        reads: how a microcontroller's flash is read; None if it is read without waiting, or that is
            not known.
    """

    name: str
    base: int
    size: int
    title: str = ""
    mapped: bool = False
    reserved: int = 0
    constants: bool = False
    reads: FlashReads | None = None

    @property
    def end(self) -> int:
        """First device address after the memory."""
        return self.base + self.size


@dataclass(frozen=True)
class Dma:
    """The DMA engine between L2 and L1: a queue of one-dimensional commands, executed in order.

    A call of the driver moves a block; the driver collapses dimensions that are contiguous in both
    memories.  A block that is one command costs ``call_cycles`` plus its bytes; one with n > 1
    commands costs ``call_cycles + n * command_cycles`` plus its bytes.  Both constants include the
    host's driver code, whose measured share is ``driver_*``: the device itself is busy for the
    difference.  A driver that waits for each command pays the sum; one that queues commands while
    something else runs pays less.

    Attributes:
        registers: device address of the register block.
        bytes_per_cycle: width of the port in bytes.
        granule: the bytes of each command are charged rounded up to a multiple of this.
        l1_align, l2_align: required alignment of each command's addresses, in bytes;
            powers of two up to 16.
        queue_depth: number of commands that can be under way at once, including the running one.
        call_cycles, command_cycles: constant cycles per call and per command.
        driver_single_cycles: host cycles of a call with one command.
        driver_first_cycles: host cycles of a call with several commands: entry, exit and one
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

    def __post_init__(self) -> None:
        check_counts(self, "bytes_per_cycle", "granule", "queue_depth")
        check_powers_of_two(self, "l1_align", "l2_align")
        for name in ("l1_align", "l2_align"):
            if getattr(self, name) > ALIGNMENT:
                raise TargetError(
                    f"{name} is {getattr(self, name)}",
                    where=f"'{self.name}'",
                    hint=f"tensors begin at multiples of {ALIGNMENT} B: ask for that at most",
                )
        shares = (
            (self.call_cycles, self.driver_single_cycles, "one command"),
            (self.call_cycles + self.command_cycles, self.driver_first_cycles, "several commands"),
        )
        for whole, driver, what in shares:
            if driver > whole:
                raise TargetError(
                    f"a call with {what} takes {whole} cycles, of which the driver has {driver}",
                    where=f"DMA {self.name}",
                    hint="call_cycles and command_cycles include the driver's",
                )

    def row_cycles(self, size: int) -> int:
        """Return the cycles of a row of ``size`` bytes within a transfer of several rows."""
        return -(-size // self.bytes_per_cycle)

    def cycles(self, command_bytes: int, commands: int = 1) -> int:
        """Return the cycles of one driver call.

        Args:
            command_bytes: bytes of each 1-D command, after collapsing contiguous dimensions.
            commands: number of such commands in the call.
        """
        moved = -(-round_up(command_bytes, self.granule) // self.bytes_per_cycle)
        setup = self.call_cycles + (self.command_cycles * commands if commands > 1 else 0)
        return setup + commands * moved


@dataclass(frozen=True)
class SimControl:
    """Registers of the simulator, not of any chip: print, end of run, trace marks.

    Attributes:
        putchar: address; a byte stored there is printed.
        exit: address; a word stored there ends the run (htvm.firmware.machine describes the exit
            codes).
        trace: address; a word stored there is a mark, (index << 1) | (0 begin, 1 end).
    """

    putchar: int
    exit: int
    trace: int


@dataclass(frozen=True)
class Power:
    """An average power, for estimating the energy of a run.

    Attributes:
        units: names of the working accelerators ("cpu" for the host, or for cores that run without
            an accelerator); the power is that of the whole SoC while exactly these are working.
        milliwatts: average power at the SoC's clock, in mW.
        source: kind (published, public code, derived, assumed) and source of the number.
    """

    units: tuple[str, ...]
    milliwatts: float
    source: str


@dataclass(frozen=True)
class TargetSpec:
    """A target that users can name, and the accelerators that it may use.

    Attributes:
        name: name of the target, e.g. "diana.digital".
        accelerators: names of accelerators, in order of preference.
        policy: name of the default policy that chooses between them (see `htvm.policy`).
        host: the host core; None for the SoC's own.
    """

    name: str
    accelerators: tuple[str, ...]
    policy: str = "bitwidth"
    host: Host | None = None
