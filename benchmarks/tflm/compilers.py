"""The compilers that both sides are compiled with: GCC, the system's clang, and ziglang's.

A level of optimization is the last flag of every file of kernels.  C and C++ headers and the
library of the compiler (``libgcc``) are those of the GCC for Arm for the system's clang, too, as in
vendors' packages; ziglang has its own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import ziglang

from byoc_dory.errors import ToolchainError
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cores import ArmCore
from htvm.firmware.arm import arm_flags, core_of
from htvm.firmware.toolchain import Compiler
from htvm.firmware.user_compiler import user_compiler

__all__ = ["LEVELS", "NAMES", "Kit", "kit_of"]

_WHERE = "benchmarks.tflm"
GCC = "arm-none-eabi-gcc"
NAMES = ("gcc", "clang", "zig")
LEVELS = ("-O2", "-O3")

# What the compiler's package would say of its C++ headers if it built their library.
_ZIG_CXX = (
    "-nostdinc++",
    "-D_LIBCPP_ABI_VERSION=1", "-D_LIBCPP_ABI_NAMESPACE=__1", "-D_LIBCPP_HAS_THREADS=0",
    "-D_LIBCPP_HARDENING_MODE=2", "-D_LIBCPP_HARDENING_MODE_DEFAULT=2",
    "-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=2", "-D_LIBCPP_HAS_MUSL_LIBC=1",
    "-D_LIBCPP_HAS_MONOTONIC_CLOCK=0", "-D_LIBCPP_HAS_FILESYSTEM=0", "-D_LIBCPP_HAS_UNICODE=1",
    "-D_LIBCPP_HAS_WIDE_CHARACTERS=1", "-D_LIBCPP_HAS_LOCALIZATION=1",
    "-D_LIBCPP_HAS_RANDOM_DEVICE=0", "-D_LIBCPP_HAS_TERMINAL=0",
    "-D_LIBCPP_HAS_TIME_ZONE_DATABASE=0", "-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0",
    "-D_LIBCPP_PSTL_BACKEND_SERIAL",
)  # fmt: skip


@dataclass(frozen=True)
class Kit:
    """A compiler for a core, at a level of optimization.

    Attributes:
        compiler: the compiler; the flags of kernels end with the level.
        c, cxx: folders of headers for C, and those for C++ before them.
        cxx_flags: flags of C++ besides.
        libraries: archives of the C library that preparing a network needs.
    """

    compiler: Compiler
    c: tuple[Path, ...] = ()
    cxx: tuple[Path, ...] = ()
    cxx_flags: tuple[str, ...] = ()
    libraries: tuple[Path, ...] = ()


def kit_of(name: str, level: str, soc: Soc) -> Kit:
    """Return a compiler for a SoC's core.

    Args:
        name: one of `NAMES`.
        level: flag of the level of optimization.
        soc: a microcontroller with a Cortex-M core.

    Raises:
        ToolchainError: it is not installed, or too old for the core and for the older one with
            the same instructions; the message says which version there is.
    """
    core = core_of(soc)
    if name == "zig":
        package = Path(ziglang.__file__).parent / "lib"
        libc = package / "libc" / "include"
        return Kit(
            replace(Compiler.zig(), kernel_flags=(level,)),
            (libc / "arm-linux-musl", libc / "generic-musl"),
            (package / "libcxx" / "include", package / "libcxxabi" / "include"),
            _ZIG_CXX,
        )
    if shutil.which(GCC) is None:
        raise ToolchainError(f"{GCC} is not installed", where=_WHERE)
    gcc = user_compiler(GCC, soc)
    flags = arm_flags(core, gcc=True, cpu=gcc.cpu)
    libraries = (Path(_said(GCC, *flags, "-print-file-name=libm.a")),)
    if name == "gcc":
        return Kit(replace(gcc, kernel_flags=(level,)), libraries=libraries)
    found = shutil.which(name)
    if found is None:
        raise ToolchainError(f"there is no program {name!r}", where=_WHERE)
    # The driver would look for a library in folders of its own.
    library = Path(_said(GCC, *flags, "-print-libgcc-file-name")).parent
    version = re.search(r"version (\d+\.\d+\.\d+)", _said(found, "--version"))
    clang = replace(
        Compiler.zig(),
        cross=(found, "--target=arm-none-eabi", "-fuse-ld=lld", f"-L{library}", "-w"),
        gcc=f"{name} {version[1] if version else ''}".strip(),
        # Its loops may call memcpy, and copies of a few bytes must not.
        kernel_flags=("-fhosted", level),
    )
    said = _said_of_core(clang, core)
    if said and core.like:
        clang = replace(clang, cpu=core.like)
        said = _said_of_core(clang, core)
    if said:
        raise ToolchainError(f"{clang.gcc} does not compile for {core.cpu}: {said}", where=_WHERE)
    newlib = _headers(flags, "c")
    cxx = tuple(folder for folder in _headers(flags, "c++") if "c++" in folder.parts)
    return Kit(clang, newlib[-1:], cxx, ("-nostdinc++",), libraries)


def _said_of_core(compiler: Compiler, core: ArmCore) -> str:
    """Return what a compiler says of a core that it does not know."""
    flags = arm_flags(core, gcc=True, cpu=compiler.cpu)
    line = [*compiler.cross, *flags, "-x", "c", "-c", "/dev/null", "-o", "/dev/null"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    return "" if done.returncode == 0 else done.stderr.strip()[:200]


@lru_cache(maxsize=64)
def _said(*line: str) -> str:
    """Return what a compiler says of itself."""
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@lru_cache(maxsize=64)
def _headers(flags: tuple[str, ...], language: str) -> tuple[Path, ...]:
    """Return the folders of headers of the GCC for a core."""
    line = [GCC, *flags, "-E", "-v", "-x", language, "/dev/null"]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=60)
    lines = done.stderr.split("search starts here:\n")[-1].split("End of search")[0].splitlines()
    return tuple(Path(text.strip()).resolve() for text in lines if text.startswith(" "))
