"""Siracusa in numbers.

Every number carries its kind and source: *published* (Siracusa, arXiv 2312.14750; the slides on
Deeploy), *public code* (GVSoC's model of the chip, pulp-nnx), *derived* (arithmetic, or measured on
our simulator) or *assumed* (ours, not the chip's).

The cores execute the PULP extensions in CORE-V encoding, which the compiler and public RTL have;
the chip's cores have the same operations in the older XpulpV2 encoding.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from byoc_dory.soc.base import (
    Cluster,
    Host,
    HostCost,
    Parameter,
    Power,
    SimControl,
    Soc,
    TargetSpec,
)
from byoc_dory.soc.cluster.accelerator import ClusterAccelerator
from byoc_dory.soc.cluster.work import read_cycles
from byoc_dory.soc.siracusa.memories import (
    CONTROLLER_STACK,
    L1,
    L1_BYTES,
    L2,
    MRAM,
    SRAM,
    WORKER_STACK,
    WORKERS,
    Mchan,
    l1_memory,
)
from byoc_dory.soc.siracusa.neureka import NEUREKA

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
    preloads=True,
    # derived: fitted to our kernels on our simulator (benchmarks/simd_kernels.py); assumed:
    # functions of rows take as long as on a Snitch cluster.  A map takes 3.0 an element on one
    # core; eight that look up in the same table's banks wait for each other.
    **read_cycles(Path(__file__).parent / "data" / "cluster.json"),
)


# public code: N-EUREKA's registers are at 0x00201000; assumed: the others.
DMA_REGISTERS = 0x00202000
CLUSTER_REGISTERS = 0x00203000
SIM_REGISTERS = 0x0020F000

HOST = Host(
    name="RV32IMC controller with CORE-V SIMD (CV32E40P timing)",
    isa="rv32imc",  # published: RV32IMFC with XpulpV2; floating point is computed in software
    stack=CONTROLLER_STACK,
    stack_memory="L1",
    # derived: products and pools measured on the simulated controller alone, all operands in L2
    # (the networks of MLPerf Tiny); assumed: the others, by how much slower L2 makes those. Kernels
    # that share the cores take far less.
    cost=HostCost(
        conv_mac=2.3,
        pointwise_mac=2.3,
        dense_mac=4.2,
        depthwise_mac=17.0,
        add_element=24.0,
        pool_element=14.0,
        softmax_element=110.0,
        move_element=18.0,
        real_element=400.0,
        layout_byte=0.6,
    ),
    corev=True,
)

CLUSTER = Cluster(
    harts=1 + WORKERS,
    cores=WORKERS,
    first=1,
    registers=CLUSTER_REGISTERS,
    worker_stack=WORKER_STACK,
    banks=16,  # published
    bank_bytes=4,  # public code
    # assumed: barrier and wake-up of the event unit take effect two cycles later.  The RTL of the
    # core, asleep in wfi, goes on three cycles after that.
    release=2,
    wake=5,
    # assumed: through the cluster's bus to L2, and back, where accesses are granted late.  If they
    # were answered late instead, the RTL would wait a little less: it goes on behind its stores.
    far_wait=12,
    register_wait=1,  # assumed: the cluster's peripheral interconnect
)

DMA = Mchan(
    name="DMA",
    registers=DMA_REGISTERS,
    bytes_per_cycle=8,  # public code: in each direction, both at once
    granule=8,
    l1_align=1,
    l2_align=1,
    queue_depth=10,  # public code: 8, and 2 of the core
    call_cycles=30,  # assumed: until the first bytes arrive
    command_cycles=0,
    driver_single_cycles=0,
    driver_first_cycles=0,
    driver_next_cycles=0,
    counters=16,  # public code
    burst_bytes=256,  # public code
    outstanding=8,  # public code
    most_refusals=1,  # assumed: ports of the DMA and of cores take turns
)

# What a user may set.  The chip's numbers are the defaults; what else is possible is assumed.
PARAMETERS = (
    Parameter("cores", WORKERS, "compute cores of the cluster", low=1, high=WORKERS),
    Parameter("l1", L1_BYTES, "L1, the cores' stacks included", unit="B",
              low=16 << 10, high=4 << 20, step=1024),
    Parameter("l2", L2.size, "L2", unit="B", low=64 << 10, high=32 << 20, step=1024,
              sets="L2.size"),
    Parameter("sram", SRAM.size, "weight memory, SRAM", unit="B", low=16, high=SRAM.size, step=16,
              sets="SRAM.size"),
    Parameter("mram", MRAM.size, "weight memory, MRAM", unit="B", low=16, high=MRAM.size, step=16,
              sets="MRAM.size"),
    Parameter("dma", DMA.bytes_per_cycle, "bytes the DMA moves in each direction",
              unit="B/cycle", choices=(4, 8, 16, 32)),
)  # fmt: skip


def _design(*, cores: int, l1: int, l2: int, sram: int, mram: int, dma: int) -> Soc:
    """Return Siracusa with other sizes; the constant cycles stay those of eight cores."""
    sizes = {
        "L1": l1_memory(l1, cores),
        "L2": replace(L2, size=l2),
        "SRAM": replace(SRAM, size=sram),
        "MRAM": replace(MRAM, size=mram),
    }
    return replace(
        SIRACUSA,
        memories=tuple(sizes.get(entry.name, entry) for entry in SIRACUSA.memories),
        dma=replace(DMA, bytes_per_cycle=dma, granule=dma),
        accelerators=(
            replace(NEUREKA, window_cores=cores),
            replace(CLUSTER_CORES, title=f"cluster of {cores} cores", cores=cores),
        ),
        cluster=replace(CLUSTER, harts=1 + cores, cores=cores),
        powers=(),  # what is published is for the chip
    )


SIRACUSA = Soc(
    name="siracusa",
    title="Siracusa",
    # assumed: at this clock the engine's model gives the published 698 GOp/s within 2 %.
    clock_hz=360_000_000,
    memories=(L1, L2, MRAM, SRAM),
    host=HOST,
    # assumed: the simulator's own registers.
    sim=SimControl(
        putchar=SIM_REGISTERS + 0x0, exit=SIM_REGISTERS + 0x4, trace=SIM_REGISTERS + 0x8
    ),
    dma=DMA,
    accelerators=(NEUREKA, CLUSTER_CORES),
    targets=(
        TargetSpec("siracusa", ("neureka", "cluster"), "latency"),
        TargetSpec("siracusa.cluster", ("cluster",)),
        TargetSpec("siracusa.cpu", ()),
    ),
    driver="siracusa",
    libraries=("simd", "cluster", "cluster/rows", "cluster/simd"),
    cluster=CLUSTER,
    # derived: nothing else is published at the clock of the other figures; whoever works.
    powers=tuple(
        Power(units, 167.0, "derived: 490 uJ a token at 340 tokens/s, both published by Deeploy")
        for units in (("cluster",), ("neureka",), ("neureka", "cluster"))
    ),
    parameters=PARAMETERS,
    design=_design,
)


def soc() -> Soc:
    """Return the description (entry point ``siracusa`` of the group ``htvm.socs``)."""
    return SIRACUSA
