"""Helper: machines of many harts, and programs for them assembled from text."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from byoc_dory.soc.header import render
from byoc_dory.soc.snitch_ita.description import soc
from htvm.firmware.isa import rv32_flags
from htvm.firmware.machine import Machine, SocModel
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler

SOC = soc()
assert SOC.cluster is not None and SOC.host.timing is not None
CLUSTER, TIMING = SOC.cluster, SOC.host.timing
L1, L2 = 0x1000_0000, 0x8000_0000
L1_BYTES, L2_BYTES = 128 * 1024, 1 << 20
CONTROL = CLUSTER.registers
EXIT = SOC.sim.exit
TIMERS = Path(__file__).parent / "devices" / "timers_model.c"

_SCRIPT = """ENTRY(_start)
SECTIONS {
    . = 0x80000000;
    .text : { *(.text .text.*) }
    .data : ALIGN(16) { *(.data .data.*) }
}
"""

END = f"""
    li a0, 0x5555
    li a1, {EXIT:#x}
    sw a0, 0(a1)
"""
"""Ends the run."""

SLEEP = """
    wfi
    j .-4
"""
"""Sleeps for ever."""


def machine(harts: int, *, devices: Path | None = None) -> Machine:
    """The cluster's harts and memories, with test devices or none."""
    model = devices or runtime_c() / "soc" / "none" / "none_model.c"
    return Machine(
        name="harts-timers" if devices else "harts",
        ram=((L2, L2_BYTES), (L1, L1_BYTES)),
        putchar=SOC.sim.putchar,
        exit=EXIT,
        trace=SOC.sim.trace,
        soc_model=SocModel(
            sources=(model,),
            headers=(("htvm_soc.h", render(dataclasses.replace(SOC, accelerators=()))),),
        ),
        isa="rv32ima",
        harts=harts,
    )


def assemble(text: str, folder: Path, compiler: Compiler) -> Path:
    """Assemble and link a program without compressed instructions at the start of L2."""
    source, script, elf = folder / "program.S", folder / "program.ld", folder / "program.elf"
    source.write_text(text)
    script.write_text(_SCRIPT)
    return compiler.compile_cross([source], elf, [], rv32_flags("rv32ima"), script)
