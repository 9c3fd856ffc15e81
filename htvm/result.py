"""The results of a run."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.errors import InputError
from htvm.activity import Interval, MemoryMap
from htvm.public import public
from htvm.shown import Shown

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


@public
@dataclass(frozen=True)
class Causes:
    """The cycles of a step, or of a run, by cause.

    Cores, DMA and host work in parallel, so their busy cycles may add up to more than the cycles
    that passed.  Each of these two sums equals the cycles that passed::

        array + weights + trigger + dma_alone + host_alone
        host + waiting + computing

    Attributes:
        array: cycles in which a core's array computes, or the cores of a cluster run a kernel.
        weights: cycles in which a core loads weights.
        trigger: cycles in which a core is busy with anything else; they come from the constant cost
            of a trigger.
        dma: cycles in which the DMA is busy.
        dma_alone: cycles in which the DMA is busy and no core is: transfers that are not hidden.
        host: cycles in which the host does its own work: CPU kernels, layouts, drivers; on a
            cluster also control, loops over tiles, and starting kernels.
        host_alone: cycles in which neither a core nor the DMA is busy.
        waiting: cycles in which the host polls a device, from the read that finds it busy to the
            one that finds it idle.
        starved: the part of ``waiting`` in which no core is busy: waiting for transfers.
        computing: cycles in which the host is one of a cluster's cores that run a kernel.
    """

    array: int
    weights: int
    trigger: int
    dma: int
    dma_alone: int
    host: int
    host_alone: int
    waiting: int
    starved: int = 0
    computing: int = 0

    @property
    def cores(self) -> int:
        """Cycles in which a core is busy."""
        return self.array + self.weights + self.trigger

    @property
    def cycles(self) -> int:
        """Cycles that passed."""
        return self.host + self.waiting + self.computing

    @property
    def dma_hidden(self) -> int:
        """Cycles in which both the DMA and a core are busy."""
        return self.dma - self.dma_alone


@public
@dataclass(frozen=True)
class LayerResult:
    """Cycles of one step of the entry function.

    Attributes:
        name: layer name; several joined by "+" where TVM fused them into one kernel.
        accelerator: name of its accelerator, or "cpu"; a conversion names the accelerator that it
            serves, although the host does it.
        kind: "layer" and "cpu" compute; "prologue" and "epilogue" convert layouts; "copy" copies.
        cycles: cycles from call to return on the simulated host, including waiting; None on a
            platform without host cycles.
        predicted_cycles: cycles predicted by the cost model; 0 without a prediction.
        macs: multiply-accumulates.
        causes: the cycles by cause; None on a platform without host cycles.
        start: cycle of the call, counted from the entry function's; None on a platform without
            cycles.
        instructions: instructions from call to return; None on a platform that does not count them,
            and for a copy there, which is a part of the entry function.
        estimated_cycles: the fewest and the most cycles that the manual of the core gives for these
            instructions; None without them, or if it gives none.
    """

    name: str
    accelerator: str
    kind: str
    cycles: int | None
    predicted_cycles: int
    macs: int
    causes: Causes | None = None
    start: int | None = None
    instructions: int | None = None
    estimated_cycles: tuple[int, int] | None = None

    @property
    def label(self) -> str:
        """The name; of conversions and copies with what they do, as layers have the same name."""
        return self.name if self.kind in ("layer", "cpu") else f"{self.name} ({self.kind})"


@public
@dataclass(frozen=True, eq=False, repr=False)
class RunResult(Shown):
    """The results of a run.

    Attributes:
        outputs: one array per output of the model, in its dtype and quantization.
        cycles: cycles from the entry function's call to its return; None on a platform without
            cycles.
        latency_ms: the same in ms at the SoC's clock.
        layers: one entry per step, in execution order.
        stack_bytes: largest use of the stack in bytes; None if the platform does not measure it.
        units: busy cycles of each device ("dma", "digital").
        causes: the cycles by cause; None on a platform without cycles.
        timeline: the work of every device over time, by start; empty on a platform without cycles.
        instructions: instructions from the entry function's call to its return; None on a platform
            that does not count them.  They are no cycles.
        estimated_cycles: an estimate, not measured: the fewest and the most cycles that the manual
            of the core gives for these instructions, from memory that waits as the board's file
            says (`byoc_dory.soc.board.Board.flash_reads`), or not at all; None if it gives none
            (Cortex-M7, M33, M55), or nothing was counted.
        core_instructions: executed by each core, where two share the kernels; empty otherwise.  A
            core that waits executes none, so ``instructions`` is what the longer one of both takes
            of every part of a kernel.
        maps: the contents of L1 and of the arena in L2 over the steps; empty for a project that
            was opened again.
    """

    outputs: list[NDArray[np.generic]]
    cycles: int | None
    latency_ms: float | None
    layers: tuple[LayerResult, ...]
    stack_bytes: int | None = None
    units: tuple[tuple[str, int], ...] = ()
    causes: Causes | None = None
    timeline: tuple[Interval, ...] = ()
    instructions: int | None = None
    estimated_cycles: tuple[int, int] | None = None
    core_instructions: tuple[int, ...] = ()
    maps: tuple[MemoryMap, ...] = ()

    def _rows(self) -> tuple[object, ...]:
        return self.layers

    def __repr__(self) -> str:
        """Return a summary in a line or two; the fields have the values."""
        outputs = ", ".join(f"{array.dtype}{list(array.shape)}" for array in self.outputs)
        time = "" if self.latency_ms is None else f", latency_ms={self.latency_ms:.3f}"
        counted = f"cycles={self.cycles}"
        if self.instructions is not None:
            counted = f"instructions={self.instructions}"
        said = f"RunResult(outputs=[{outputs}], {counted}{time}, layers={len(self.layers)} steps)"
        return textwrap.fill(said, 80, subsequent_indent="    ", break_long_words=False)

    def plot_timeline(self) -> Figure:
        """Plot when each step ran, and when the host, the DMA and each accelerator worked.

        On cores without cycles, the steps lie over instructions.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: neither cycles nor instructions were counted.
        """
        from htvm.tools.plots.timeline import step_axis, timeline_figure

        axis = step_axis(self.layers, self.cycles, self.instructions)
        if axis.unit == "steps":
            raise _nothing("timeline")
        units = [row.accelerator if row.kind in ("layer", "cpu") else "cpu" for row in self.layers]
        return timeline_figure(f"{axis.length:,} {axis.unit}", units, axis, self.timeline)

    def plot_layers(self, most: int = 20) -> Figure:
        """Plot the steps that take longest, by cause; on cores without cycles, by instructions.

        Args:
            most: largest number of steps.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: neither cycles nor instructions were counted.
        """
        from htvm.tools.plots.bars import Bar, bar_figure, draw_causes, new_figure

        known = [row for row in self.layers if row.cycles and row.causes is not None]
        if known:
            known = sorted(known, key=lambda row: -(row.cycles or 0))[:most]
            figure = new_figure(8.0, 1.0 + 0.26 * len(known))
            axes = figure.add_subplot()
            axes.set_title(f"{self.cycles:,} cycles, the steps that take longest", fontsize=11)
            draw_causes(axes, [row.label for row in known], [row.causes for row in known])
            return figure
        counted = [row for row in self.layers if row.instructions]
        if not counted:
            raise _nothing("layers")
        counted = sorted(counted, key=lambda row: -(row.instructions or 0))[:most]
        bars = [
            Bar(row.label, row.instructions, f"{row.instructions:,}", "host") for row in counted
        ]
        title = f"{self.instructions:,} instructions, the steps that take most"
        return bar_figure(title, bars, "instructions")

    def plot_memory(self) -> Figure:
        """Plot the tensors in L1 and in the arena over cycles, else instructions, else steps.

        Raises:
            DependencyError: matplotlib is not installed.
            InputError: nothing is placed in these memories.
        """
        from htvm.tools.plots.timeline import memory_figure, step_axis

        maps = [entry for entry in self.maps if entry.blocks]
        if not maps:
            raise InputError("there is no memory to plot: nothing is known of it",
                             where="RunResult", hint="run a module that was built")  # fmt: skip
        return memory_figure(maps, step_axis(self.layers, self.cycles, self.instructions))


def _nothing(part: str) -> InputError:
    """Return the error for a figure of a run that nothing was counted in."""
    return InputError(
        f"there is no {part} to plot: the run has no cycles",
        where="RunResult",
        hint="build for a platform that counts, such as rv32",
    )
