"""Locations of the C sources and of the cache."""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from byoc_dory.errors import SimulationError, TargetError, ToolchainError
from byoc_dory.soc.base import Soc

__all__ = [
    "cache_root",
    "driver_folders",
    "runtime_c",
    "simd_folders",
    "soc_folder",
    "work_folder",
]


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


def cache_root() -> Path:
    """Return a writable folder for compiled tools: the user's cache, else a temporary folder.

    The temporary folder is per user and survives between runs, so tools are built only once.
    """
    try:
        preferred = _user_cache() / "htvm"
    except RuntimeError:  # the user's home is unknown
        preferred = None
    if preferred is not None and _is_writable(preferred):
        return preferred
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    try:
        fallback = Path(tempfile.gettempdir()) / f"htvm-cache-{user}"
        # Everybody can create folders there, and the files kept there will be executed.
        if _is_writable(fallback, mode=0o700) and _is_private(fallback):
            return fallback
    except FileNotFoundError:  # there is no temporary folder either
        fallback = None
    raise ToolchainError(
        "no folder for compiled tools can be written",
        where=" and ".join(str(folder) for folder in (preferred, fallback) if folder is not None),
        hint="make a folder that can be written, and name it in XDG_CACHE_HOME",
    )


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


def _user_cache() -> Path:
    """Return the platform's customary folder for caches."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local")))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_private(folder: Path) -> bool:
    """Whether nobody else could have put anything into the folder."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.lstat()
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.getuid()
        and not (status.st_mode & 0o022)
    )


def _is_writable(folder: Path, mode: int = 0o777) -> bool:
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
