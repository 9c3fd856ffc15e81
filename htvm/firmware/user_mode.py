"""Firmware for RISC-V cores with vectors and for Xtensa cores: compiled, linked, measured.

Code and constants are in flash, variables and stack in RAM, as on Cortex-M cores
(`htvm.firmware.arm`).  The firmware is a process of QEMU's user mode, where one core computes the
shares of all, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import TargetError
from byoc_dory.soc.header import render
from htvm.firmware.arm import ENDLESS, linker_script, overflow
from htvm.firmware.host import driver_sources
from htvm.firmware.isa import user_mode_flags
from htvm.firmware.linked import link_firmware
from htvm.firmware.paths import runtime_c, simd_folders
from htvm.firmware.toolchain import Compiler

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from byoc_dory.soc.cores import Host


def check_user_mode(host: Host) -> None:
    """Check that programs for a core are processes of QEMU's user mode.

    Raises:
        TargetError: it is another core.
    """
    if not host.is_in_user_mode:
        raise TargetError(
            f"{host.name} is no RISC-V core with vectors, and no Xtensa core",
            where="platform 'qemu'",
            hint="choose a target such as rv32imcv, rv64gcv or xtensa_lx6",
        )


def in_user_mode(soc: Soc) -> Soc:
    """Return a SoC with its memories where a process of QEMU's user mode has them.

    Raises:
        TargetError: its host is another core.
    """
    check_user_mode(soc.host)
    core = soc.host.xtensa
    if core is None:
        return soc
    places = {soc.code_memory: core.flash, "L2": core.ram}
    memories = [replace(memory, base=places[memory.name]) for memory in soc.memories]
    return replace(soc, memories=tuple(memories))


def platform_sources(soc: Soc) -> tuple[Path, ...]:
    """Return the sources that every firmware contains: start-up, missing parts of the libraries."""
    platforms = runtime_c() / "platform"
    user, shared = platforms / "user", platforms / "rv32"
    missing = () if soc.host.xtensa is None else (user / "lx106.c",)
    return (user / "startup.c", *missing, shared / "memory.c", shared / "real.c")


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
        TargetError: the host is another core.
        L2OverflowError: flash or RAM is too small; the message lists the sizes.
        ToolchainError: there is no compiler, or it fails.
        ExportError: ``out_dir`` cannot be written.
    """
    soc = in_user_mode(soc)
    link_firmware(
        compiler,
        user_mode_flags(soc.host, gcc=compiler.is_gcc),
        [*sources, *platform_sources(soc), *driver_sources(soc)],
        [compiler.headers([("htvm_soc.h", render(soc))]), *include_folders(soc)],
        out_dir,
        script_of=partial(linker_script, soc),
        limit=ENDLESS,
        stack=soc.stacks,
        overflow=partial(overflow, soc),
    )
