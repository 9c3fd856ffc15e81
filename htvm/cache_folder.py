"""The folder where builds, tools and results of stages are kept."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

from byoc_dory.errors import ToolchainError

__all__ = ["cache_root"]


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
