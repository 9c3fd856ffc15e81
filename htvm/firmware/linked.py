"""Linking a firmware, and what a linked one takes of its core's memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from byoc_dory.errors import ExportError, L2OverflowError, SimulationError
from htvm.firmware.diagnostics import CompileError
from htvm.firmware.elf import Elf, Symbol, read_elf
from htvm.firmware.toolchain import Compiler

# Messages of a linker if a memory is too small: its own, and those of the link.ld.in.
_OVERFLOW_MESSAGES = ("will not fit in region", "L2 overflow", "RAM overflow", "overflowed by")

_On = TypeVar("_On")


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of a firmware's memories by use.

    Attributes:
        code: bytes of instructions and vectors.
        constants: bytes of read-only data.
        data: bytes of initialised variables; where code is in flash, also there as initial values.
        zeroed: bytes of variables that start as zero.
        uninitialised: bytes of the section ``.noinit``, for example an arena.
        stack: bytes reserved for the stack; 0 if it is in another memory.
    """

    code: int
    constants: int
    data: int
    zeroed: int
    uninitialised: int
    stack: int

    @property
    def flash(self) -> int:
        """Bytes of flash, where code and constants are there."""
        return self.code + self.constants + self.data

    @property
    def ram(self) -> int:
        """Bytes of RAM, including the stack, where code and constants are in flash."""
        return self.data + self.zeroed + self.uninitialised + self.stack

    @property
    def total(self) -> int:
        """Sum of all uses in bytes, including the stack, where one memory has all."""
        return self.code + self.constants + self.ram

    def describe(self) -> str:
        """Return the uses as text."""
        return (
            f"code {self.code:,} B, constants {self.constants:,} B, data {self.data:,} B, "
            f"zeroed {self.zeroed:,} B, uninitialised {self.uninitialised:,} B, "
            f"stack {self.stack:,} B"
        )


def use_of(linked: Elf, stack: int) -> MemoryUse:
    """Return the uses of an executable with this many bytes reserved for the stack."""
    sizes = {section.name: section.size for section in linked.sections}
    return MemoryUse(
        code=sizes.get(".vectors", 0) + sizes.get(".text", 0),
        constants=sizes.get(".rodata", 0),
        data=sizes.get(".data", 0),
        zeroed=sizes.get(".bss", 0),
        uninitialised=sizes.get(".noinit", 0),
        stack=stack,
    )


@dataclass(frozen=True)
class Firmware(Generic[_On]):
    """A linked firmware.

    Attributes:
        elf: the executable.
        machine: what it was linked for.
        symbols: its functions and data by name.
        memory: its use of memory.
    """

    elf: Path
    machine: _On
    symbols: dict[str, Symbol] = field(repr=False)
    memory: MemoryUse

    @classmethod
    def open(cls, path: Path, machine: _On, stack: int) -> Firmware[_On]:
        """Return a firmware that was linked before.

        Args:
            path: its ELF file.
            machine: what it was linked for.
            stack: bytes reserved for the stack in the memory of its variables.

        Raises:
            SimulationError: the file is missing or not a firmware.
        """
        linked = read_elf(path)
        return cls(path, machine, linked.symbols, use_of(linked, stack))

    def symbol(self, name: str, size: int = 0) -> Symbol:
        """Return a symbol that has at least this many bytes.

        Raises:
            SimulationError: there is none, or it has fewer.
        """
        symbol = self.symbols.get(name)
        if symbol is None:
            raise self.error(f"the firmware has no symbol {name!r}")
        if size > symbol.size:
            raise self.error(f"{size} bytes do not fit into {name!r}, which has {symbol.size}")
        return symbol

    def error(self, what: str, hint: str = "") -> SimulationError:
        """Return an error of this firmware."""
        return SimulationError(what, where=str(self.elf), hint=hint)


def link_firmware(
    compiler: Compiler,
    core: Sequence[str],
    sources: Sequence[Path],
    includes: Sequence[Path],
    folder: Path,
    *,
    script_of: Callable[[int | None], str],
    limit: int,
    stack: int,
    overflow: Callable[[MemoryUse], L2OverflowError],
    flags: Sequence[str] = (),
) -> Path:
    """Compile and link ``firmware.elf`` with ``link.ld``.

    Args:
        compiler: the cross compiler.
        core: flags that describe the core.
        sources: C, assembly and object files.
        includes: include folders, searched in this order.
        folder: folder of both files; created if necessary.
        script_of: text of the linker script; given a size, with as many bytes in each memory.
        limit: bytes of each memory to learn how much a firmware needs.
        stack: bytes reserved for the stack in the memory of its variables.
        overflow: makes the error for a firmware that needs too much.
        flags: further compiler flags.

    Raises:
        L2OverflowError: a memory is too small; the message lists the sizes.
        ToolchainError: there is no compiler, or it fails.
        ExportError: the folder cannot be written.
    """
    elf, measured = folder / "firmware.elf", folder / "measure.elf"
    script, endless = folder / "link.ld", folder / "measure.ld"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        script.write_text(script_of(None), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ExportError(
            f"cannot write the firmware: {error.strerror}",
            where=str(folder),
            hint="choose a folder that can be written",
        ) from error

    def compiled(out: Path, script: Path) -> Path:
        return compiler.compile_cross(sources, out, includes, core, script, flags)

    try:
        return compiled(elf, script)
    except CompileError as error:
        if not any(message in error.output for message in _OVERFLOW_MESSAGES):
            raise
        try:
            # With as much memory as there are addresses, to learn the sizes.
            endless.write_text(script_of(limit), encoding="utf-8")
            use = use_of(read_elf(compiled(measured, endless)), stack)
        finally:
            for file in (endless, measured):
                file.unlink(missing_ok=True)
        raise overflow(use) from error
