"""Helper: machines of harts with the pipeline of the CV32E40P: one controller and eight cores."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from byoc_dory.soc.base import Cluster, Memory, Soc
from byoc_dory.soc.header import render
from byoc_dory.soc.snitch_ita.description import soc
from htvm.firmware.isa import compiled_isa, rv32_flags
from htvm.firmware.machine import BARE, Machine, SocModel
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.sim.bare import SCRIPT
from tests.sim.harts import CONTROL, EXIT, L1, L2
from tests.sim.harts import SOC as SNITCH

L1_BYTES, L2_BYTES = 256 * 1024, 2 << 20

CLUSTER = Cluster(
    harts=9,
    cores=8,
    registers=CONTROL,
    worker_stack=1024,
    banks=16,
    bank_bytes=4,
    release=2,
    wake=2,
    first=1,
    far_wait=7,
    register_wait=1,
)
SOC: Soc = dataclasses.replace(
    soc(),
    name="pipelines",
    driver="none",
    dma=None,
    targets=(),
    memories=(
        Memory("L1", L1, L1_BYTES - 32 * 1024, mapped=True, reserved=32 * 1024),
        Memory("L2", L2, L2_BYTES),
    ),
    host=dataclasses.replace(SNITCH.host, isa="rv32imc", timing=None, corev=True),
    accelerators=(),
    cluster=CLUSTER,
)


def machine(harts: int, *, devices: Path | None = None, cluster: Cluster = CLUSTER) -> Machine:
    """Harts of one kind with L1 and L2, with test devices or none."""
    model = devices or runtime_c() / "soc" / "none" / "none_model.c"
    described = dataclasses.replace(SOC, cluster=cluster)
    return Machine(
        name="pipelines-timers" if devices else "pipelines",
        ram=((L2, L2_BYTES), (L1, L1_BYTES)),
        putchar=SOC.sim.putchar,
        exit=EXIT,
        trace=SOC.sim.trace,
        soc_model=SocModel(sources=(model,), headers=(("htvm_soc.h", render(described)),)),
        isa=compiled_isa(SOC.host),
        harts=harts,
    )


def assemble(text: str, folder: Path, compiler: Compiler) -> Path:
    """Assemble and link a program of 32-bit instructions at the start of L2."""
    source, script, elf = folder / "program.S", folder / "program.ld", folder / "program.elf"
    source.write_text(f".option norvc\n.option norelax\n{text}")
    script.write_text(SCRIPT)
    return compiler.compile_cross([source], elf, [], rv32_flags(compiled_isa(SOC.host)), script)


def bare_hart(
    *,
    corev: bool = True,
    near: bool = False,
    near_bytes: int = BARE.ram[0][1],
    far_wait: int = 0,
    sources: tuple[Path, ...] = (),
) -> Machine:
    """Return the bare machine with one such hart.

    Args:
        corev: it has the CORE-V extensions.
        near: its memory is L1, or at least ``near_bytes`` of it.
        near_bytes: size of L1.
        far_wait: cycles that it waits for other memory.
        sources: of devices.
    """
    values = {
        "HARTS": 1,
        "CORES": 1,
        "FIRST": 0,
        "REGISTERS": CONTROL,
        "WORKER_STACK": 0,
        "BANKS": 16,
        "BANK_BYTES": 4,
        "RELEASE": 2,
        "WAKE": 2,
        "FAR_WAIT": far_wait,
        "REGISTER_WAIT": 0,
    }
    lines = [f"#define HTVM_CLUSTER_{name} {value}u" for name, value in values.items()]
    lines += ["#define HTVM_CORE_COREV 1"] if corev else []
    if near:
        lines += ["#define HTVM_L1_MAPPED 1", "#define HTVM_L1_RESERVED 0u"]
        lines += [f"#define HTVM_L1_BASE {BARE.ram[0][0]}u"]
        lines += [f"#define HTVM_L1_SIZE {near_bytes}u"]
    return dataclasses.replace(
        BARE,
        name="bare-hart",
        soc_model=SocModel(
            sources=sources or (runtime_c() / "soc" / "none" / "none_model.c",),
            headers=(("htvm_soc.h", "\n".join(lines) + "\n"),),
        ),
    )
