"""Where the C sources are found, and where compiled things are kept."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from byoc_dory.errors import ToolchainError

__all__ = ["cache_root", "runtime_c"]


def runtime_c() -> Path:
    """Return the folder of the C runtime.

    The folder travels as a package of its own beside :mod:`htvm`, so the same rule finds it in
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


def cache_root() -> Path:
    """Return a writable folder for compiled tools: the user's cache, else a temporary folder.

    The temporary folder is per user and survives between runs, so tools are still built once.
    """
    preferred = _user_cache() / "htvm"
    if _is_writable(preferred):
        return preferred
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    fallback = Path(tempfile.gettempdir()) / f"htvm-cache-{user}"
    if _is_writable(fallback):
        return fallback
    raise ToolchainError(
        "no folder for compiled tools can be written",
        where=f"{preferred} and {fallback}",
        hint="make one of them writable, or pass a cache folder to Compiler",
    )


def _user_cache() -> Path:
    """The platform's customary folder for caches."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local")))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
