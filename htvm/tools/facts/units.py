"""Busy cycles of each unit of a SoC in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from htvm.sim.causes import is_hart
from htvm.tools.report.types import Unit

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.result import RunResult


def units_of(soc: Soc, result: RunResult) -> tuple[Unit, ...]:
    """Return each unit of the SoC with its busy cycles in a run."""
    causes = result.causes
    if causes is None:
        return ()
    titles = {accelerator.name: accelerator.title for accelerator in soc.accelerators}
    cores = tuple(
        Unit(name, busy, titles.get(name, ""), busy)
        for name, busy in result.units
        if name != "dma" and not is_hart(name)
    )
    harts = tuple(
        Unit(name, busy, _doing(name, soc)) for name, busy in result.units if is_hart(name)
    )
    transfers = Unit("dma", causes.dma, "transfers between L2 and L1", causes.dma_alone)
    devices = (transfers, *cores, *harts)
    host = Unit("host", causes.host, "CPU kernels, layouts, drivers", causes.host_alone)
    return (host, *(unit for unit in devices if unit.cycles))


def _doing(name: str, soc: Soc) -> str:
    """Describe what a hart does; its cycles are charged to the kernel or the DMA it works for."""
    serves = soc.cluster is not None and name == f"core{soc.cluster.first + soc.cluster.cores}"
    return "programs the DMA" if serves else "its share of kernels"
