"""Files: written whole or not at all, named by their content, and what is no file to read."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from htvm.errors import ExportError, ModelError

__all__ = ["file_sha256", "is_pipe", "write_whole"]

_HINT = "name a file in a folder that exists and is writable"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        ModelError: it cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ModelError(f"the file cannot be read: {error.strerror}", where=str(path)) from error


def is_pipe(path: Path) -> bool:
    """Whether opening it would wait until somebody writes, perhaps for ever."""
    try:
        return path.is_fifo()
    except (OSError, ValueError):  # an impossible name; reading says so
        return False


def write_whole(path: str | Path, data: bytes, what: str, where: str = "") -> Path:
    """Write a file of exactly this name, or nothing at all.

    Args:
        path: of the file; one that is there is replaced, through links.
        data: all of it.
        what: what it is, for messages: "the report".
        where: where the path was given, for messages; the path itself by default.

    Returns:
        The path.

    Raises:
        ExportError: it cannot be written.
    """
    where = where or str(path)
    try:
        # The file a link points to, not the link.
        place = Path(path).resolve()
        if place.exists() and not place.is_file():
            # A folder, or a device, which the move below would replace.
            raise ExportError(f"cannot write {what}: this is no file", where=where, hint=_HINT)
        with tempfile.TemporaryDirectory(prefix=".htvm-", dir=place.parent) as folder:
            partial = Path(folder) / "partial"
            partial.write_bytes(data)
            os.replace(partial, place)
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an impossible name
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(f"cannot write {what}: {reason}", where=where, hint=_HINT) from error
    return Path(path)
