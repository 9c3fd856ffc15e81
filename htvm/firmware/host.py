"""Native programs for the host platform: generated C, drivers and device models.

For quick functional runs, sanitizers and fuzzing.  Results are those of the ``rv32`` platform, bit
for bit; there are no host cycles.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from byoc_dory.errors import ExportError, ToolchainError
from byoc_dory.soc.base import Soc
from byoc_dory.soc.header import render
from htvm.firmware.paths import driver_folders, runtime_c, simd_folders, soc_folder
from htvm.firmware.toolchain import Compiler


@dataclass(frozen=True)
class HostProgram:
    """A program built for the host platform.

    Attributes:
        path: the executable.
        soc: name of the SoC whose device models are linked in.
    """

    path: Path
    soc: str


def driver_sources(soc: Soc) -> tuple[Path, ...]:
    """Return the C files of the SoC's drivers, kernels and libraries; none without devices."""
    folder, *libraries = driver_folders(soc)
    own = sorted([*folder.glob("*_driver.c"), *folder.glob("kernels/*.c")])
    return (*own, *(path for library in libraries for path in sorted(library.glob("*.c"))))


def model_sources(soc: Soc) -> tuple[Path, ...]:
    """Return the C files of the SoC's device models, and those that all models share."""
    return tuple(sorted([*own_models(soc), *(runtime_c() / "soc" / "common").glob("*.c")]))


def own_models(soc: Soc) -> tuple[Path, ...]:
    """Return the C files of the SoC's device models alone."""
    folder = soc_folder(soc)
    return tuple(sorted([*folder.glob("model/*.c"), *folder.glob("*_model.c")]))


def native_sources() -> tuple[Path, ...]:
    """Return the C files of what native kernels call (`htvm.aot.native`)."""
    return tuple(sorted(native_folder().glob("*.c")))


def native_folder() -> Path:
    """Return the folder of what native kernels call, with its header."""
    return runtime_c() / "native"


def include_folders(soc: Soc) -> tuple[Path, ...]:
    """Return the include folders of HAL, SoC and host platform (except that of ``htvm_soc.h``)."""
    root = runtime_c()
    own = (*driver_folders(soc), *simd_folders(soc))
    return (root / "platform" / "host", root / "include", *own)


def model_library(soc: Soc) -> Path:
    """Return the SoC's device models as a shared library of this machine, building it if necessary.

    Without ``<driver>_soc.c``, which connects them to a simulated host.

    Raises:
        ToolchainError: there is no compiler, or it fails.
    """
    folder = soc_folder(soc)
    sources = unconnected_models(soc)
    includes = [folder, folder / "model", runtime_c() / "include"]
    compiler = Compiler.zig()
    return compiler.built(f"lib{soc.driver}.so", sources, includes, flags=("-O3",), shared=True)


def unconnected_models(soc: Soc) -> tuple[Path, ...]:
    """Return the C files of the SoC's device models without what connects them to a simulator."""
    return tuple(path for path in own_models(soc) if path.name != f"{soc.driver}_soc.c")


def sanitizing(compiler: Compiler) -> Compiler:
    """Return a compiler whose host programs stop at undefined behaviour.

    gcc and clang also stop at invalid memory accesses, and say what is wrong.  zig has no runtime
    for that sanitizer, and takes 20 s to make the one that would say it: there, programs just stop.
    """
    kinds = "address,undefined"
    flags = (f"-fsanitize={kinds}", f"-fno-sanitize-recover={kinds}")
    if compiler.host == compiler.cross:
        flags = ("-fsanitize=undefined", "-fsanitize-trap=undefined")
    return replace(compiler, host=(*compiler.host, "-g", *flags))


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
        soc: SoC description from which ``htvm_soc.h`` is rendered.
        out_dir: folder for the executable ``model``; created if necessary.
        compiler: the C compiler.
        sanitize: whether to stop at undefined behaviour and, if the compiler can (gcc, clang), at
            invalid memory accesses.

    Raises:
        ExportError: ``out_dir`` cannot be written.
        ToolchainError: there is no compiler, it fails, or this machine does not run Linux (programs
            find their own data through ELF symbols).
    """
    if not sys.platform.startswith("linux"):
        raise ToolchainError(
            f"the host platform needs Linux, this is {sys.platform}",
            where=str(out_dir),
            hint="use platform='rv32', which also gives cycles",
        )
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(
            f"cannot write the program: {error.strerror}",
            where=str(out_dir),
            hint="choose a folder that can be written",
        ) from error
    path = (sanitizing(compiler) if sanitize else compiler).compile_host(
        [*sources, *_machine_sources(soc)],
        out_dir / "model",
        [compiler.headers([("htvm_soc.h", render(soc))]), *includes, *include_folders(soc)],
    )
    return HostProgram(path=path, soc=soc.name)


def build_object(sources: Sequence[Path], soc: Soc, out: Path, compiler: Compiler) -> Path:
    """Build one object file for shared libraries, with drivers, device models and platform.

    Args:
        sources: the generated C; whoever calls it begins with ``htvm_host_begin``.
        soc: SoC description from which ``htvm_soc.h`` is rendered.
        out: the object file.
        compiler: ziglang; the code is for any machine of this architecture.

    Raises:
        ToolchainError: the compiler failed.
    """
    return compiler.compile_host(
        [*sources, *_machine_sources(soc)],
        out,
        [compiler.headers([("htvm_soc.h", render(soc))]), *include_folders(soc)],
        ("-DHTVM_HOST_LIBRARY", "-fPIC", "-mcpu=baseline", "-r"),
    )


def _machine_sources(soc: Soc) -> tuple[Path, ...]:
    """Return the C files that are linked to generated code: drivers, device models, platform."""
    platform = runtime_c() / "platform" / "host" / "htvm_host.c"
    return (*driver_sources(soc), *model_sources(soc), platform)
