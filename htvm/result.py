"""What a run returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LayerResult", "RunResult"]


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
    """

    name: str
    accelerator: str
    kind: str
    cycles: int | None
    predicted_cycles: int
    macs: int


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
    """

    outputs: list[NDArray[np.generic]]
    cycles: int | None
    latency_ms: float | None
    layers: tuple[LayerResult, ...]
    stack_bytes: int | None = None
    units: tuple[tuple[str, int], ...] = ()

    def __repr__(self) -> str:
        """The whole in one line; the fields have the values."""
        outputs = ", ".join(f"{array.dtype}{list(array.shape)}" for array in self.outputs)
        time = "" if self.latency_ms is None else f", latency_ms={self.latency_ms:.3f}"
        return (
            f"RunResult(outputs=[{outputs}], cycles={self.cycles}{time}, "
            f"layers={len(self.layers)} steps)"
        )
