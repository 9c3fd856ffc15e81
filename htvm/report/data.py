"""What reports are made of: plain frozen values, filled by a build or a run, drawn by this room.

Nothing here knows the compiler or the simulator, so a report can be made, stored and read again
without either.  Units: sizes in bytes, times in cycles of the SoC's clock or in ms, SQNR in dB.
A number that was not measured or predicted is ``None``, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from htvm.report.picture_types import Energy, Machine, MemoryMap, Node, Recipe
from htvm.result import Causes, Interval

__all__ = [
    "L1Use",
    "LayerRow",
    "Memory",
    "ReportData",
    "SqnrRow",
    "Summary",
    "Unit",
]


@dataclass(frozen=True)
class LayerRow:
    """One step of a built network: a layer on an accelerator, or a CPU kernel.

    Attributes:
        name: layer name; a CPU kernel that computes several joins them with ``" + "``.
        op: "conv2d", "depthwise", "dense", "add", "average_pool", "softmax", ...
        accelerator: short name of the accelerator, or "cpu".
        shape: sizes in words, e.g. ``"16x32x32 -> 32x16x16, 3x3/2"`` (see `shapes.describe`).
        macs: multiply-accumulates; 0 for operators without.
        cycles: simulated; None before a run, and on a platform without host cycles.
        predicted_cycles: what the cost model said; None where it has nothing to say.
        tile: tile sizes in words, e.g. ``"K16 C16 32x32 (2 tiles)"``; empty off accelerators.
        l1_bytes: most bytes of L1 in use at once; None off accelerators.
        source: name of the operator in the source file; empty if it has none.
        causes: what the cycles were spent on; None where there are none.
        tiles: number of tiles; None off accelerators.
        double_buffered: whether tiles are loaded and stored while others are computed.
        resident: which tensors it finds in L1 or leaves there, e.g. "input and output".
        kind: "layer" and "cpu" compute; "prologue" and "epilogue" convert layouts; "copy" copies.
        start: cycle of the call, counted from that of the inference; None without cycles.
        l2_read, l2_written: bytes of activations that it moves out of L2 and into it; None where
            that is not known.  Of a CPU kernel: the sizes of what it reads and writes.
        l2_weights: bytes of weights, biases and tables that it reads, as often as it reads them.
        energy_uj: energy in microjoules, derived from a published average power; None where there
            is none.
    """

    name: str
    op: str
    accelerator: str
    shape: str = ""
    macs: int = 0
    cycles: int | None = None
    predicted_cycles: int | None = None
    tile: str = ""
    l1_bytes: int | None = None
    source: str = ""
    causes: Causes | None = None
    tiles: int | None = None
    double_buffered: bool = False
    resident: str = ""
    kind: str = ""
    start: int | None = None
    l2_read: int | None = None
    l2_written: int | None = None
    l2_weights: int | None = None
    energy_uj: float | None = None

    @property
    def label(self) -> str:
        """The layer's name, with the operator where the name does not say it."""
        said = all(part.rsplit("_", 1)[0] in self.op for part in self.name.split(" + "))
        return self.name if said else f"{self.name} ({self.op})"


@dataclass(frozen=True)
class Unit:
    """One unit of the SoC and how long it was busy in a run.

    Attributes:
        name: "host", or a device: "dma", "digital", ...
        cycles: busy cycles; the host is busy when it does not wait for a device.
        what: what it did in words, e.g. "transfers between L2 and L1".
        charged: cycles charged to it: each to a core that is busy, else to the DMA if it is, else
            to the host, so that they add up to the whole.
    """

    name: str
    cycles: int
    what: str = ""
    charged: int = 0


@dataclass(frozen=True)
class Memory:
    """How a build uses L2 (bytes).

    Attributes:
        code: instructions and their read-only data.
        constants: weights, biases, tables.
        arena: planned peak of intermediates and workspaces.
        stack: reserved for the stack, or its high-water mark if a run measured it.
        limit: size of L2; None where there is no limit.
        arena_bound: proven lower bound of any arena; None if unknown.
        io: inputs and outputs, which are the caller's, and the runtime's variables.
    """

    code: int
    constants: int
    arena: int
    stack: int
    limit: int | None = None
    arena_bound: int | None = None
    io: int = 0

    @property
    def total(self) -> int:
        """Bytes of L2 taken altogether."""
        return self.code + self.constants + self.arena + self.stack + self.io


@dataclass(frozen=True)
class L1Use:
    """How the accelerators of a region use L1, and what planning it as a whole is worth.

    Attributes:
        region: its name.
        layers: how many it has.
        limit: bytes of L1 there are.
        peak: bytes used.
        live: largest sum of what is there at a time: no placement takes less.
        resident: names of the tensors that stay between layers.
        cycles: predicted for the region's layers.
        apart: the same with the best plan of each layer alone.
        gap: by which part of the cycles another choice of tiles and tensors could at most be
            quicker.
    """

    region: str
    layers: int
    limit: int
    peak: int
    live: int
    resident: tuple[str, ...]
    cycles: int
    apart: int
    gap: float


@dataclass(frozen=True)
class Summary:
    """A whole build, and its run if there was one.

    Attributes:
        network: name of the model.
        target: e.g. "diana.digital".
        platform: "rv32" or "host".
        clock_hz: clock with which cycles become milliseconds.
        memory: use of L2.
        cycles: of the whole inference; None before a run and on a platform without cycles.
        units: busy cycles per unit of the SoC; empty without a run.
        causes: what the cycles were spent on; None without a run.
        notes: sentences to print below the tables, e.g. what the numbers leave out.
        policy, schedule: how layers were dispatched and executed; empty without accelerators.
    """

    network: str
    target: str
    platform: str
    clock_hz: int
    memory: Memory
    cycles: int | None = None
    units: tuple[Unit, ...] = ()
    notes: tuple[str, ...] = ()
    causes: Causes | None = None
    policy: str = ""
    schedule: str = ""

    @property
    def latency_ms(self) -> float | None:
        """Time of the whole inference in ms, None without cycles."""
        return None if self.cycles is None else self.cycles * 1000.0 / self.clock_hz


@dataclass(frozen=True)
class SqnrRow:
    """What retargeting cost one layer.

    Attributes:
        layer: layer name.
        sqnr_db: signal to quantization noise of the layer's output against the source model.
        source: name in the source file; empty if it has none.
    """

    layer: str
    sqnr_db: float
    source: str = ""


@dataclass(frozen=True)
class ReportData:
    """What a report tells, to be drawn; `htvm.report.types.Report` also draws itself.

    Attributes:
        summary: the whole.
        layers: one row per step, in execution order.
        sqnr: what retargeting cost, per layer; empty if the scheme was not changed.
        output_sqnr_db: the same at the output; None if the scheme was not changed.
        l1: use of L1, a row per region.
        measured_on: the inputs that this was measured on, in words.
        same_decision: share of them, 0 to 1, with the source's largest output; None if the network
            decides nothing, or the scheme was not changed.
        machine: what the SoC is; None where it is not known.
        timeline: what each unit did when ("waiting": the host polls); empty without cycles.
        maps: what lies where in L1 and in the arena of L2.
        graph: the operators of the network, in execution order.
        energy: of the run; None without cycles or powers.
        recipe: how to make it again; None where that is not known.
    """

    summary: Summary
    layers: tuple[LayerRow, ...]
    sqnr: tuple[SqnrRow, ...] = ()
    output_sqnr_db: float | None = None
    l1: tuple[L1Use, ...] = ()
    measured_on: str = ""
    same_decision: float | None = None
    machine: Machine | None = None
    timeline: tuple[Interval, ...] = ()
    maps: tuple[MemoryMap, ...] = ()
    graph: tuple[Node, ...] = ()
    energy: Energy | None = None
    recipe: Recipe | None = None

    @property
    def no_cycles(self) -> str:
        """Why there are no cycles; empty where there are."""
        if self.summary.cycles is not None:
            return ""
        return "this platform counts none" if self.summary.platform == "host" else "not run yet"
