"""DIANA in numbers.

Every number carries its kind and source: *published* (HTVM paper, DAC 2023), *public code*
(DORY's Diana_TVM target, dory-hal, MATCH, ODiMO, HTVM's own repository), *derived* (fitted here
to the published latency tables, or arithmetic) or *assumed* (ours, not the chip's).
"""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.soc.base import (
    Dma,
    Host,
    Memory,
    Parameter,
    Power,
    SimControl,
    Soc,
    TargetSpec,
)
from byoc_dory.soc.cores import CV32E40P, CV32E40P_SIMD
from byoc_dory.soc.diana.analog import AnalogAccelerator
from byoc_dory.soc.diana.digital import DigitalAccelerator

# assumed: the address map.  That of the chip is not public.
L2_BASE = 0x1C000000
L1_BASE = 0x10000000
DMA_REGISTERS = 0x1A100000
DIGITAL_REGISTERS = 0x1A101000
ANALOG_REGISTERS = 0x1A102000
SIM_REGISTERS = 0x1A10F000

# published: 512 kB; public code: DORY's HW_description.json constrains it to 512 000 B.
L2_BYTES = 512_000
# published: 256 kB; public code: DORY constrains it to 256 000 B.
L1_BYTES = 256_000

ODIMO = "public code: ODiMO's average powers of DIANA"

# published: RV32IMCF + XpulpV2 (paper III-C).  assumed: the simulated host runs RV32IMC with the
# timing of CV32E40P, the successor of the chip's core family, without its SIMD.
HOST = CV32E40P

# The targets "diana.simd" and so on.  published: the chip's core has these operations, in the older
# XpulpV2 encoding; the simulated one has CORE-V's, which its RTL decodes.
SIMD_HOST = CV32E40P_SIMD

DMA = Dma(
    name="DMA",
    registers=DMA_REGISTERS,  # assumed
    bytes_per_cycle=16,  # public code: MATCH diana/digital; the derived fit agrees
    granule=32,  # public code: dory.c pads lengths to 32 B
    l1_align=16,  # public code: dory.h addresses L1 in units of 16 B
    l2_align=4,  # assumed: the byte-reversed groups of four are words of L2
    queue_depth=4,  # assumed: room for a store and the loads of two operands beside a running one
    # derived: HTVM minus "Peak" of Table I over calls and row commands of four networks.
    call_cycles=50,
    command_cycles=36,
    # derived: measured on the simulated host (tests/soc/test_trigger_constants.py).
    driver_single_cycles=37,
    driver_first_cycles=82,
    driver_next_cycles=17,
)

DIGITAL = DigitalAccelerator(
    name="digital",
    title="digital 16x16 array",
    registers=DIGITAL_REGISTERS,  # assumed
    l1="L1",
    family="cores",
    lanes=16,  # published: 16 rows = K (paper III-C)
    columns=16,  # published: 16 columns = ox
    row_pitch=16,  # published: ox and ix are rounded up to 16 in memory
    group=4,  # public code: every aligned group of 4 bytes is byte-reversed
    weight_memory=64_000,  # published: 64 kB; public code: DORY constrains it to 64 000 B
    weight_bytes_per_cycle=16,  # public code: MATCH; published: part of "Peak" (paper IV-B)
    bias_bytes=64,  # public code: 16 int32, byte-planar, behind each block's weights
    dense_bias_bytes=256,  # public code: 16 B for each of 16 outputs
    # derived: fitted; depthwise 3x3 gives 144/38 = 3.79 MAC/cycle (published: 3.75).
    row_cycles=1,
    output_cycles=26,
    # derived: fitted to Table I, driver code of the real host included.
    conv_trigger_cycles=485,
    depthwise_trigger_cycles=518,
    dense_trigger_cycles=485,
    add_trigger_cycles=485,
    # derived: measured on the simulated host (tests/soc/test_trigger_constants.py).
    conv_driver_cycles=36,
    depthwise_driver_cycles=14,
    dense_driver_cycles=28,
    add_driver_cycles=29,
    depthwise_ahead_cycles=7,
    dense_ahead_cycles=15,
    filters=(1, 3, 5, 7),  # public code: HTVM's matcher
    strides=(1, 2),  # public code: HTVM's matcher
    max_shift=31,  # public code: HTVM's matcher
    dense_max_k=16,  # public code: DORY forces output tiles of dense to 16
)

ANALOG = AnalogAccelerator(
    name="analog",
    title="analog 1152x512 in-memory array",
    registers=ANALOG_REGISTERS,  # assumed
    l1="L1",
    family="cores",
    rows=1152,  # published: 1152 rows of input, 512 columns of output (paper III-C)
    columns=512,
    weight_memory=147_456,  # published: 144 kB; 1152 * 512 cells of 2 bits
    activation_bits=7,  # published: 7-bit inputs, ternary weights (paper III-C)
    adc_bits=6,  # published: 6-bit converters (DIANA, JSSC 2023); public code: HTVM's matcher
    # public code: DORY's weight encoder pads rows to 288 and columns to 128, and works in blocks
    # of 64 rows.  What exactly is flipped in a block is assumed (diana_analog_driver.h).
    row_step=288,
    column_step=128,
    row_block=64,
    # assumed: the memory control unit of the chip reshuffles activations between the cores, so that
    # both have the same layout; its time is part of the fitted position_cycles.
    row_pitch=16,
    group=4,
    # derived: fitted to Table I, driver code of the real host included (ODiMO: 8 and 18.2).
    trigger_cycles=466,
    row_cycles=9,
    position_cycles=21,
    # derived: measured on the simulated host (tests/soc/test_trigger_constants.py).
    driver_cycles=41,
    ahead_cycles=33,
    strides=(1, 2),  # public code: HTVM's matcher
    # public code: HTVM's matcher takes 1, 3, 5, 7.  assumed: sizes in between cost no more rows
    # than they have, as rows of the array are wired to nothing.
    max_filter=7,
    max_shift=31,  # public code: HTVM's matcher
    max_gain=15,  # assumed: 1152 * 64 needs no more bits
    # public code: DORY forces output tiles of dense to 16; the fit has them on this core, too.
    dense_max_k=16,
    max_passes=8,  # assumed: as many as are written as one operator (patterns/ops/analog)
    unrolls=(1, 2, 4, 8),  # public code: ODiMO
    unroll_channels=64,  # public code: ODiMO, max(64, C) * fy * (fx + u - 1) rows
    # assumed: the simulation's own; neither core nor driver knows them.
    noise_register=0x08,
    seed_register=0x0C,
)


def _targets(name: str, host: Host | None) -> tuple[TargetSpec, ...]:
    """Return the targets with a host; None for the SoC's own."""
    return (
        TargetSpec(name, ("digital", "analog"), host=host),
        TargetSpec(f"{name}.digital", ("digital",), host=host),
        TargetSpec(f"{name}.analog", ("analog",), host=host),
        TargetSpec(f"{name}.mixed", ("digital", "analog"), policy="mixed", host=host),
        TargetSpec(f"{name}.cpu", (), host=host),
    )


# What a user may set.  The chip's numbers are the defaults; what else is possible is assumed.
PARAMETERS = (
    Parameter(
        "rows", DIGITAL.lanes, "rows of the digital array: output channels at a time",
        choices=(16, 32, 64),
    ),
    Parameter(
        "columns", DIGITAL.columns, "columns of the digital array: output columns at a time",
        choices=(4, 8, 16, 32, 64),
    ),
    Parameter("weights", DIGITAL.weight_memory, "weight memory of the digital array", unit="B",
              low=4096, high=1 << 20, step=16),
    Parameter("l1", L1_BYTES, "L1, shared by both cores", unit="B",
              low=1024, high=16 << 20, step=64, sets="L1.size"),
    Parameter("dma", DMA.bytes_per_cycle, "width of the DMA's port", unit="B/cycle",
              choices=(4, 8, 16, 32)),
)  # fmt: skip


def _design(*, rows: int, columns: int, weights: int, l1: int, dma: int) -> Soc:
    """Return DIANA with other sizes; its constant cycles, fitted to the chip, stay the same."""
    array = replace(
        DIGITAL,
        title=f"digital {rows}x{columns} array",
        lanes=rows,
        columns=columns,
        weight_memory=weights,
        bias_bytes=DIGITAL.bias_bytes // DIGITAL.lanes * rows,
        dense_bias_bytes=DIGITAL.dense_bias_bytes // DIGITAL.lanes * rows,
        dense_max_k=rows,
    )
    # The powers are those of the chip's array; they say nothing about another.
    same = (rows, columns, weights) == (DIGITAL.lanes, DIGITAL.columns, DIGITAL.weight_memory)
    return replace(
        DIANA,
        memories=tuple(
            replace(entry, size=l1) if entry.name == "L1" else entry for entry in DIANA.memories
        ),
        dma=replace(DMA, bytes_per_cycle=dma),
        accelerators=(array, ANALOG),
        powers=DIANA.powers if same else (),
    )


DIANA = Soc(
    name="diana",
    title="DIANA",
    clock_hz=260_000_000,  # published: all tables are at 260 MHz (paper IV)
    memories=(
        Memory("L1", L1_BASE, L1_BYTES, "shared L1 activation memory"),
        Memory("L2", L2_BASE, L2_BYTES, "L2: code, constants, arena, stack"),
    ),
    host=HOST,
    # assumed: the simulator's own registers.
    sim=SimControl(
        putchar=SIM_REGISTERS + 0x0, exit=SIM_REGISTERS + 0x4, trace=SIM_REGISTERS + 0x8
    ),
    dma=DMA,
    accelerators=(DIGITAL, ANALOG),
    targets=(*_targets("diana", None), *_targets("diana.simd", SIMD_HOST)),
    driver="diana",
    # public code: the average powers that ODiMO uses for DIANA's cores, at 260 MHz.  They apply
    # while the core works on a layer; for the host alone nothing is public.
    powers=(
        Power(("digital",), 24.96, ODIMO),
        Power(("analog",), 28.74, ODIMO),
        Power(("digital", "analog"), 42.39, ODIMO),
    ),
    parameters=PARAMETERS,
    design=_design,
)


def soc() -> Soc:
    """Return the description of DIANA (entry point ``diana`` of the group ``htvm.socs``)."""
    return DIANA
