"""The cores of a SoC for kernels that no accelerator takes."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.soc.base import Target


@dataclass(frozen=True)
class Cores:
    """Cores that run a kernel together, and the memory close to them.

    Attributes:
        count: number of cores.
        near_bytes: bytes of that memory that a kernel may use while it runs.
        stack: bytes of each core's stack.
    """

    count: int
    near_bytes: int
    stack: int


def cores_of(target: Target, l1_budget: int | None = None) -> Cores | None:
    """Return the cores that a target's CPU kernels may use; None for the host core alone.

    A target without accelerators only has the host core, whatever else is in its SoC.

    Args:
        target: the target of the build.
        l1_budget: bytes of the near memory that may be used; all of it by default.
    """
    cluster = target.soc.cluster
    if cluster is None or not target.accelerators:
        return None
    near = target.soc.memory(cluster.memory).size
    return Cores(cluster.cores, near if l1_budget is None else l1_budget, cluster.worker_stack)
