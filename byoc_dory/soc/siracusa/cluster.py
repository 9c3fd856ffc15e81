"""The compute cores of Siracusa in numbers."""

from __future__ import annotations

from pathlib import Path

from byoc_dory.soc.cluster.accelerator import ClusterAccelerator
from byoc_dory.soc.cluster.work import read_cycles

CLUSTER_CORES = ClusterAccelerator(
    name="cluster",
    title="cluster of 8 cores",
    registers=0x00203000,  # assumed
    l1="L1",
    family="cluster",
    cores=8,  # published
    fork_cycles=74,
    # derived: measured on our simulator, for our drivers and the code around them.
    order_cycles=53,
    plane_cycles=146,
    latency_cycles=32,
    wait_cycles=8,
    call_cycles=10,
    tile_cycles=0,
    most_operands=8,
    kernels="simd",
    # derived: fitted to our kernels on our simulator (benchmarks/simd_kernels.py); assumed:
    # functions of rows take as long as on a Snitch cluster.  A map takes 3.0 an element on one
    # core; eight that look up in the same table's banks wait for each other.
    **read_cycles(Path(__file__).parent / "data" / "cluster.json"),
)
