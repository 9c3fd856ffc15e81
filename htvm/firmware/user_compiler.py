"""A GCC of the user's for the core, instead of ziglang's clang.

One that is too old to know a core compiles for the older one with the same instructions, and says
so.
"""

from __future__ import annotations

import logging
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import DependencyError, TargetError, ToolchainError
from htvm.firmware.arm import arm_flags
from htvm.firmware.isa import rv32_flags, user_mode_flags
from htvm.firmware.toolchain import Compiler
from htvm.processes import run

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from byoc_dory.soc.cores import Host

_log = logging.getLogger(__name__)

_WHERE = "--cc"
_SECONDS = 30
_PACKAGE_OF_XTENSA = "gcc-xtensa-lx106"
_PROBE = "int htvm_probe(int x);\nint htvm_probe(int x)\n{\n    return x + 1;\n}\n"
_VECTORS_SINCE = 14
"""The first GCC with all intrinsics for RISC-V's vectors that kernels use."""


def user_compiler(command: str, soc: Soc) -> Compiler:
    """Return a compiler whose firmware comes from this command, checked by compiling one function.

    Args:
        command: name of the program on the user's path, or its path.
        soc: whose core it shall compile for.

    Raises:
        ToolchainError: there is no such program, it is no GCC for the core, or one that is too old.
        TargetError: the core has instructions that GCC does not know.
    """
    if soc.host.corev:
        raise TargetError(
            f"{soc.host.name} has extensions that only ziglang's clang compiles for",
            where=_WHERE,
            hint="leave it out, or choose a target whose core has none",
        )
    found = shutil.which(command)
    machine, example = _machine(soc.host)
    hint = f"give a GCC for {soc.host.name}, such as {example}, by its name or path"
    if found is None:
        raise ToolchainError(f"there is no program {command!r}", where=_WHERE, hint=hint)
    said = _output_of(found, "--version")
    version = re.search(r"\b\d+\.\d+\.\d+\b", said)
    compiler = replace(
        Compiler.zig(),
        cross=(found,),
        gcc=f"{Path(found).name} {version[0] if version is not None else ''}".strip(),
    )
    core, vectors = soc.host.arm, soc.host.vectors
    if vectors is not None:
        _check_vectors(compiler, version, soc)
    with tempfile.TemporaryDirectory(prefix="htvm-cc-") as name:
        source, made = Path(name) / "probe.c", Path(name) / "probe.o"
        source.write_text(_PROBE, encoding="utf-8")

        def probe(cpu: str = "") -> str:
            if core is not None:
                flags = arm_flags(core, gcc=True, cpu=cpu)
            elif soc.host.is_in_user_mode:
                flags = user_mode_flags(soc.host, gcc=True)
            else:
                flags = rv32_flags(soc.host.isa, gcc=True)
            return _output_of(found, *flags, "-c", str(source), "-o", str(made))

        answer = probe()
        if core is not None and core.like and not made.exists():
            probe(core.like)
            if made.exists():
                compiler = replace(compiler, cpu=core.like)
                _log.warning(
                    "%s does not know %s, GCC %s does: it compiles for %s, which has the same "
                    "instructions", compiler.gcc, core.cpu, core.gcc, core.like,
                )  # fmt: skip
        bits = 64 if soc.host.isa.startswith("rv64") else 32
        if not _is_for(made, machine, bits):
            lines = [line.strip() for line in answer.splitlines() if line.strip()]
            errors = [line for line in lines if "error" in line]
            first = (errors or lines or ["nothing"])[0]
            raise ToolchainError(
                f"{command!r} is no GCC for {soc.host.name}: given one function, it said {first!r}",
                where=_WHERE,
                hint=hint,
            )
    return compiler


def compiler_for(soc: Soc) -> Compiler:
    """Return the compiler of a core whose user names none: ziglang's, where that knows the core.

    Raises:
        DependencyError: there is no GCC for an Xtensa core.
        ToolchainError: there is no ziglang.
    """
    if soc.host.xtensa is None:
        return Compiler.zig()
    gcc = soc.host.xtensa.gcc
    if shutil.which(gcc) is None:
        raise DependencyError(
            f"programs for {soc.host.name} need {gcc}",
            where="platform 'qemu'",
            hint="install the package of your system with it: on Debian and Ubuntu, "
            f"{_PACKAGE_OF_XTENSA}; or use platform='host'",
        )
    return user_compiler(gcc, soc)


def _machine(host: Host) -> tuple[str, str]:
    """Return what object files call a core's instruction set, and an example of its GCC."""
    if host.xtensa is not None:
        return "EM_XTENSA", host.xtensa.gcc
    if host.arm is not None:
        return "EM_ARM", "arm-none-eabi-gcc"
    return "EM_RISCV", "riscv64-unknown-elf-gcc"


def _check_vectors(compiler: Compiler, version: re.Match[str] | None, soc: Soc) -> None:
    """Refuse a GCC that lacks intrinsics for vectors."""
    if version is not None and int(version[0].partition(".")[0]) < _VECTORS_SINCE:
        raise ToolchainError(
            f"{compiler.gcc} has no intrinsics for the vectors of {soc.host.name}, "
            f"GCC has them since version {_VECTORS_SINCE}",
            where=_WHERE,
            hint="leave it out: ziglang's clang has them",
        )


def _output_of(*line: str) -> str:
    """Return what a program prints, or why it cannot be started."""
    try:
        ended = run(line, line[0], ToolchainError, _WHERE, seconds=_SECONDS)
    except ToolchainError as error:
        return error.what
    return ended.printed + ended.said


def _is_for(made: Path, machine: str, bits: int) -> bool:
    """Whether a file is an object file of 32 or 64 bits for this machine."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with made.open("rb") as stream:
            elf = ELFFile(stream)
            return (elf.elfclass, str(elf["e_machine"])) == (bits, machine)
    except (OSError, ELFError):
        return False
