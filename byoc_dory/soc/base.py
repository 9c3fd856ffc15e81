"""The vocabulary of SoC descriptions.

A SoC is three things: data (the dataclasses of this module, of :mod:`byoc_dory.soc.cores` and of
:mod:`byoc_dory.soc.accelerator`), rules and heuristics (methods of an accelerator), and C
instructions with a device model (``runtime_c/soc/<driver>``, or a folder of the SoC's own
package).  Every hardware number of the project lives in such data and nowhere else: tiler, cost
model, device model and firmware read it from here, the C side through
:mod:`byoc_dory.soc.header`.

Units: sizes in bytes, times in cycles of the SoC's one clock, addresses as the 32-bit host sees
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_dory.errors import TargetError
from byoc_dory.soc.cores import Cluster, CoreTiming, Host, HostCost

if TYPE_CHECKING:
    from byoc_dory.soc.accelerator import Accelerator

__all__ = [
    "Cluster",
    "CoreTiming",
    "Dma",
    "Host",
    "HostCost",
    "Memory",
    "Power",
    "SimControl",
    "Soc",
    "Target",
    "TargetSpec",
    "round_up",
]


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


@dataclass(frozen=True)
class Soc:
    """A SoC description.

    Attributes:
        name: what it is called in messages and files.
        clock_hz: clock with which cycles become times.
        memories: all memories; "L2" holds code, constants, arena and stack.
        host: the core that runs the firmware.
        sim: the simulator's registers.
        dma: the DMA engine, None where there is none.
        accelerators: in the order in which they are offered a layer.
        targets: names to build for.
        driver: a C identifier: prefix of the devices' names in ``htvm_soc.h``, and the folder of
            drivers and device models ("none" for a SoC without devices).
        package: importable package in whose folder ``runtime`` drivers and device models are;
            empty where they are in ``runtime_c/soc/<driver>``.
        adjustable: names of memories whose size the user may ask for.
        cluster: harts beside the host core, None where it is alone.
        powers: average powers, each for a set of accelerators at work; there may be none.
    """

    name: str
    title: str
    clock_hz: int
    memories: tuple[Memory, ...]
    host: Host
    sim: SimControl
    dma: Dma | None
    accelerators: tuple[Accelerator, ...]
    targets: tuple[TargetSpec, ...]
    driver: str
    adjustable: tuple[str, ...] = ()
    cluster: Cluster | None = None
    powers: tuple[Power, ...] = ()
    package: str = ""

    def memory(self, name: str) -> Memory:
        """Return the memory called ``name``.

        Raises:
            TargetError: the SoC has no such memory.
        """
        for memory in self.memories:
            if memory.name == name:
                return memory
        raise TargetError(
            f"there is no memory {name!r}",
            where=f"SoC {self.name}",
            hint="it has " + ", ".join(memory.name for memory in self.memories),
        )

    def accelerator(self, name: str) -> Accelerator:
        """Return the accelerator called ``name``.

        Raises:
            TargetError: the SoC has no such accelerator.
        """
        for accelerator in self.accelerators:
            if accelerator.name == name:
                return accelerator
        known = ", ".join(accelerator.name for accelerator in self.accelerators) or "none"
        raise TargetError(
            f"there is no accelerator {name!r}",
            where=f"SoC {self.name}",
            hint=f"its accelerators: {known}",
        )

    def power(self, *units: str) -> Power | None:
        """Return the power while exactly these accelerators are at work; None where none is known.

        Args:
            units: their names, in any order; "cpu" for the host.
        """
        wanted = set(units)
        return next((power for power in self.powers if set(power.units) == wanted), None)

    def cycles_to_ms(self, cycles: int) -> float:
        """Return the time of ``cycles`` in milliseconds."""
        return cycles * 1000.0 / self.clock_hz

    def resized(self, memory: str, size: int) -> Soc:
        """Return the SoC with another size of an adjustable memory (bytes).

        Raises:
            TargetError: the memory's size is fixed, or ``size`` does not fit the address map.
        """
        old = self.memory(memory)
        if memory not in self.adjustable:
            raise TargetError(
                f"the size of {memory} is fixed at {old.size} B",
                where=f"SoC {self.name}",
                hint="use a target whose memory is adjustable, such as generic.cpu",
            )
        # Device registers lie above every memory; a memory must not grow into them.
        limit = min(
            [other.base for other in self.memories if other.base > old.base]
            + [self.sim.putchar, 1 << 32]
        )
        if size <= 0 or size % 16 or old.base + size > limit:
            raise TargetError(
                f"{memory} cannot have {size} B",
                where=f"SoC {self.name}",
                hint=f"ask for a multiple of 16 between 16 and {limit - old.base}",
            )
        memories = tuple(
            replace(entry, size=size) if entry.name == memory else entry for entry in self.memories
        )
        return replace(self, memories=memories)


@dataclass(frozen=True)
class Target:
    """What a user builds for: a SoC and the accelerators that may be used.

    Attributes:
        name: as the user wrote it, e.g. "diana.digital".
        soc: the description.
        accelerators: subset of ``soc.accelerators``, empty for a CPU target.
        policy: name of the dispatch policy, unless the user chooses another.
    """

    name: str
    soc: Soc
    accelerators: tuple[Accelerator, ...]
    policy: str = "bitwidth"
