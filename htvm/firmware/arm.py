"""Firmware for Cortex-M cores: compiled, linked, measured.

Code and constants are in flash, variables and stack in RAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from byoc_dory.errors import L2OverflowError, TargetError
from byoc_dory.soc.header import render
from htvm.firmware.host import driver_sources, unconnected_models
from htvm.firmware.linked import Firmware, MemoryUse, link_firmware
from htvm.firmware.paths import NO_DEVICES, driver_folders, runtime_c, simd_folders, soc_folder
from htvm.firmware.toolchain import Compiler

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from byoc_dory.soc.cores import ArmCore

_FLAGS = (
    "-mthumb",
    "-std=c11",
    "-O2",
    "-fomit-frame-pointer",
    "-ffunction-sections",
    "-fdata-sections",
    "-ffreestanding",
    "-fno-sanitize=all",
    "-fno-stack-protector",
    "-fno-unwind-tables",
    "-g0",
    "-Wl,--gc-sections",
)

ENDLESS = 1 << 28
"""Bytes of each memory when a firmware is linked only to learn its size."""

ArmFirmware: TypeAlias = "Firmware[Soc]"
"""A firmware linked for a SoC: code and constants in its flash, all else in its RAM."""


def core_of(soc: Soc, platform: str = "arm") -> ArmCore:
    """Return the SoC's Cortex-M core, for a platform.

    Raises:
        TargetError: its host is no such core.
    """
    if soc.host.arm is None:
        raise TargetError(
            f"{soc.host.name} is no Cortex-M core",
            where=f"platform '{platform}'",
            hint=f"use platform='{soc.host.platform}', or a target such as cortex_m4",
        )
    return soc.host.arm


def arm_flags(core: ArmCore, *, gcc: bool = False, cpu: str = "") -> tuple[str, ...]:
    """Return the flags of every build for a core.

    Args:
        core: the core.
        gcc: whether they are GCC's, not clang's.
        cpu: the core that GCC compiles for instead (`Compiler.cpu`).
    """
    # The compiler leaves an extension out where a core may be made without it, as the M33, and for
    # want of floating point.
    extension = f"+{core.extension}" if core.extension else ""
    # Floating point in software on all cores: networks are integers, so a board's own unit need not
    # be switched on, and cores with and without one count the same instructions.  Vectors are in
    # its registers, though, and without them LLVM cannot move elements of 16 bits, and crashes.
    registers = "softfp" if core.extension == "mve" else "soft"
    if gcc:
        return (f"-mcpu={cpu or core.cpu}", f"-mfloat-abi={registers}", *_FLAGS)
    return (
        *("-target", "thumb-freestanding-eabi"),
        f"-mcpu={core.cpu.replace('-', '_')}{extension}",
        f"-mfloat-abi={registers}",
        *_FLAGS,
    )


def on_qemu(soc: Soc) -> Soc:
    """Return a microcontroller with the memories of QEMU's machine for its core.

    Raises:
        TargetError: its host is no Cortex-M core, or QEMU has no machine with it.
    """
    core = core_of(soc, "qemu")
    if soc.cluster is not None and soc.driver == NO_DEVICES:
        raise TargetError(
            f"QEMU's machine with {soc.host.name} has one core, {soc.title} has "
            f"{soc.cluster.cores}",
            where="platform 'qemu'",
            hint="use platform='arm', or leave cores out",
        )
    if core.qemu is None:
        raise TargetError(
            f"QEMU has no machine with the core {soc.host.name}",
            where="platform 'qemu'",
            hint="use platform='arm'",
        )
    places = {soc.code_memory: core.qemu.flash, "L2": core.qemu.ram}
    memories = [
        replace(memory, base=places[memory.name][0], size=places[memory.name][1])
        for memory in soc.memories
    ]
    return replace(soc, memories=tuple(memories))


def platform_sources() -> tuple[Path, ...]:
    """Return the sources that every firmware contains: start-up, missing libc parts."""
    arm, shared = runtime_c() / "platform" / "arm", runtime_c() / "platform" / "rv32"
    return (arm / "startup.c", arm / "memory.c", shared / "memory.c", shared / "real.c")


def include_folders(soc: Soc) -> tuple[Path, ...]:
    """Return the include folders of the HAL and the small libc (except that of ``htvm_soc.h``)."""
    root = runtime_c()
    platforms = root / "platform"
    libc = platforms / "rv32" / "libc"
    devices = () if soc.driver == NO_DEVICES else driver_folders(soc)
    return (platforms / "arm", libc, root / "include", *devices, *simd_folders(soc))


def device_sources(soc: Soc, *, emulated: bool) -> tuple[Path, ...]:
    """Return the C files in place of the drivers of the SoC's devices, often none, and of what
    starts other cores.

    Args:
        soc: the SoC.
        emulated: whether an emulator without the devices will run the firmware, which then has
            their models.  Otherwise it is measured, and has what answers that there is no device.
    """
    if soc.driver == NO_DEVICES:
        return driver_sources(soc)
    if emulated:
        return unconnected_models(soc)
    return tuple(sorted((soc_folder(soc) / "absent").glob("*.c")))


def linker_script(soc: Soc, size: int | None = None) -> str:
    """Return the linker script for a SoC's flash and RAM.

    Args:
        soc: the SoC.
        size: bytes of each memory, if other than its own, to learn how much a firmware would need.
    """
    flash, ram = soc.memory(soc.code_memory), soc.memory("L2")
    workers = soc.stacks - soc.host.stack  # of other cores, below that of the first
    text = (runtime_c() / "platform" / "arm" / "link.ld.in").read_text(encoding="utf-8")
    values = {
        "@FLASH@": f"{flash.base:#010x}",
        "@FLASH_SIZE@": str(flash.size if size is None else size),
        "@RAM@": f"{ram.base:#010x}",
        "@RAM_SIZE@": str(ram.size if size is None else size),
        "@STACK@": str(soc.host.stack),
        "@STACKS@": str(soc.stacks),
        # Where a second core begins, which no code calls.
        "@OTHERS@\n": "EXTERN(htvm_hart_main)\n" if workers and soc.host.arm is not None else "",
        # An Xtensa core's code reads constants that are in front of it.
        "@LITERALS@\n": "" if soc.host.xtensa is None else "        *(.literal .literal.*)\n",
        "@STACKS_LOW@": f"__stack_low - {workers}" if workers else "__stack_low",
    }
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def build_firmware(
    sources: Sequence[Path],
    soc: Soc,
    out_dir: Path,
    compiler: Compiler,
    *,
    emulated: bool = False,
    libraries: Sequence[Path] = (),
) -> None:
    """Compile and link ``firmware.elf``.

    Args:
        sources: C and object files with an ``int main(void)``.  The platform's own files are added
            here.
        soc: the SoC it will run on.
        out_dir: folder for ``firmware.elf`` and ``link.ld``; created if necessary.
        compiler: the cross compiler.
        emulated: as for `device_sources`.
        libraries: archives, for what none of the sources has.

    Raises:
        L2OverflowError: flash or RAM is too small; the message lists the sizes.
        ToolchainError: there is no compiler, or it fails.
        ExportError: ``out_dir`` cannot be written.
    """
    link_firmware(
        compiler,
        arm_flags(core_of(soc), gcc=compiler.is_gcc, cpu=compiler.cpu),
        [*sources, *platform_sources(), *device_sources(soc, emulated=emulated), *libraries],
        [compiler.headers([("htvm_soc.h", render(soc))]), *include_folders(soc)],
        out_dir,
        script_of=partial(linker_script, soc),
        limit=ENDLESS,
        stack=soc.stacks,
        overflow=partial(overflow, soc),
    )


def overflow(soc: Soc, use: MemoryUse) -> L2OverflowError:
    """Return the error for a firmware that needs more than the SoC's flash or RAM."""
    flash, ram = soc.memory(soc.code_memory), soc.memory("L2")
    too_small = [
        f"{need:,} B of {name}, there are {memory.size:,} B"
        for name, need, memory in (("flash", use.flash, flash), ("RAM", use.ram, ram))
        if need > memory.size
    ]
    return L2OverflowError(
        f"the firmware needs {' and '.join(too_small)}: {use.describe()}",
        where=soc.name,
        hint="use a board with more memory, or a smaller network",
    )
