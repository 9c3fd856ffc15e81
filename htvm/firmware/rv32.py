"""Firmware for the simulated RISC-V harts: compiled, linked, measured.

Code, constants, data and stack share the machine's first RAM; the linker script is rendered for the
machine, so the same sources make a firmware for any machine.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from byoc_dory.errors import L2OverflowError
from htvm.firmware import linked
from htvm.firmware.isa import rv32_flags
from htvm.firmware.linked import MemoryUse, link_firmware
from htvm.firmware.machine import DEFAULT_STACK, Machine, linker_script
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler

_log = logging.getLogger(__name__)

Firmware: TypeAlias = linked.Firmware[Machine]
"""A firmware linked for a machine."""


def platform_sources() -> tuple[Path, ...]:
    """Return the sources that every firmware contains: start-up, end of run, missing libc parts."""
    folder = runtime_c() / "platform" / "rv32"
    return tuple(folder / name for name in ("crt0.S", "memory.c", "real.c", "platform.c"))


def include_folders() -> tuple[Path, ...]:
    """Return the include folders of the HAL and the small libc (except that of ``htvm_soc.h``)."""
    root = runtime_c()
    return (root / "platform" / "rv32", root / "platform" / "rv32" / "libc", root / "include")


def soc_header(machine: Machine) -> tuple[tuple[str, str], ...]:
    """Return a machine's generated headers as (file name, text), including ``htvm_soc.h``.

    For a machine without devices the header has only the simulator's registers.
    """
    headers = machine.soc_model.headers if machine.soc_model is not None else ()
    if any(name == "htvm_soc.h" for name, _ in headers):
        return headers
    lines = [
        f"/* Machine {machine.name}. */",
        "#ifndef HTVM_SOC_H",
        "#define HTVM_SOC_H",
        f"#define HTVM_SIM_PUTCHAR 0x{machine.putchar:08X}u",
        f"#define HTVM_SIM_EXIT 0x{machine.exit:08X}u",
    ]
    if machine.trace is not None:
        lines.append(f"#define HTVM_SIM_TRACE 0x{machine.trace:08X}u")
    return (*headers, ("htvm_soc.h", "\n".join([*lines, "#endif", ""])))


def build_firmware(
    sources: Sequence[Path],
    includes: Sequence[Path],
    machine: Machine,
    out_dir: Path,
    compiler: Compiler,
    stack_bytes: int = DEFAULT_STACK,
    flags: Sequence[str] = (),
) -> Firmware:
    """Compile and link a firmware.

    Args:
        sources: C and assembly files with an ``int main(void)``, whose result ends the run.  The
            platform's own files are added here.
        includes: include folders of the sources.
        machine: the machine it will run on.
        out_dir: folder for ``firmware.elf`` and ``link.ld``; created if necessary.
        compiler: the cross compiler.
        stack_bytes: bytes reserved for the stack.
        flags: further compiler flags.

    Raises:
        L2OverflowError: code, data and stack exceed the machine's RAM; the message lists the sizes.
        ToolchainError: there is no compiler, or it fails.
        ExportError: ``out_dir`` cannot be written.
    """
    elf = link_firmware(
        compiler,
        rv32_flags(machine.isa, gcc=compiler.is_gcc),
        [*sources, *platform_sources()],
        [compiler.headers(soc_header(machine)), *includes, *include_folders()],
        out_dir,
        script_of=partial(linker_script, machine, stack_bytes),
        limit=2**32 - 16 - machine.ram[0][0],
        stack=_reserved(machine, stack_bytes),
        overflow=partial(_overflow, machine),
        flags=flags,
    )
    firmware = open_firmware(elf, machine, stack_bytes)
    _log.debug("%s: %s", elf, firmware.memory.describe())
    return firmware


def open_firmware(path: Path, machine: Machine, stack_bytes: int) -> Firmware:
    """Return a firmware that was linked before.

    Args:
        path: its ELF file.
        machine: the machine it was linked for.
        stack_bytes: bytes that were reserved for the stack.

    Raises:
        SimulationError: the file is missing or not a firmware.
    """
    return Firmware.open(path, machine, _reserved(machine, stack_bytes))


def _reserved(machine: Machine, stack_bytes: int) -> int:
    """Return the bytes of the stacks in the machine's first RAM."""
    return machine.stacks(stack_bytes) if machine.l1 is None else 0


def _overflow(machine: Machine, use: MemoryUse) -> L2OverflowError:
    return L2OverflowError(
        f"the firmware needs {use.total:,} B of L2, there are {machine.ram[0][1]:,} B: "
        f"{use.describe()}",
        where=f"machine {machine.name}",
        hint="use a target with more L2 (--l2 gives it, where adjustable), or a smaller network",
    )
