"""The folder where builds, tools and results of stages are kept, and who may have written it.

What is kept there is linked, executed and taken for results.  So nothing is taken from a folder
that somebody else owns or can write, and what is taken has to carry a digest that only this user
can make: its key is in another folder, so that a copy of somebody's cache is worth nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from byoc_dory.errors import ToolchainError

_log = logging.getLogger(__name__)
_KEY_BYTES = 32


def cache_root() -> Path:
    """Return the user's folder for what is kept, private and writable, else a temporary one.

    The temporary folder is per user and survives between runs, so tools are built only once.

    Raises:
        ToolchainError: none of them can be written, or all are in somebody else's hand.
    """
    refused: list[tuple[Path, str]] = []
    for folder in _cache_folders():
        reason = _refusal(folder)
        if reason is None:
            if refused:
                _say(*refused[0])
            return folder
        refused.append((folder, reason))
    raise ToolchainError(
        "no folder for compiled tools can be written",
        where="; ".join(f"{folder}: {reason}" for folder, reason in refused),
        hint="make a folder that only you can write, and name it in XDG_CACHE_HOME",
    )


def signed(data: bytes | memoryview, name: str) -> bytes:
    """Return the digest (32 bytes) of what is kept under a name, which only this user can make."""
    return hmac.digest(_key(_key_folders()), name.encode() + b"\0" + hashlib.sha256(data).digest(),
                       "sha256")  # fmt: skip


def stranger(path: Path) -> str | None:
    """Return why a file in the user's cache is not the user's; ``None`` if it is.

    Its mode does not matter, as nobody else gets into that folder.

    Raises:
        OSError: it cannot be looked at.
    """
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        return f"it belongs to user {status.st_uid}, not to {os.getuid()}"
    return None


def _cache_folders() -> Iterator[Path]:
    with contextlib.suppress(RuntimeError):  # the user's home is unknown
        yield _user_folder("XDG_CACHE_HOME", ".cache", "Caches") / "htvm"
    yield from _temporary_folder()


def _key_folders() -> tuple[Path, ...]:
    found = []
    with contextlib.suppress(RuntimeError):
        found.append(_user_folder("XDG_STATE_HOME", ".local/state", "Application Support") / "htvm")
    return (*found, *_temporary_folder())


def _temporary_folder() -> Iterator[Path]:
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    with contextlib.suppress(FileNotFoundError):
        yield Path(tempfile.gettempdir()) / f"htvm-cache-{user}"


def _user_folder(variable: str, customary: str, on_mac: str) -> Path:
    """Return the platform's customary folder of a kind.

    Raises:
        RuntimeError: the user's home is unknown.
    """
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local")))
    given = os.environ.get(variable, "")
    if sys.platform != "darwin" and os.path.isabs(given):
        return Path(given)
    if not os.path.isabs(os.environ.get("HOME", "/")):
        # Below the current folder there may be somebody's files; XDG's rules say so, too.
        raise RuntimeError("HOME is no absolute path")
    return Path.home() / ("Library/" + on_mac if sys.platform == "darwin" else customary)


def _refusal(folder: Path) -> str | None:
    """Make a folder that nobody but the user gets into; return why that failed, or ``None``."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        reason = stranger(folder) or _opened(folder)
        if reason is None:
            with tempfile.TemporaryFile(dir=folder):
                pass
        return reason
    except OSError as error:
        return error.strerror or str(error)


def _opened(folder: Path) -> str | None:
    """Close the user's own folder for others; return why they may have written into it before."""
    mode = stat.S_IMODE(folder.lstat().st_mode)
    if sys.platform == "win32" or not mode & 0o077:
        return None
    for each in (folder, *(path for path in folder.iterdir() if path.is_dir())):
        reason = stranger(each)
        if reason is None and each.lstat().st_mode & 0o022:
            reason = "others can write it"
        if reason is not None:
            return f"{each.name}: {reason}; remove it"
    folder.chmod(mode & 0o700)
    return None


@lru_cache(maxsize=8)
def _key(folders: tuple[Path, ...]) -> bytes:
    """Return this user's key, made if there is none; one of this process if none can be kept."""
    for folder in folders:
        if _refusal(folder) is not None:
            continue
        path = folder / "cache.key"
        try:
            if os.path.lexists(path) and not _is_secret(path):
                _log.warning("%s is made anew: others may have read or written it", path)
                path.unlink()
            if not path.exists():
                _write_key(path)
            found = path.read_bytes()
            if len(found) == _KEY_BYTES:
                return found
        except OSError:
            continue
    _log.warning("nothing is kept for later processes: no folder holds a key of this user")
    return secrets.token_bytes(_KEY_BYTES)


def _is_secret(path: Path) -> bool:
    """Whether a file is the user's, and nobody else has rights on it."""
    shared = os.name == "posix" and path.lstat().st_mode & 0o077
    return not shared and stranger(path) is None


def _write_key(path: Path) -> None:
    """Write a new key whole, unless another process was faster."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".key-")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


@lru_cache(maxsize=64)
def _say(folder: Path, reason: str) -> None:
    """Warn once that a folder is not used."""
    _log.warning("the cache %s is not used: %s", folder, reason)
