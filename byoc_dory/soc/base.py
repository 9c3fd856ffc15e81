"""The vocabulary of SoC descriptions.

A SoC is three things: data (the dataclasses of this module, of :mod:`byoc_dory.soc.parts` and of
:mod:`byoc_dory.soc.cores`), rules and heuristics (methods of an accelerator), and C
instructions with a device model (``runtime_c/soc/<driver>``, or a folder of the SoC's own
package).  Every hardware number of the project lives in such data and nowhere else: tiler, cost
model, device model and firmware read it from here, the C side through
:mod:`byoc_dory.soc.header`.

Units: sizes in bytes, times in cycles of the SoC's one clock, addresses as the 32-bit host sees
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from byoc_dory.errors import TargetError
from byoc_dory.soc.cores import Cluster, CoreTiming, Host, HostCost
from byoc_dory.soc.parts import Dma, Memory, Power, SimControl, TargetSpec, round_up
from byoc_dory.soc.schemes import NumberScheme, ShiftScheme
from byoc_dory.verdict import Accepted, Refused, Verdict, statement

if TYPE_CHECKING:
    from byoc_dory.emit import Emitter
    from byoc_dory.emit.tensor_layout import TensorLayout
    from byoc_dory.layers import Layer
    from byoc_dory.options import ScheduleKind, TilingOptions
    from byoc_dory.plan import LayerPlan
    from byoc_dory.tileloop.cycles import Costs, Prices
    from byoc_dory.tileloop.program import TileProgram
    from byoc_dory.tiling import Objective, Tile, TilingProblem

__all__ = [
    "Accelerator",
    "Cluster",
    "CoreTiming",
    "Dma",
    "Host",
    "HostCost",
    "Memory",
    "Power",
    "Rule",
    "SimControl",
    "Soc",
    "Target",
    "TargetSpec",
    "judge",
    "round_up",
]


class Rule(Protocol):
    """A small function whose docstring is the public statement of what the accelerator takes."""

    __name__: str
    __doc__: str | None

    def __call__(self, layer: Layer, core: Any, soc: Soc, /) -> Verdict:
        """Judge one layer for the accelerator ``core`` of ``soc``."""
        ...


def judge(layer: Layer, core: Any, soc: Soc, rules: tuple[Rule, ...]) -> Verdict:
    """The first objection of the accelerator's rules in order, or acceptance."""
    for rule in rules:
        verdict = rule(layer, core, soc)
        if isinstance(verdict, Refused):
            return Refused(verdict.reason, statement(rule))
    return Accepted()


@dataclass(frozen=True)
class Accelerator(ABC):
    """One accelerator of a SoC.

    The author derives a class: fields for the accelerator's numbers, and the methods below.
    Descriptions are compared and listed without a solver: modules that need one, or numpy, are
    imported by the methods, not by the module of the class.

    Attributes:
        name: short name, unique in the SoC; composites are called "<name>.<op>".
        title: what it is called in reports.
        registers: device address of the register block.
        l1: name of the memory it works on.
        family: accelerators of one family share their L1 and the layout of activations in it, so
            that tensors pass between them as they are and one region may hold layers of both.
    """

    name: str
    title: str
    registers: int
    l1: str
    family: str

    # ------------------------------------------------------------------ what it is

    @property
    def peak_macs(self) -> float | None:
        """Multiply-accumulates per cycle at best; None where there is no such figure."""
        return None

    @property
    def scheme(self) -> NumberScheme:
        """The arithmetic it executes; retargeting writes its layers in that form."""
        return ShiftScheme()

    def configured(self, options: TilingOptions) -> Accelerator:
        """Return the accelerator as these options want it used."""
        return self

    def noise_settings(self, deviation: float, seed: int) -> dict[int, int]:
        """Return device register -> value for a run with analog noise; empty where there is none.

        Args:
            deviation: standard deviation in steps of the converters.
            seed: 32 bits.
        """
        return {}

    # ------------------------------------------------------------------ what it takes

    @property
    @abstractmethod
    def rules(self) -> tuple[Rule, ...]:
        """The rules a layer must pass, in the order in which they are judged."""

    def judge(self, layer: Layer, soc: Soc) -> Verdict:
        """Return the first refusal of :attr:`rules`, or acceptance."""
        return judge(layer, self, soc, self.rules)

    def expand(self, layer: Layer, soc: Soc) -> Sequence[tuple[Layer, str]]:
        """Return the layers that ``layer`` is executed as, each with its accelerator's name.

        They belong to the same family, and the last one has the output of ``layer``.
        """
        return ((layer, self.name),)

    # ------------------------------------------------------------------ tiles and cycles

    @property
    @abstractmethod
    def objectives(self) -> Mapping[str, Objective]:
        """The tiling objectives by name."""

    @abstractmethod
    def tiling_problem(self, layer: Layer, soc: Soc, l1_budget: int | None = None) -> TilingProblem:
        """Return the tiling problem of ``layer``, with :meth:`budget` bytes of L1."""

    def budget(self, soc: Soc, l1_budget: int | None) -> int:
        """Return how many bytes of L1 may be used: ``l1_budget``, or all where it is None."""
        return soc.memory(self.l1).size if l1_budget is None else l1_budget

    @abstractmethod
    def tile_program(
        self, layer: Layer, plan: LayerPlan, soc: Soc, options: TilingOptions
    ) -> TileProgram:
        """Return how ``layer`` is executed tile by tile under a plan."""

    @abstractmethod
    def costs(self, layer: Layer, program: TileProgram, soc: Soc, options: TilingOptions) -> Costs:
        """Return the cycles of the transfers and calls in a program of ``layer``.

        Those of one transfer and of one call depend neither on places in L1 nor on how many
        buffers there are.
        """

    def plan_cost(
        self,
        layer: Layer,
        plan: LayerPlan,
        soc: Soc,
        options: TilingOptions,
        known: Prices | None = None,
    ) -> int:
        """Return the predicted cycles of ``layer`` under a plan; its offsets do not matter.

        Args:
            layer: accepted by the rules.
            plan: of the layer.
            soc: description of the SoC.
            options: schedule and loop order.
            known: keeps the prices of tiles between calls that differ in the plan's buffers only.
        """
        from byoc_dory.tileloop.cycles import predicted_cycles

        program = self.tile_program(layer, plan, soc, options)
        return predicted_cycles(program, self.costs(layer, program, soc, options), known)

    def cost(self, layer: Layer, tile: Tile, soc: Soc, schedule: ScheduleKind = "published") -> int:
        """Return the predicted cycles of ``layer`` with this tile, alone in L1 with one buffer."""
        from byoc_dory.options import TilingOptions
        from byoc_dory.plan import alone
        from byoc_dory.tiling.problem import solution_of

        problem = self.tiling_problem(layer, soc)
        plan = alone(layer, solution_of(problem, tile), self.name, problem)
        return self.plan_cost(layer, plan, soc, TilingOptions(schedule=schedule))

    # ------------------------------------------------------------------ C

    def layout(self, soc: Soc) -> TensorLayout:
        """Return the layout of tensors, the same for all accelerators of its family.

        By default rows of channels without padding.
        """
        from byoc_dory.emit.row_layout import RowLayout

        return RowLayout(soc.host.cost.layout_byte)

    @abstractmethod
    def emitter(self, soc: Soc) -> Emitter:
        """Return what turns plans into C."""


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
