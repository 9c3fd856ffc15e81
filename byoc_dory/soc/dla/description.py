"""The accelerator's SoC in numbers: parameters, defaults, and the host beside it.

Published (Sponner et al., TinyML Research Symposium 2021): 64 or 128 PEs, parallel over input or
output channels; SRAM of 512 KiB, 1 MiB or 256 MiB; three kinds of support for depthwise
convolutions; convolutions that requantize or do not; a DMA between system memory and SRAM; a CPU
that writes registers.  Everything else is assumed where nothing is said.
"""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.soc.base import Memory, SimControl, Soc, TargetSpec
from byoc_dory.soc.cores import CV32E40P, CV32E40P_SIMD
from byoc_dory.soc.dla.accelerator import Dla
from byoc_dory.soc.dla.design import DEPTHWISE, array_of
from byoc_dory.soc.parameters import Parameter

PARAMETERS = (
    Parameter("pes", 64, "processing elements", low=1, high=4096),
    Parameter(
        "parallel",
        "output",
        "channels that they work on in parallel",
        choices=("input", "output", "both"),
    ),
    Parameter(
        "pes_in",
        0,
        "of these, over input channels, if parallel=both; 0: about the square root",
        low=0,
        high=4096,
    ),
    Parameter("sram", 1 << 20, "SRAM of the accelerator", unit="B", low=1 << 10, high=256 << 20),
    Parameter("dma_bytes", 16, "bytes per cycle from and to system memory", low=1, high=1024),
    Parameter("dma_setup", 50, "cycles of each transfer besides", low=0, high=100_000),
    Parameter("depthwise", "native", "who computes depthwise convolutions", choices=DEPTHWISE),
    Parameter("fused", True, "whether convolutions requantize their sums themselves"),
    Parameter(
        "rows",
        "published",
        "tiles of output channels only, as published, or of rows, too",
        choices=("published", "tiled"),
    ),
    Parameter("host", "scalar", "the CPU's instructions", choices=("scalar", "simd")),
)

# An address map of our own: room for 256 MiB of SRAM, and for 512 MiB of system memory.
SRAM_BASE = 0x10000000
SYSTEM_BASE = 0x20000000
REGISTERS = 0x40000000
SIM_REGISTERS = 0x40001000

# Networks and their arenas are in system memory; it is not a constraint here.
SYSTEM_BYTES = 32 << 20


def design(
    *,
    pes: int,
    parallel: str,
    pes_in: int,
    sram: int,
    dma_bytes: int,
    dma_setup: int,
    depthwise: str,
    fused: bool,
    rows: str,
    host: str,
) -> Soc:
    """Return the SoC with these parameters (`PARAMETERS`).

    Raises:
        TargetError: ``pes_in`` does not divide ``pes``, or contradicts ``parallel``.
    """
    inputs, outputs = array_of(pes, parallel, pes_in)
    accelerator = Dla(
        name="dla",
        title=f"accelerator of {inputs} x {outputs} PEs",
        registers=REGISTERS,
        l1="L1",
        family="dla",
        pes_in=inputs,
        pes_out=outputs,
        dma_bytes=dma_bytes,
        dma_setup=dma_setup,
        depthwise=DEPTHWISE.index(depthwise),
        fused=int(fused),
        rows=int(rows == "tiled"),
        max_shift=31,
        # derived: measured on the simulated host (what runs took beside the accelerator's cycles)
        issue_cycles=10,
        call_cycles=130,
        load_cycles=260,
        # derived: fitted to six runs of DS-CNN and ResNet-8 (tests/sweeping/test_quick.py)
        exposed_issue_cycles=15,
        exposed_call_cycles=150,
    )
    return Soc(
        name="dla",
        title="parametrised accelerator",
        clock_hz=260_000_000,  # assumed: DIANA's clock, so that times compare
        memories=(
            Memory("L1", SRAM_BASE, sram, "SRAM of the accelerator"),
            Memory("L2", SYSTEM_BASE, SYSTEM_BYTES, "system memory: code, constants, arena, stack"),
        ),
        host=replace(CV32E40P if host == "scalar" else CV32E40P_SIMD, stack=16_384),
        sim=SimControl(putchar=SIM_REGISTERS, exit=SIM_REGISTERS + 4, trace=SIM_REGISTERS + 8),
        dma=None,
        accelerators=(accelerator,),
        targets=(TargetSpec("dla", ("dla",)), TargetSpec("dla.cpu", ())),
        driver="dla",
        libraries=("soc/dla/late",),
        adjustable=("L2",),
        parameters=PARAMETERS,
        design=design,
    )


def soc() -> Soc:
    """Return the description (entry point ``dla`` of the group ``htvm.socs``)."""
    return design(**{parameter.name: parameter.default for parameter in PARAMETERS})  # type: ignore[arg-type]
