"""Ethos-U55 and U65 beside a Cortex-M55, in numbers.

Public code (Vela 5.2.0, ``architecture_features.py`` and ``config_files/Arm/vela.ini``):
configurations of the accelerators, their own memory, and the memories that estimates assume
("Ethos_U55_High_End_Embedded" and "Ethos_U65_Embedded").  Assumed where nothing else is said.
"""

from __future__ import annotations

from byoc_dory.soc.arm_cores import ARM_CORES
from byoc_dory.soc.base import Memory, SimControl, Soc, TargetSpec
from byoc_dory.soc.ethos_u.npu import EthosU
from byoc_dory.soc.ethos_u.vela import Memories
from byoc_dory.soc.parameters import Parameter

SHRAM = {32: 16 << 10, 64: 16 << 10, 128: 24 << 10, 256: 48 << 10}
"""Bytes of the accelerator's own memory by multiply-accumulates per cycle (Vela)."""

U65_MACS = 256

_FLASH = (0.125, 128, 64, 0, 2, 0)
_U55 = Memories(500_000_000, sram=(1.0, 32, 32, 32, 4, 4), flash=_FLASH)
_U65 = Memories(500_000_000, sram=(1.0, 32, 32, 32, 8, 8), flash=(0.0625, 128, 64, 0, 2, 0))

# The address of Corstone-300's register block, as Arm's application note AN547 and QEMU have it.
REGISTERS = 0x4810_2000

FLASH_BASE, FLASH_BYTES = 0x0000_0000, 64 << 20  # assumed: room for every network
RAM_BASE = 0x2000_0000
RAM_BYTES = 4 << 20  # assumed: room for every network of MLPerf Tiny, and for larger ones

PARAMETERS = (
    Parameter("macs", U65_MACS, "multiply-accumulates per cycle", choices=tuple(SHRAM)),
    Parameter(
        "sram", RAM_BYTES, "RAM: arena, stack", unit="B", low=16 << 10, high=64 << 20, step=16
    ),
)


def _accelerator(architecture: str, macs: int) -> EthosU:
    name = f"ethos_{architecture.removeprefix('Ethos').lower()}"
    return EthosU(
        name=name,
        title=f"Ethos-{architecture.removeprefix('Ethos')} with {macs} MACs per cycle",
        registers=REGISTERS,
        l1="L2",
        family="ethos_u",
        architecture=architecture,
        macs=macs,
        shram=SHRAM[macs],
        memories=_U55 if architecture == "EthosU55" else _U65,
        element_cycles=1,  # assumed: only for comparing cores before Vela is asked
    )


def design(*, macs: int, sram: int) -> Soc:
    """Return the SoC with these parameters (`PARAMETERS`).

    The U65 has 256 multiply-accumulates per cycle; with another number there is only a U55.
    """
    u55 = _accelerator("EthosU55", macs)
    accelerators = (u55, _accelerator("EthosU65", macs)) if macs == U65_MACS else (u55,)
    host = ARM_CORES["cortex_m55"]
    return Soc(
        name="ethos_u",
        title="Cortex-M55 with an Ethos-U55 or U65",
        clock_hz=_U55.core_clock,
        memories=(
            Memory("flash", FLASH_BASE, FLASH_BYTES, "flash: code, weights"),
            Memory("L2", RAM_BASE, sram, "SRAM: arena, inputs and outputs, stack"),
        ),
        host=host,
        # assumed: above all memories; only the simulator of RISC-V cores uses them.
        sim=SimControl(putchar=0xF000_0000, exit=0xF000_0004, trace=0xF000_0008),
        dma=None,
        accelerators=accelerators,
        targets=(
            TargetSpec("ethos_u", (u55.name,)),
            *(TargetSpec(entry.name, (entry.name,)) for entry in accelerators),
            TargetSpec("ethos_u.cpu", ()),
        ),
        driver="ethos_u",
        adjustable=("L2",),
        code_memory="flash",
        parameters=PARAMETERS,
        design=design,
    )


def soc() -> Soc:
    """Return the description (entry point ``ethos_u`` of the group ``htvm.socs``)."""
    return design(**{parameter.name: parameter.default for parameter in PARAMETERS})  # type: ignore[arg-type]
