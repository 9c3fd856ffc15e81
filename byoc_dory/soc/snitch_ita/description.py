"""The Snitch cluster with ITA in numbers.

Every number carries its kind and source: *published* (the paper on Deeploy with ITA in a Snitch
cluster), *public code* (ITA's and Deeploy's repositories), *derived* (arithmetic, or measured on
our simulator) or *assumed* (ours, not the chip's).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from byoc_dory.errors import TargetError
from byoc_dory.soc.base import (
    Cluster,
    CoreTiming,
    Dma,
    Host,
    HostCost,
    Memory,
    Parameter,
    Power,
    SimControl,
    Soc,
    TargetSpec,
)
from byoc_dory.soc.cluster.accelerator import ClusterAccelerator
from byoc_dory.soc.cluster.work import read_cycles
from byoc_dory.soc.snitch_ita.ita import ITA

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


TABLE_I = "published: Table I, the average over an inference of MobileBERT's encoder"

# assumed: the address map.  Every device has its own page.
L1_BASE = 0x10000000
DMA_REGISTERS = 0x20000000
CLUSTER_REGISTERS = 0x20002000
SIM_REGISTERS = 0x2000F000
L2_BASE = 0x80000000

L1_BYTES = 128 * 1024  # published: 32 banks of 4 KiB
# assumed: the paper does not say; room for networks of some million parameters.
L2_BYTES = 32 * 1024 * 1024

HARTS = 9  # published: eight compute cores and a DMA core
# assumed: generous for generated code, which is not recursive; a kernel's frame is a few hundred
# bytes.
HOST_STACK = 8 * 1024
WORKER_STACK = 1024
# assumed: mailbox and queue of the DMA core.
RUNTIME_BYTES = 1024
_LEAST = 4 * 1024  # assumed: what is of any use for tiles


def _l1(size: int, harts: int) -> Memory:
    """Return an L1 of ``size`` bytes, at whose end are the harts' stacks."""
    reserved = HOST_STACK + (harts - 1) * WORKER_STACK + RUNTIME_BYTES
    if size - reserved < _LEAST:
        raise TargetError(
            f"{harts - 1} cores leave {size - reserved} B of an L1 of {size} B",
            where="SoC snitch_ita",
            hint=f"stacks take {reserved} B; give l1 at least {reserved + _LEAST} B, or fewer "
            "cores",
        )
    return Memory(
        "L1",
        L1_BASE,
        size - reserved,
        "L1: tightly coupled data memory",
        mapped=True,
        reserved=reserved,
    )


# assumed, all of it: Snitch issues one instruction per cycle in order and hides latencies behind a
# scoreboard (published), with these latencies.  Instruction fetches always hit the cache.
TIMING = CoreTiming(
    load=2,
    multiply=3,
    divide=20,
    atomic=3,
    redirect=1,
    far=16,  # through the narrow interconnect of 64 bits
    far_outstanding=4,
    register=2,
)

HOST = Host(
    name="RV32IMA host (Snitch timing)",  # published: RV32IMA, no SIMD
    isa="rv32ima",
    stack=HOST_STACK,
    stack_memory="L1",
    # derived: products and pools measured on the simulated host alone, all operands in L2 (the
    # TFLite networks of MLPerf Tiny), layouts on the cores that convert them; assumed: the others,
    # by how much slower L2 makes those.  Kernels that share the cores take far less.
    cost=HostCost(
        conv_mac=7.6,
        pointwise_mac=7.4,
        dense_mac=8.9,
        depthwise_mac=12.8,
        add_element=24.0,
        pool_element=8.0,
        softmax_element=180.0,
        move_element=18.0,
        real_element=400.0,
        layout_byte=0.6,
    ),
    timing=TIMING,
)

CLUSTER = Cluster(
    harts=HARTS,
    cores=8,  # published
    registers=CLUSTER_REGISTERS,  # assumed
    worker_stack=WORKER_STACK,
    banks=32,  # published
    bank_bytes=8,  # published: ports of 64 bits
    # assumed: hardware barrier and wake-up take effect at all cores two cycles later.
    release=2,
    wake=2,
)

DMA = Dma(
    name="DMA",
    registers=DMA_REGISTERS,  # assumed
    bytes_per_cycle=64,  # published: 512 bits
    granule=64,  # assumed: a row takes whole beats
    l1_align=1,  # assumed: the engine realigns bytes
    l2_align=1,
    queue_depth=4,  # assumed
    call_cycles=50,  # assumed: set-up of a transfer, 1-D or 2-D
    command_cycles=0,
    # assumed: the DMA core programs the engine while the host core continues.
    driver_single_cycles=0,
    driver_first_cycles=0,
    driver_next_cycles=0,
)

# What a user may set.  The paper's numbers are the defaults; what else is possible is assumed.
PARAMETERS = (
    Parameter("cores", CLUSTER.cores, "compute cores of the cluster", low=1, high=16),
    Parameter("pes", ITA.lanes, "dot products of ITA at a time", choices=(4, 8, 16, 32, 64)),
    Parameter("l1", L1_BYTES, "L1, the cores' stacks included", unit="B",
              low=16 << 10, high=4 << 20, step=1024),
    Parameter("dma", DMA.bytes_per_cycle, "width of the DMA's port", unit="B/cycle",
              choices=(8, 16, 32, 64)),
)  # fmt: skip


def _design(*, cores: int, pes: int, l1: int, dma: int) -> Soc:
    """Return the cluster with other sizes; the other constant cycles stay the same.

    A tile of ITA takes as many cycles as its lanes need for the products, and its port for weights
    is as wide as its lanes.
    """
    ita = replace(
        ITA,
        title=f"integer transformer accelerator {pes}x{ITA.vector}",
        lanes=pes,
        tile_cycles=ITA.tile**3 // (pes * ITA.vector),
        weight_bytes_per_cycle=ITA.weight_bytes_per_cycle * pes // ITA.lanes,
    )
    harts = cores + 1
    return replace(
        SNITCH_ITA,
        memories=tuple(
            _l1(l1, harts) if entry.name == "L1" else entry for entry in SNITCH_ITA.memories
        ),
        dma=replace(DMA, bytes_per_cycle=dma, granule=dma),
        accelerators=(
            ita,
            replace(CLUSTER_CORES, title=f"cluster of {cores} cores", cores=cores),
        ),
        cluster=replace(CLUSTER, harts=harts, cores=cores),
        powers=(),  # what is published is for the paper's cluster
    )


SNITCH_ITA = Soc(
    name="snitch_ita",
    title="Snitch cluster with ITA",
    clock_hz=425_000_000,  # published: all results are at 425 MHz, 0.65 V
    memories=(
        _l1(L1_BYTES, HARTS),
        Memory("L2", L2_BASE, L2_BYTES, "L2: code, constants, arena"),
    ),
    host=HOST,
    # assumed: the simulator's own registers.
    sim=SimControl(
        putchar=SIM_REGISTERS + 0x0, exit=SIM_REGISTERS + 0x4, trace=SIM_REGISTERS + 0x8
    ),
    dma=DMA,
    accelerators=(ITA, CLUSTER_CORES),
    targets=(
        TargetSpec("snitch_ita", ("ita", "cluster"), "latency"),
        TargetSpec("snitch_ita.cluster", ("cluster",)),
        TargetSpec("snitch_ita.cpu", ()),
    ),
    driver="snitch_ita",
    libraries=("cluster", "cluster/rows", "cluster/plain"),
    cluster=CLUSTER,
    # The second power is that of a network on both; for ITA alone nothing is published.
    powers=(Power(("cluster",), 26.0, TABLE_I), Power(("ita", "cluster"), 52.0, TABLE_I)),
    parameters=PARAMETERS,
    design=_design,
)


def soc() -> Soc:
    """Return the description (entry point ``snitch_ita`` of the group ``htvm.socs``)."""
    return SNITCH_ITA
