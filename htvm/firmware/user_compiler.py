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

from byoc_dory.errors import TargetError, ToolchainError
from htvm.firmware.arm import arm_flags
from htvm.firmware.isa import rv32_flags, vector_flags
from htvm.firmware.toolchain import Compiler
from htvm.processes import run

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc

_log = logging.getLogger(__name__)

_WHERE = "--cc"
_SECONDS = 30
_PROBE = "int htvm_probe(int x);\nint htvm_probe(int x)\n{\n    return x + 1;\n}\n"
_MACHINES = {True: "EM_ARM", False: "EM_RISCV"}
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
    example = "riscv64-unknown-elf-gcc" if soc.host.arm is None else "arm-none-eabi-gcc"
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
    of_riscv = (rv32_flags if vectors is None else vector_flags)(soc.host.isa, gcc=True)
    with tempfile.TemporaryDirectory(prefix="htvm-cc-") as name:
        source, made = Path(name) / "probe.c", Path(name) / "probe.o"
        source.write_text(_PROBE, encoding="utf-8")

        def probe(cpu: str = "") -> str:
            flags = of_riscv if core is None else arm_flags(core, gcc=True, cpu=cpu)
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
        if not _is_for(made, _MACHINES[core is not None], bits):
            lines = [line.strip() for line in answer.splitlines() if line.strip()]
            errors = [line for line in lines if "error" in line]
            first = (errors or lines or ["nothing"])[0]
            raise ToolchainError(
                f"{command!r} is no GCC for {soc.host.name}: given one function, it said {first!r}",
                where=_WHERE,
                hint=hint,
            )
    return compiler


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
