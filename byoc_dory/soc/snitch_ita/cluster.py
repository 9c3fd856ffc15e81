"""The compute cores of the Snitch cluster in numbers."""

from __future__ import annotations

from pathlib import Path

from byoc_dory.soc.cluster.accelerator import ClusterAccelerator
from byoc_dory.soc.cluster.work import read_cycles

CLUSTER_CORES = ClusterAccelerator(
    name="cluster",
    title="cluster of 8 cores",
    registers=0x20002000,  # assumed
    l1="L1",
    family="cluster",
    cores=8,  # published
    fork_cycles=74,
    # derived: measured on our simulator, for our drivers and the code around them.
    order_cycles=53,
    plane_cycles=26,
    latency_cycles=32,
    wait_cycles=8,
    call_cycles=10,
    tile_cycles=0,
    most_operands=8,
    # derived: fitted to our kernels on our simulator (benchmarks/cluster_kernels.py).
    **read_cycles(Path(__file__).parent / "data" / "cluster.json"),
)
