"""Firmware for RISC-V cores with vectors: compiled, linked, measured.

Code and constants are in flash, variables and stack in RAM, as on Cortex-M cores
(`htvm.firmware.arm`).  The firmware is a process of QEMU's user mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import TargetError
from byoc_dory.soc.header import render
from htvm.firmware.arm import ENDLESS, linker_script, overflow
from htvm.firmware.isa import vector_flags
from htvm.firmware.linked import link_firmware
from htvm.firmware.paths import runtime_c, simd_folders
from htvm.firmware.toolchain import Compiler

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from byoc_dory.soc.cores import RiscvVectors


def vectors_of(soc: Soc) -> RiscvVectors:
    """Return the SoC's vector unit.

    Raises:
        TargetError: its host is no RISC-V core with one.
    """
    if soc.host.vectors is None:
        raise TargetError(
            f"{soc.host.name} is no RISC-V core with vectors",
            where="platform 'qemu'",
            hint="choose a target such as rv32imcv or rv64gcv",
        )
    return soc.host.vectors


def platform_sources() -> tuple[Path, ...]:
    """Return the sources that every firmware contains: start-up, missing libc parts."""
    platforms = runtime_c() / "platform"
    shared = platforms / "rv32"
    return (platforms / "user" / "startup.c", shared / "memory.c", shared / "real.c")


def include_folders(soc: Soc) -> tuple[Path, ...]:
    """Return the include folders of the HAL and the small libc (except that of ``htvm_soc.h``)."""
    root = runtime_c()
    platforms = root / "platform"
    # A core without devices: its part of the HAL is the one of Cortex-M cores.
    return (
        platforms / "arm",
        platforms / "rv32" / "libc",
        root / "include",
        *simd_folders(soc),
    )


def build_firmware(sources: Sequence[Path], soc: Soc, out_dir: Path, compiler: Compiler) -> None:
    """Compile and link ``firmware.elf``.

    Args:
        sources: C and object files with an ``int main(void)``.  The platform's own files are added
            here.
        soc: the SoC it will run on.
        out_dir: folder for ``firmware.elf`` and ``link.ld``; created if necessary.
        compiler: the cross compiler.

    Raises:
        TargetError: the host is no RISC-V core with vectors.
        L2OverflowError: flash or RAM is too small; the message lists the sizes.
        ToolchainError: there is no compiler, or it fails.
        ExportError: ``out_dir`` cannot be written.
    """
    vectors_of(soc)
    link_firmware(
        compiler,
        vector_flags(soc.host.isa, gcc=compiler.is_gcc),
        [*sources, *platform_sources()],
        [compiler.headers([("htvm_soc.h", render(soc))]), *include_folders(soc)],
        out_dir,
        script_of=partial(linker_script, soc),
        limit=ENDLESS,
        stack=soc.host.stack,
        overflow=partial(overflow, soc),
    )
