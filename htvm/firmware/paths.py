"""Locations of the C sources, and folders for runs."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import SimulationError, TargetError, ToolchainError

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc


def network_path(name: str, file: str) -> str:
    """Return where projects and packages have a C file of a network and of its token loop.

    Args:
        name: C prefix of the network.
        file: name of the file.
    """
    if file in (f"{name}.h", f"{name}_generate.h"):
        return f"include/{file}"
    main = file == "main_generate.c" and file != f"{name}.c"
    return f"example/{file}" if main else f"src/{file}"


NO_DEVICES = "none"
"""Name of the driver of SoCs without devices."""


def runtime_c() -> Path:
    """Return the folder of the C runtime.

    The folder is installed as a package of its own beside :mod:`htvm`, so the same rule finds it in
    the source tree and in an installed wheel.

    Raises:
        ToolchainError: the installation is incomplete.
    """
    folder = Path(__file__).resolve().parents[2] / "runtime_c"
    if not (folder / "include" / "htvm_soc_model.h").is_file():
        raise ToolchainError(
            "the C runtime is missing",
            where=str(folder),
            hint="reinstall htvm; its wheel carries runtime_c as package data",
        )
    return folder


def soc_folder(soc: Soc) -> Path:
    """Return the folder of a SoC's drivers (``*_driver.c``, ``kernels``), their headers, and its
    device models (``model``).

    Raises:
        TargetError: the SoC's package is not installed, or has no such folder.
        ToolchainError: the installation is incomplete.
    """
    if not soc.package:
        return runtime_c() / "soc" / soc.driver
    try:
        spec = importlib.util.find_spec(soc.package)
    except ImportError:  # a package that contains it is missing
        spec = None
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (Path(place) / "runtime").is_dir():
            return Path(place) / "runtime"
    raise TargetError(
        f"the package {soc.package!r} has no folder 'runtime' with drivers and device models",
        where=f"SoC {soc.name}",
        hint="install it again, with its C files as package data",
    )


def driver_folders(soc: Soc) -> tuple[Path, ...]:
    """Return the folders of a SoC's drivers and their headers: its own, then its libraries.

    Raises:
        TargetError: the SoC's package is not installed, or has no such folder.
        ToolchainError: the installation is incomplete.
    """
    return (soc_folder(soc), *(runtime_c() / name for name in soc.libraries))


def simd_folders(soc: Soc) -> tuple[Path, ...]:
    """Return the include folders of generated code for hosts with SIMD; none for other hosts."""
    return (runtime_c() / "simd",) if soc.host.simd else ()


@contextmanager
def work_folder(prefix: str) -> Iterator[Path]:
    """Yield a temporary folder for the files of one run; remove it at the end.

    Raises:
        SimulationError: the folder, or a file in it, cannot be written or read.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=prefix) as name:
            yield Path(name)
    except OSError as error:
        raise SimulationError(
            f"the files of a run cannot be written: {error.strerror}",
            where=str(error.filename or "the folder for temporary files"),
            hint="free some disk space, or name a folder that can be written in TMPDIR",
        ) from error
