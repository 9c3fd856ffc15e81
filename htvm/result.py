"""What a run returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Causes", "Interval", "LayerResult", "RunResult"]


@dataclass(frozen=True)
class Interval:
    """A unit at work, from ``start`` up to ``end``, in cycles from the entry function's call.

    Attributes:
        unit: a device ("dma", "digital", ...) at work; "waiting": the host polls a device;
            "cluster": all compute cores run a kernel, the host ("core0") among them; "core1" and so
            on: one of them, or the one that serves the DMA.
        start, end: in cycles.
    """

    unit: str
    start: int
    end: int


@dataclass(frozen=True)
class Causes:
    """What the cycles of a step, or of a run, were spent on.

    Cores, DMA and host work beside each other, so their busy cycles may add up to more than the
    cycles that passed.  What adds up to them is each of these two::

        array + weights + trigger + dma_alone + host_alone
        host + waiting + computing

    Attributes:
        array: a core's array computes, or the cores of a cluster run a kernel.
        weights: a core loads weights.
        trigger: a core is busy with anything else, which the constant of a trigger stands for.
        dma: the DMA is busy.
        dma_alone: the DMA is busy and no core is: transfers that nothing hides.
        host: the host does work of its own: CPU kernels, layouts, drivers; of a cluster the orders,
            loops between tiles, and setting off kernels.
        host_alone: neither a core nor the DMA is busy.
        waiting: the host polls a device, from the read that finds it busy to the one that does not.
        starved: of ``waiting``, what passes while no core is busy: it is for transfers.
        computing: the host is one of the cores of a cluster that run a kernel.
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
        """Cycles in which the DMA is busy and a core is, too."""
        return self.dma - self.dma_alone


@dataclass(frozen=True)
class LayerResult:
    """Cycles of one step of the entry function.

    Attributes:
        name: layer name; several joined by "+" where TVM fused them into one kernel.
        accelerator: its name, or "cpu"; a conversion names the one it serves, but the host does it.
        kind: "layer" and "cpu" compute; "prologue" and "epilogue" convert layouts; "copy" copies.
        cycles: between call and return on the simulated host, waiting included; None on a
            platform without host cycles.
        predicted_cycles: by the cost model; 0 where there is none.
        macs: multiply-accumulates.
        causes: what the cycles were spent on; None on a platform without host cycles.
        start: the cycle of the call, counted from the entry function's; None on a platform without.
    """

    name: str
    accelerator: str
    kind: str
    cycles: int | None
    predicted_cycles: int
    macs: int
    causes: Causes | None = None
    start: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class RunResult:
    """What a run returns.

    Attributes:
        outputs: one array per output of the model, in its dtype and quantization.
        cycles: from the entry function's call to its return; None on a platform without cycles.
        latency_ms: the same in ms at the SoC's clock.
        layers: one entry per step, in execution order.
        stack_bytes: high-water mark of the stack; None if the platform does not measure it.
        units: busy cycles of each device ("dma", "digital").
        causes: what the cycles were spent on; None on a platform without cycles.
        timeline: what every device did when, in order of their start; empty on a platform without
            cycles.
    """

    outputs: list[NDArray[np.generic]]
    cycles: int | None
    latency_ms: float | None
    layers: tuple[LayerResult, ...]
    stack_bytes: int | None = None
    units: tuple[tuple[str, int], ...] = ()
    causes: Causes | None = None
    timeline: tuple[Interval, ...] = ()

    def __repr__(self) -> str:
        """The whole in one line; the fields have the values."""
        outputs = ", ".join(f"{array.dtype}{list(array.shape)}" for array in self.outputs)
        time = "" if self.latency_ms is None else f", latency_ms={self.latency_ms:.3f}"
        return (
            f"RunResult(outputs=[{outputs}], cycles={self.cycles}{time}, "
            f"layers={len(self.layers)} steps)"
        )
