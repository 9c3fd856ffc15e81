"""The contents of reports: plain frozen values, filled by a build or a run and drawn here.

Nothing here depends on the compiler or the simulator, so a report can be made, stored and read
again without them.  Units: sizes in bytes, times in cycles of the SoC's clock or in ms, SQNR in dB.
A number that was not measured or predicted is ``None``, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from htvm.activity import Interval
from htvm.result import Causes
from htvm.tools.report.parts import (
    Decisions,
    Energy,
    Estimate,
    MemoryAccess,
    MemoryMap,
    NetworkNode,
    Recipe,
    SocInfo,
)
from htvm.tools.report.verdicts import Improvement, Setting, VerdictRow

NOT_RUN = "not run yet"
BY_ROWS = "By rows: "
"""Begins the note that says what is computed by rows."""
"""Why the report of a build without a run has no cycles."""


@dataclass(frozen=True)
class LayerRow:
    """One step of a built network: a layer on an accelerator, or a CPU kernel.

    Attributes:
        name: layer name; for a CPU kernel that computes several layers, their names joined with ``"
            + "``.
        op: "conv2d", "depthwise", "dense", "add", "average_pool", "softmax", ...
        accelerator: short name of the accelerator, or "cpu".
        shape: sizes as text, e.g. ``"16x32x32 -> 32x16x16, 3x3/2"`` (see `shapes.describe`).
        macs: multiply-accumulates; 0 for operators without any.
        cycles: simulated cycles; None before a run, and on a platform without host cycles.
        predicted_cycles: cycles predicted by the cost model; None without a prediction.
        tile: tile sizes as text, e.g. ``"K16 C16 32x32 (2 tiles)"``; empty off accelerators.
        l1_bytes: peak use of L1 in bytes; None off accelerators.
        source: name of the operator in the source file; empty if it has no name there.
        causes: the cycles by cause; None without a run or without causes.
        tiles: number of tiles; None off accelerators.
        double_buffered: whether tiles are loaded and stored while others are computed.
        resident: the tensors that it finds in L1 or leaves there, e.g. "input and output".
        kind: "layer" and "cpu" compute; "prologue" and "epilogue" convert layouts; "copy" copies.
        start: cycle of the call, counted from the start of the inference; None without cycles.
        l2_read, l2_written: bytes of activations that it reads from L2 and writes to it; None if
            unknown.  For a CPU kernel: the sizes of its inputs and outputs.
        l2_weights: bytes of weights, biases and tables that it reads, counting repeated reads.
        energy_uj: energy in microjoules, derived from a published average power; None without a
            power.
        instructions: instructions from call to return, counted by an emulator; None without a run,
            and on a platform that counts none.  They are no cycles.
        part: the end of the name that says which part of a layer it is, as ``".r0"``; empty: all.
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
    instructions: int | None = None
    part: str = ""

    @property
    def layer(self) -> str:
        """The layer's name, without that of a part."""
        return self.name.removesuffix(self.part)

    @property
    def label(self) -> str:
        """The layer's name, followed by the operator unless the name contains it."""
        said = all(part.rsplit("_", 1)[0] in self.op for part in self.name.split(" + "))
        return self.name if said else f"{self.name} ({self.op})"


@dataclass(frozen=True)
class Unit:
    """One unit of the SoC, and how long it was busy in a run.

    Attributes:
        name: "host", or a device: "dma", "digital", ...
        cycles: busy cycles; the host counts as busy unless it waits for a device.
        what: what it did, e.g. "transfers between L2 and L1".
        charged: cycles charged to it: each cycle goes to every accelerator that works then; if none
            does, to the DMA if it works, else to the host.  They add up to the whole unless
            accelerators work at the same time.
    """

    name: str
    cycles: int
    what: str = ""
    charged: int = 0


@dataclass(frozen=True)
class L2Use:
    """How a build uses L2 (bytes).

    Attributes:
        code: instructions and their read-only data.
        constants: weights, biases, tables.
        arena: planned peak of intermediates and workspaces.
        stack: reserved for the stack.
        limit: size of L2; None without a limit.
        arena_bound: proven lower bound of any arena; None if unknown.
        io: the inputs and outputs, which belong to the caller, and the runtime's variables.
        apart: (name, bytes, size) of the other memories that hold weights.
        flash_limit: size of the flash, if code and constants are there and L2 is the RAM.
        stack_used: high-water mark of the stack; None unless a run measured it.
        compiler: name and version of the C compiler whose code it is.
    """

    code: int
    constants: int
    arena: int
    stack: int
    limit: int | None = None
    arena_bound: int | None = None
    io: int = 0
    apart: tuple[tuple[str, int, int], ...] = ()
    flash_limit: int | None = None
    stack_used: int | None = None
    compiler: str = ""

    @property
    def total(self) -> int:
        """Total bytes of L2 in use."""
        variables = self.arena + self.stack + self.io
        return variables if self.flash_limit is not None else variables + self.flash

    @property
    def flash(self) -> int:
        """Total bytes of code and constants."""
        return self.code + self.constants


@dataclass(frozen=True)
class L1Use:
    """How the accelerators of a region use L1, and the gain from planning it as a whole.

    Attributes:
        region: name of the region.
        layers: number of layers in the region.
        limit: size of L1 in bytes.
        peak: bytes of L1 used.
        live: largest sum of simultaneously live bytes: a lower bound for any placement.
        resident: names of the tensors that stay between layers.
        cycles: predicted cycles of the region's layers.
        apart: predicted cycles with the best plan of each layer alone.
        gap: largest fraction of the cycles that another choice of tiles and tensors could save.
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
        platform: "rv32", "arm", "qemu" or "host".
        clock_hz: clock for converting cycles to milliseconds.
        memory: use of L2.
        cycles: simulated cycles of the inference; None before a run, or on a platform without
            cycles.
        units: busy cycles per unit of the SoC; empty without a run.
        causes: the cycles by cause; None without a run.
        notes: sentences to print below the tables, e.g. what the numbers do not include.
        policy, schedule: how layers were dispatched and executed; empty without accelerators.
        instructions: instructions of the inference, counted by an emulator; None before a run, or
            on a platform that counts none.  They are no cycles.
        estimated_cycles: an estimate, not measured: the fewest and the most cycles that the core's
            manual gives for these instructions; None if it gives none.
    """

    network: str
    target: str
    platform: str
    clock_hz: int
    memory: L2Use
    cycles: int | None = None
    units: tuple[Unit, ...] = ()
    notes: tuple[str, ...] = ()
    causes: Causes | None = None
    policy: str = ""
    schedule: str = ""
    instructions: int | None = None
    estimated_cycles: tuple[int, int] | None = None

    @property
    def latency_ms(self) -> float | None:
        """Time of the whole inference in ms; None without cycles."""
        return None if self.cycles is None else self.cycles * 1000.0 / self.clock_hz


@dataclass(frozen=True)
class SqnrRow:
    """Loss of accuracy of one layer due to retargeting.

    Attributes:
        layer: layer name.
        sqnr_db: SQNR in dB of the layer's output against the source model.
        source: name in the source file; empty if it has no name there.
    """

    layer: str
    sqnr_db: float
    source: str = ""


@dataclass(frozen=True)
class ReportData:
    """The contents of a report; `htvm.tools.report.types.Report` can also draw itself.

    Attributes:
        summary: the whole build and run.
        layers: one row per step, in execution order.
        sqnr: loss of accuracy per layer; empty if the scheme was not changed.
        output_sqnr_db: SQNR in dB at the output; None if the scheme was not changed.
        output_largest: largest difference at an output (before a softmax) from the source, on the
            same inputs, in steps of the source; None if the scheme was not changed.
        l1: use of L1, one row per region.
        measured_on: a description of the inputs used for measuring SQNR.
        same_decision: fraction of these inputs, 0 to 1, with the same largest output as the source;
            None if the network makes no decision, or the scheme was not changed.
        machine: the SoC; None if unknown.
        timeline: when each unit did what ("waiting": the host polls); empty without cycles.
        maps: memory maps of L1 and of the arena in L2.
        graph: the operators of the network, in execution order.
        energy: energy of the run; None without cycles or powers.
        recipe: how to reproduce the build; None if unknown.
        verdicts: where each operator runs, and how each accelerator answered.
        advice: changes to the model that would gain most, the best first; empty if not looked for.
        settings: settings of the build that were tried and are quicker, with their accuracy.
        decisions: how often source and build decide as labels say; None without labels.
        reads: for each step, the earlier steps that compute what it reads; empty if unknown.
        estimates: layers of programs that an accelerator's own compiler planned, in order.
        accesses: each memory's accesses by these.
    """

    summary: Summary
    layers: tuple[LayerRow, ...]
    sqnr: tuple[SqnrRow, ...] = ()
    output_sqnr_db: float | None = None
    l1: tuple[L1Use, ...] = ()
    measured_on: str = ""
    same_decision: float | None = None
    machine: SocInfo | None = None
    timeline: tuple[Interval, ...] = ()
    maps: tuple[MemoryMap, ...] = ()
    graph: tuple[NetworkNode, ...] = ()
    energy: Energy | None = None
    recipe: Recipe | None = None
    verdicts: tuple[VerdictRow, ...] = ()
    advice: tuple[Improvement, ...] = ()
    settings: tuple[Setting, ...] = ()
    decisions: Decisions | None = None
    output_largest: int | None = None
    reads: tuple[tuple[int, ...], ...] = ()
    estimates: tuple[Estimate, ...] = ()
    accesses: tuple[MemoryAccess, ...] = ()

    @property
    def no_cycles(self) -> str:
        """The reason why there are no cycles; empty if there are cycles."""
        if self.summary.cycles is not None:
            return ""
        if self.summary.instructions is not None:
            return "an emulator counts instructions"
        return "this platform counts none" if self.summary.platform == "host" else NOT_RUN
