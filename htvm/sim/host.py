"""The host platform: generated C, drivers and device models as one native program.

For quick functional runs, sanitizers and fuzzing.  Results are those of the ``rv32`` platform,
bit for bit; there are no host cycles.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from byoc_dory.errors import ExportError, SimulationError, ToolchainError
from byoc_dory.soc.base import Soc
from byoc_dory.soc.header import render
from htvm.firmware.paths import runtime_c, soc_folder, work_folder
from htvm.firmware.toolchain import Compiler

__all__ = [
    "HostProgram",
    "build",
    "driver_sources",
    "include_folders",
    "model_sources",
    "run",
    "sanitizing",
]

_log = logging.getLogger(__name__)

# Exit codes of runtime_c/platform/host/htvm_host.h.
_COMPLAINT = 97
_USAGE = 98


@dataclass(frozen=True)
class HostProgram:
    """A program built for the host platform.

    Attributes:
        path: the executable.
        soc: name of the SoC whose devices it carries.
    """

    path: Path
    soc: str


def driver_sources(soc: Soc) -> tuple[Path, ...]:
    """Return the C files of the SoC's drivers and kernels (none for a SoC without devices)."""
    folder = soc_folder(soc)
    return tuple(sorted([*folder.glob("*_driver.c"), *folder.glob("kernels/*.c")]))


def model_sources(soc: Soc) -> tuple[Path, ...]:
    """Return the C files of the SoC's device models, and of what all models share."""
    folder = soc_folder(soc)
    own = [*folder.glob("model/*.c"), *folder.glob("*_model.c")]
    return tuple(sorted([*own, *(runtime_c() / "soc" / "common").glob("*.c")]))


def include_folders(soc: Soc) -> tuple[Path, ...]:
    """Return the include folders of HAL, SoC and host platform (``htvm_soc.h`` is elsewhere)."""
    root = runtime_c()
    return (root / "platform" / "host", root / "include", soc_folder(soc))


def sanitizing(compiler: Compiler) -> Compiler:
    """Return a compiler whose host programs stop at undefined behaviour.

    gcc and clang also stop at wrong memory accesses; zig has no runtime for that sanitizer.
    """
    kinds = "undefined" if compiler.host == compiler.cross else "address,undefined"
    flags = ("-g", f"-fsanitize={kinds}", f"-fno-sanitize-recover={kinds}")
    return replace(compiler, host=(*compiler.host, *flags))


def build(
    sources: Sequence[Path],
    includes: Sequence[Path],
    soc: Soc,
    out_dir: Path,
    compiler: Compiler,
    sanitize: bool = False,
) -> HostProgram:
    """Build a program for this machine.

    Args:
        sources: the generated C; one file includes ``htvm_host.h`` and defines ``int main(void)``.
            Drivers, device models and the platform are added here.
        includes: include folders of the sources.
        soc: description from which ``htvm_soc.h`` is rendered.
        out_dir: folder for the executable ``model`` and ``htvm_soc.h``; made if need be.
        compiler: the C compiler.
        sanitize: stop at undefined behaviour and, where the compiler can (gcc, clang), at wrong
            memory accesses.

    Raises:
        ExportError: ``out_dir`` cannot be written.
        ToolchainError: there is no compiler, it fails, or this machine does not run Linux (how a
            program finds its own data is ELF's).
    """
    if not sys.platform.startswith("linux"):
        raise ToolchainError(
            f"the host platform needs Linux, this is {sys.platform}",
            where=str(out_dir),
            hint="use platform='rv32', which also gives cycles",
        )
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        (out_dir / "htvm_soc.h").write_text(render(soc), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ExportError(
            f"cannot write the program: {error.strerror}",
            where=str(out_dir),
            hint="choose a folder that can be written",
        ) from error
    platform = runtime_c() / "platform" / "host" / "htvm_host.c"
    path = (sanitizing(compiler) if sanitize else compiler).compile_host(
        [*sources, *driver_sources(soc), *model_sources(soc), platform],
        out_dir / "model",
        [out_dir, *includes, *include_folders(soc)],
    )
    return HostProgram(path=path, soc=soc.name)


def run(
    program: HostProgram,
    inputs: Sequence[bytes],
    output_sizes: Sequence[int],
    *,
    timeout_s: float = 600.0,
    events: list[dict[str, Any]] | None = None,
    settings: Mapping[int, int] | None = None,
) -> list[bytes]:
    """Run a program and return its outputs.

    Args:
        program: from :func:`build`.
        inputs: the bytes of each input, in order.
        output_sizes: bytes of each output, in order.
        timeout_s: seconds after which the program is stopped.
        events: if given, what the devices did is appended: unit, start, end (in accesses and
            waited device cycles, not host cycles), what, bytes, macs, array, weights.
        settings: device register -> value written before anything else; settings of the device
            models, which no program can change.

    Raises:
        SimulationError: a device complained (its message names device, address and size), the
            program failed or crashed, or an output has another size than asked for.
    """
    with work_folder("htvm-host-") as folder:
        input_files = [folder / f"input_{i}" for i in range(len(inputs))]
        output_files = [folder / f"output_{i}" for i in range(len(output_sizes))]
        for file, data in zip(input_files, inputs, strict=True):
            file.write_bytes(data)
        line = [str(program.path)]
        for address, value in (settings or {}).items():
            line += ["--set", f"{address:#x}:{value}"]
        if events is not None:
            line += ["--events", str(folder / "events")]
        line += [*map(str, input_files), "--", *map(str, output_files)]
        _call(line, program, timeout_s)
        outputs = [
            _read(file, size, program)
            for file, size in zip(output_files, output_sizes, strict=True)
        ]
        if events is not None:
            text = (folder / "events").read_text(encoding="utf-8")
            events += [json.loads(entry) for entry in text.splitlines()]
    return outputs


def _call(line: list[str], program: HostProgram, timeout_s: float) -> None:
    where = f"program {program.path} on the host platform of {program.soc}"
    _log.debug("%s", " ".join(line))
    try:
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except OSError as error:
        raise SimulationError(
            f"the program cannot be started: {error.strerror}", where=where, hint="build it again"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise SimulationError(
            f"the program did not end within {timeout_s:g} s",
            where=where,
            hint="allow more time, or look for a device that never becomes idle",
        ) from error
    if done.returncode == 0:
        return
    said = done.stderr.strip()
    if done.returncode == _COMPLAINT:
        raise SimulationError(said or "a device complained", where=where)
    if done.returncode == _USAGE:
        raise SimulationError(said, where=where, hint="give each input and output its exact size")
    if done.returncode < 0:
        try:
            what = signal.Signals(-done.returncode).name
        except ValueError:
            what = f"signal {-done.returncode}"
        raise SimulationError(f"the program crashed ({what}) {said}".strip(), where=where)
    message = f"the program returned {done.returncode}"
    raise SimulationError(f"{message}: {said}" if said else message, where=where)


def _read(file: Path, size: int, program: HostProgram) -> bytes:
    where = f"program {program.path}"
    try:
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise SimulationError(f"the program did not write {file.name}", where=where) from error
    if len(data) != size:
        raise SimulationError(
            f"{file.name} has {len(data)} B, {size} B were asked for", where=where
        )
    return data
