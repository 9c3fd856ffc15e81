"""Firmware for the simulated RISC-V harts: compiled, linked, measured.

Code, constants, data and stack share the machine's first RAM; the linker script is rendered for the
machine, so the same sources make a firmware for any machine.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from byoc_dory.errors import ExportError, L2OverflowError
from htvm.firmware.elf import Elf, Symbol, read_elf
from htvm.firmware.linking import DEFAULT_STACK, linker_script
from htvm.firmware.machine import Machine
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import CompileError, Compiler

__all__ = [
    "Firmware",
    "MemoryUse",
    "build_firmware",
    "include_folders",
    "open_firmware",
    "platform_sources",
    "soc_header",
]

_log = logging.getLogger(__name__)

# Messages of a linker if the memory is too small: its own, and that of link.ld.in.
_OVERFLOW_MESSAGES = ("will not fit in region", "L2 overflow")


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of the firmware's memory by use.

    Attributes:
        code: bytes of instructions.
        constants: bytes of read-only data.
        data: bytes of initialised variables.
        zeroed: bytes of variables that start as zero.
        uninitialised: bytes of the section ``.noinit``, for example an arena.
        stack: bytes reserved for the stack; 0 if it is in another memory.
        limit: size of the memory in bytes.
    """

    code: int
    constants: int
    data: int
    zeroed: int
    uninitialised: int
    stack: int
    limit: int

    @property
    def total(self) -> int:
        """Sum of all uses in bytes, including the stack."""
        parts = (self.code, self.constants, self.data, self.zeroed, self.uninitialised, self.stack)
        return sum(parts)

    def describe(self) -> str:
        """Return the uses as text, without the limit."""
        return (
            f"code {self.code:,} B, constants {self.constants:,} B, data {self.data:,} B, "
            f"zeroed {self.zeroed:,} B, uninitialised {self.uninitialised:,} B, "
            f"stack {self.stack:,} B"
        )


@dataclass(frozen=True)
class Firmware:
    """A linked firmware.

    Attributes:
        elf: the executable.
        machine: the machine it was linked for.
        symbols: its functions and data by name.
        memory: its use of memory.
    """

    elf: Path
    machine: Machine
    symbols: dict[str, Symbol] = field(repr=False)
    memory: MemoryUse


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
    script, elf = out_dir / "link.ld", out_dir / "firmware.elf"
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        script.write_text(linker_script(machine, stack_bytes), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ExportError(
            f"cannot write the firmware: {error.strerror}",
            where=str(out_dir),
            hint="choose a folder that can be written",
        ) from error
    files = [*sources, *platform_sources()]
    folders = [compiler.headers(soc_header(machine)), *includes, *include_folders()]
    try:
        compiler.compile_rv32(files, elf, folders, script, flags, machine.isa)
    except CompileError as error:
        if not any(message in error.output for message in _OVERFLOW_MESSAGES):
            raise
        use = _measure(files, folders, machine, out_dir, compiler, stack_bytes, flags)
        raise _overflow(machine, use) from error
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
    linked = read_elf(path)
    return Firmware(path, machine, linked.symbols, _memory_use(linked, machine, stack_bytes))


def _memory_use(linked: Elf, machine: Machine, stack_bytes: int) -> MemoryUse:
    sizes = {section.name: section.size for section in linked.sections}
    return MemoryUse(
        code=sizes.get(".text", 0),
        constants=sizes.get(".rodata", 0),
        data=sizes.get(".data", 0),
        zeroed=sizes.get(".bss", 0),
        uninitialised=sizes.get(".noinit", 0),
        stack=stack_bytes if machine.l1 is None else 0,
        limit=machine.ram[0][1],
    )


def _measure(
    files: Sequence[Path],
    folders: Sequence[Path],
    machine: Machine,
    out_dir: Path,
    compiler: Compiler,
    stack_bytes: int,
    flags: Sequence[str],
) -> MemoryUse:
    """Link again with as much memory as there are addresses, to learn the sizes."""
    script, elf = out_dir / "measure.ld", out_dir / "measure.elf"
    script.write_text(
        linker_script(machine, stack_bytes, 2**32 - 16 - machine.ram[0][0]), encoding="utf-8"
    )
    try:
        compiler.compile_rv32(files, elf, folders, script, flags, machine.isa)
        return _memory_use(read_elf(elf), machine, stack_bytes)
    finally:
        for file in (script, elf):
            file.unlink(missing_ok=True)


def _overflow(machine: Machine, use: MemoryUse) -> L2OverflowError:
    return L2OverflowError(
        f"the firmware needs {use.total:,} B of L2, there are {use.limit:,} B: {use.describe()}",
        where=f"machine {machine.name}",
        hint="use a target with more L2 (--l2 gives it, where adjustable), or a smaller network",
    )
