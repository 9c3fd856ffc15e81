"""The base classes of SoC descriptions.

A SoC is three things: data (the dataclasses of this module, of :mod:`byoc_dory.soc.parts` and of
:mod:`byoc_dory.soc.cores`), rules and heuristics (methods of an accelerator), and C instructions
with a device model (``runtime_c/soc/<driver>``, or a folder of the SoC's own package).  All
hardware numbers of the project are in these data and nowhere else: tiler, cost model, device model
and firmware read them from here, the C side through :mod:`byoc_dory.soc.header`.

Units: sizes in bytes, times in cycles of the SoC's single clock, addresses as seen by the 32-bit
host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from byoc_dory.emit import Emitter, RegionEmitter
from byoc_dory.emit.layout import RowLayout, TensorLayout
from byoc_dory.errors import TargetError, named
from byoc_dory.layers import Layer
from byoc_dory.layers.layer import value_of
from byoc_dory.layers.rowwise import ItaSoftmax
from byoc_dory.options import TilingOptions
from byoc_dory.plan import Follower, LayerPlan
from byoc_dory.soc.cores import Cluster, CoreTiming, Host, HostCost
from byoc_dory.soc.parameters import Parameter, Value, parse_parameters
from byoc_dory.soc.parts import Dma, Memory, Power, SimControl, TargetSpec, round_up
from byoc_dory.soc.regions import RegionCheck, RegionRunner
from byoc_dory.soc.schemes import NumberScheme, ShiftScheme
from byoc_dory.soc.vendor import VendorDriver
from byoc_dory.tileloop.cycles import Costs, Prices, predicted_cycles
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling import Objective, TilingProblem
from byoc_dory.verdict import Accepted, Refused, Verdict, statement

__all__ = [
    "Accelerator",
    "Cluster",
    "CoreTiming",
    "Dma",
    "Host",
    "HostCost",
    "Memory",
    "Parameter",
    "Power",
    "Rule",
    "Rules",
    "SimControl",
    "Soc",
    "Target",
    "TargetSpec",
    "round_up",
]


class Rule(Protocol):
    """A function that checks a layer; its docstring is its public statement."""

    __name__: str
    __doc__: str | None

    def __call__(self, soc: Soc, core: Any, layer: Layer, /) -> Verdict:
        """Check one layer for the accelerator ``core`` of ``soc``."""
        ...


Rules: TypeAlias = tuple[tuple[str, Rule], ...]
"""Rules with their identifiers, in the order in which they are checked."""


@dataclass(frozen=True)
class Accelerator(ABC):
    """One accelerator of a SoC.

    The author derives a class with fields for the accelerator's numbers, and the methods below.
    Descriptions are compared and listed without a solver and templates, which are loaded by those
    who solve and write C.

    Attributes:
        name: short name, unique within the SoC; composites are named "<name>.<op>".
        title: name in reports.
        registers: device address of the register block.
        l1: name of the memory that it works on.
        family: accelerators of one family share their L1 and the layout of activations in it, so
            that tensors pass between them without conversion and a region may hold layers of both.
    """

    name: str
    title: str
    registers: int
    l1: str
    family: str

    # ------------------------------------------------------------------ what it is

    @property
    def peak_macs(self) -> float | None:
        """Peak multiply-accumulates per cycle; None if not defined."""
        return None

    @property
    def scheme(self) -> NumberScheme:
        """The number scheme that it executes; retargeting writes its layers in this scheme."""
        return ShiftScheme()

    @property
    def softmax(self) -> ItaSoftmax | None:
        """The softmax of the attention that it computes; None if it computes none."""
        return None

    @property
    def vendor_driver(self) -> VendorDriver | None:
        """The vendor's driver that generated C calls; None if the project has a driver itself."""
        return None

    def noise_settings(self, deviation: float, seed: int) -> dict[int, int]:
        """Return device register -> value for a run with analog noise; empty without analog parts.

        Args:
            deviation: standard deviation in steps of the converters.
            seed: 32-bit seed.
        """
        return {}

    # ------------------------------------------------------------------ what it takes

    @property
    @abstractmethod
    def rules(self) -> Rules:
        """The rules that a layer must satisfy.

        Their identifiers are the accelerator's name in capitals and a number, from 1 on without
        gaps, such as "DIGITAL-4".  A rule keeps its number wherever it is checked.
        """

    @property
    def statements(self) -> tuple[str, ...]:
        """The rules as users read them: "DIGITAL-4: The stride is 1x1 or 2x2."."""
        return tuple(f"{identifier}: {statement(rule)}" for identifier, rule in self.rules)

    def can_clip_to(self, bounds: tuple[int, int]) -> bool:
        """Return whether it can clip a layer's int8 output to these inclusive bounds."""
        return bounds in ((-128, 127), (0, 127))

    def judge(self, soc: Soc, layer: Layer) -> Verdict:
        """Return the first refusal of :attr:`rules`, or acceptance."""
        for identifier, rule in self.rules:
            verdict = rule(soc, self, layer)
            if isinstance(verdict, Refused):
                return Refused(verdict.reason, f"{identifier}: {statement(rule)}")
        return Accepted()

    def expand(self, soc: Soc, layer: Layer) -> Sequence[tuple[Layer, str]]:
        """Return the layers that ``layer`` is executed as, each with its accelerator's name.

        They belong to the same family, and the last one produces the output of ``layer``.
        """
        return ((layer, self.name),)

    @property
    def obstacles(self) -> Mapping[str, str]:
        """Why operators without a layer are not its own, by kind; else verdicts name the kind."""
        return {}

    def instead(self, layer: Layer) -> str:
        """Return what it computes instead of a layer, with the same result; empty if nothing.

        Such layers are not offered to it under the published schedule, nor where rewrites are off.
        """
        return ""

    # ------------------------------------------------------------------ weights that stay

    @property
    def weight_memories(self) -> tuple[str, ...]:
        """Memories that can keep layers' weights, equally fast, the preferred one first."""
        return ()

    def kept_bytes(self, layer: Layer) -> int:
        """Return the bytes of a layer's weights in one of :attr:`weight_memories`."""
        return 0

    def keeping(self, memory: str) -> Accelerator:
        """Return the accelerator with weights kept there; if "", loaded into L1 with each tile."""
        return self

    # ------------------------------------------------------------------ tiles and cycles

    @property
    @abstractmethod
    def objectives(self) -> Mapping[str, Objective]:
        """The tiling objectives by name."""

    @abstractmethod
    def tiling_problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return the tiling problem of ``layer``, with :meth:`budget` bytes of L1.

        What an accelerator does differently under some options is decided here and in the methods
        below, so that there is no accelerator for the wrong ones.
        """

    def budget(self, soc: Soc, options: TilingOptions) -> int:
        """Return how many bytes of L1 may be used: all of L1 if the options say nothing else."""
        size = soc.memory(self.l1).size
        return size if options.l1_budget is None else options.l1_budget

    @abstractmethod
    def tile_program(
        self, soc: Soc, layer: Layer, plan: LayerPlan, options: TilingOptions
    ) -> TileProgram:
        """Return the tile-by-tile execution of ``layer`` under a plan."""

    @abstractmethod
    def costs(self, soc: Soc, layer: Layer, program: TileProgram, options: TilingOptions) -> Costs:
        """Return the cycles of the transfers and calls in a program of ``layer``.

        The costs of single transfers and calls do not depend on places in L1 or on the number of
        buffers.
        """

    def plan_cost(
        self,
        soc: Soc,
        layer: Layer,
        plan: LayerPlan,
        options: TilingOptions,
        known: Prices | None = None,
    ) -> int:
        """Return the predicted cycles of ``layer`` under a plan; its offsets do not matter.

        Args:
            soc: description of the SoC.
            layer: a layer that the rules accept.
            plan: of the layer.
            options: options that determine schedule and loop order.
            known: cache of the prices of tiles, shared by calls that differ only in the plan's
                buffers.

        Raises:
            TargetError: a number of the description cannot be computed with; the accelerator is
                named.
        """
        with named(self.name, soc.name):
            program = self.tile_program(soc, layer, plan, options)
            return predicted_cycles(program, self.costs(soc, layer, program, options), known)

    def counts(self, soc: Soc, layer: Layer, options: TilingOptions) -> Hashable:
        """Return what :meth:`plan_cost` depends on, of a layer and of the options.

        The same layer's :meth:`tiling_problem` may also depend on its limit.  By default, this is
        everything but names and objectives.  An accelerator that runs hundreds of layers of one
        size may leave out what its model does not read, so that these are tiled once.
        """
        return value_of(layer), replace(options, objective=None, layers=())

    @property
    def preloads(self) -> bool:
        """Whether its layers load the next one's constants, and find theirs loaded.

        Tile programs must then have the plan's (`LayerPlan.preload`, `LayerPlan.preloaded`).
        """
        return False

    def leaving(
        self,
        soc: Soc,
        layer: Layer,
        plan: LayerPlan,
        following: Follower,
        options: TilingOptions,
    ) -> Iterator[tuple[LayerPlan, int]]:
        """Yield plans under which the next layer, also its own, completes a layer's last tile.

        By default none.  Tile programs must have the plan's (`LayerPlan.leaves`, `LayerPlan.left`).

        Args:
            soc: description of the SoC.
            layer: a layer that the rules accept.
            plan: of the layer.
            following: the next layer, and its plan.
            options: options of the tiler.

        Yields:
            A plan that leaves the last tile, and how many tiles of the next layer (0 or 1) may be
            started before that is complete.
        """
        yield from ()

    @property
    def rows_together(self) -> int:
        """Number of rows of a matrix that it computes together; 1: there is no such number."""
        return 1

    def held_back(self, soc: Soc, layer: Layer) -> str:
        """Return why a layer cannot be started, and be waited for after others; empty if it can."""
        return f"calls of '{self.name}' return when their layer is done"

    def computes_beside_host(self, layer: Layer) -> bool:
        """Whether a layer in one tile can be started, and be waited for after work of the host.

        Its emitter is then a `StartingEmitter`.
        """
        return False

    def overwrites(self, layer: Layer) -> bool:
        """Whether the result of a layer in one tile may be written over its only operand."""
        return False

    def started_cycles(self, soc: Soc, layer: Layer, options: TilingOptions) -> int:
        """Return the cycles for which a layer that was started computes."""
        raise NotImplementedError(self.name)

    @property
    def takes_next(self) -> bool:
        """Whether :meth:`followed` may return plans."""
        return False

    def followed(
        self,
        soc: Soc,
        layer: Layer,
        plan: LayerPlan,
        follower: Follower,
        options: TilingOptions,
    ) -> tuple[LayerPlan, int] | None:
        """Return a plan under which the next layer's tiles are computed beside those of ``layer``.

        By default None: layers are computed one after another.

        Args:
            soc: description of the SoC.
            layer: a layer that the rules accept.
            plan: of the layer, without offsets in L1.
            follower: the next layer, and its plan alone.
            options: options of the tiler.

        Returns:
            The plan, with the follower, and the predicted cycles that it saves; None if it saves
            none.  Constants of the follower are loaded behind those of ``layer``.
        """
        return None

    def problem(self, soc: Soc, layer: Layer, options: TilingOptions) -> TilingProblem:
        """Return the `tiling_problem`.

        Raises:
            TargetError: a number of the description makes an impossible one; the accelerator is
                named.
        """
        with named(self.name, soc.name):
            return self.tiling_problem(soc, layer, options)

    # ------------------------------------------------------------------ C

    def layout(self, soc: Soc) -> TensorLayout:
        """Return the layout of tensors, the same for all accelerators of its family.

        By default rows of channels without padding.
        """
        return RowLayout(soc.host.cost.layout_byte)

    @property
    def region_runner(self) -> Callable[[Path], RegionRunner] | None:
        """What executes regions natively, made with the SoC's native library; None by default."""
        return None

    def region_check(
        self, soc: Soc, options: TilingOptions
    ) -> Callable[[Path], RegionCheck] | None:
        """Return what checks regions, made with the SoC's models as a library; None by default.

        For an accelerator whose programs are another compiler's.
        """
        return None

    @abstractmethod
    def emitter(self, soc: Soc) -> Emitter | RegionEmitter:
        """Return the emitter that generates C, from plans or for regions as a whole."""


@dataclass(frozen=True)
class Soc:
    """A SoC description.

    Attributes:
        name: name in messages and files.
        clock_hz: clock for converting cycles to times.
        memories: all memories; "L2" holds arena and stack, and code and constants unless
            ``code_memory`` is another.
        host: the core that runs the firmware.
        sim: registers of the simulator.
        dma: the DMA engine; None if there is none.
        accelerators: the accelerators, in the order in which they are offered a layer.
        targets: the targets that users can name.
        driver: a C identifier: prefix of the devices' names in ``htvm_soc.h``, and name of the
            folder of drivers and device models ("none" for a SoC without devices).
        package: importable package with drivers and device models in its folder ``runtime``; empty
            if they are in ``runtime_c/soc/<driver>``.
        libraries: folders below ``runtime_c`` whose C files belong to the drivers, too.
        code_memory: name of the memory with code and constants, if that is not L2.
        parameters: what the user can set in a target's name, e.g. ``siracusa:cores=4``.
        design: returns the SoC for values of all parameters, given by name; it refuses values that
            contradict each other with a `TargetError`.
        values: values of the parameters, by name, in their order; empty for the defaults.
        numbers: numbers of the description that were changed, by name (`byoc_dory.soc.numbers`).
        adjustable: names of the memories whose size the user can choose.
        cluster: harts besides the host core; None if the host is the only one.
        powers: average powers, each for a set of working accelerators; may be empty.
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
    libraries: tuple[str, ...] = ()
    code_memory: str = "L2"
    parameters: tuple[Parameter, ...] = ()
    design: Callable[..., Soc] | None = field(default=None, repr=False, compare=False)
    values: tuple[tuple[str, Value], ...] = ()
    numbers: tuple[tuple[str, Value], ...] = ()

    def designed(self, given: Mapping[str, object], where: str = "") -> Soc:
        """Return the SoC with other values of its parameters; those not given keep defaults.

        Args:
            given: values by name, as text or Python values.
            where: what to name in an error.

        Raises:
            TargetError: a parameter is unknown, a value is not possible, or values contradict each
                other.
        """
        values = parse_parameters(self.parameters, given, where or f"SoC {self.name}")
        if self.design is None or all(
            values[entry.name] == entry.default for entry in self.parameters
        ):
            return self
        return replace(self.design(**values), values=tuple(values.items()))

    @property
    def settings(self) -> dict[str, Value]:
        """The value of each parameter by name."""
        return dict(self.values) or {entry.name: entry.default for entry in self.parameters}

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

    @property
    def stacks(self) -> int:
        """Bytes reserved for the stacks of the host core and of its cluster's other harts."""
        if self.cluster is None:
            return self.host.stack
        return self.host.stack + (self.cluster.harts - 1) * self.cluster.worker_stack

    def accelerator(self, name: str) -> Accelerator:
        """Return the accelerator called ``name``.

        Raises:
            TargetError: the SoC has no such accelerator.
        """
        for accelerator in self.accelerators:
            if accelerator.name == name:
                return accelerator
        names = ", ".join(accelerator.name for accelerator in self.accelerators) or "none"
        raise TargetError(
            f"there is no accelerator {name!r}",
            where=f"SoC {self.name}",
            hint=f"its accelerators: {names}",
        )

    def power(self, *units: str) -> Power | None:
        """Return the power while exactly these accelerators are working; None if unknown.

        Args:
            units: names of the accelerators, in any order; "cpu" for the host.
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
        previous = self.memory(memory)
        if memory not in self.adjustable:
            raise TargetError(
                f"the size of {memory} is fixed at {previous.size} B",
                where=f"SoC {self.name}",
                hint="use a target whose memory is adjustable, such as generic.cpu",
            )
        # Device registers have higher addresses than every memory; a memory must not grow into
        # them.
        limit = min(
            [other.base for other in self.memories if other.base > previous.base]
            + [self.sim.putchar, 1 << 32]
        )
        if size <= 0 or size % 16 or previous.base + size > limit:
            raise TargetError(
                f"{memory} cannot have {size} B",
                where=f"SoC {self.name}",
                hint=f"ask for a multiple of 16 between 16 and {limit - previous.base}",
            )
        memories = tuple(
            replace(entry, size=size) if entry.name == memory else entry for entry in self.memories
        )
        return replace(self, memories=memories)


@dataclass(frozen=True)
class Target:
    """The target of a build: a SoC and the accelerators that may be used.

    Attributes:
        name: name, with the parameters that differ from their defaults, e.g. "diana.digital" or
            "siracusa.cluster:cores=4".
        soc: description of the SoC.
        accelerators: subset of ``soc.accelerators``; empty for a CPU target.
        policy: name of the default policy.
    """

    name: str
    soc: Soc
    accelerators: tuple[Accelerator, ...]
    policy: str = "bitwidth"

    def __str__(self) -> str:
        return self.name
