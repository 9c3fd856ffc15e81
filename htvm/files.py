"""Files: written completely or not at all, hashed, and checked for pipes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from htvm.errors import ExportError, ModelError

_HERE, _EXCHANGE = -100, 2  # of renameat2: paths are not relative to a folder; the flag
_PART = 1 << 20  # bytes
_MOST_BYTES = 2**31 - 1  # of protobufs and flatbuffers
_HINT = "name a file in a folder that exists and is writable"
_FOLDER_HINT = "name a folder that is writable, or a new one in such a folder"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal, without holding them all.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_PART):
            digest.update(part)
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        return sha256_of(path)
    except OSError as error:
        raise ModelError(f"the file cannot be read: {error.strerror}", where=str(path)) from error


def model_bytes(path: Path, kind: str, container: str) -> bytes:
    """Return the content of a model's file.

    Args:
        path: the file.
        kind, container: what it should be, and in which format, for messages.

    Raises:
        ModelError: the file cannot be read, or is too large for any model.
    """
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= _MOST_BYTES else b""
    except (OSError, ValueError) as error:  # ValueError: the path contains a NUL
        raise ModelError(
            f"the file cannot be read: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            hint="check the path",
        ) from error
    if size > _MOST_BYTES:
        raise ModelError(
            f"not {kind}: {size:,} bytes are more than {container} can have",
            where=str(path),
            hint="give a .tflite or .onnx file, or a Relax IRModule",
        )
    return data


def is_pipe(path: Path) -> bool:
    """Whether opening the path would block until somebody writes, perhaps for ever."""
    try:
        return path.is_fifo()
    except (OSError, ValueError):  # an impossible name; reading reports it
        return False


def check_file(path: Path, what: str, where: str = "") -> None:
    """Refuse a file that `write_whole` could not write, before the work whose result it gets.

    Args:
        path, what, where: as for `write_whole`.

    Raises:
        ExportError: it is no file, or its folder is missing or not writable.
    """
    where = where or str(path)
    try:
        place = path.resolve()
        if place.exists() and not place.is_file():
            raise ExportError(f"cannot write {what}: this is not a file", where=where, hint=_HINT)
        _try(place.parent)
    except (OSError, RuntimeError, ValueError) as error:
        raise ExportError(
            f"cannot write {what}: {_reason(error)}", where=where, hint=_HINT
        ) from error


def check_folder(path: Path, where: str = "") -> None:
    """Refuse a folder that can neither be written to nor be made.

    Args:
        path: an existing folder, or a new one, whose parents may be new, too.
        where: where the user gave the path, for messages; the path itself by default.

    Raises:
        ExportError: it is no folder, or it, or the nearest one that exists, is not writable.
    """
    where = where or str(path)
    try:
        place = path.resolve()
        while not place.exists() and place != place.parent:
            place = place.parent
        if not place.is_dir():
            raise ExportError(
                f"cannot write there: {place} is not a folder", where=where, hint=_FOLDER_HINT
            )
        _try(place)
    except (OSError, RuntimeError, ValueError) as error:
        raise ExportError(
            f"cannot write there: {_reason(error)}", where=where, hint=_FOLDER_HINT
        ) from error


def _try(folder: Path) -> None:
    """Make a folder in a folder and remove it: permissions alone do not say if that works."""
    with tempfile.TemporaryDirectory(prefix=".htvm-", dir=folder):
        pass


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders of one file system at once, where the system can do that.

    Returns:
        Whether it was done.
    """
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:  # an older C library
        return False
    names = [os.fsencode(path.absolute()) for path in (one, other)]
    return bool(rename(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0)


def write_whole(path: str | Path, data: bytes, what: str, where: str = "") -> Path:
    """Write a file of exactly this name, or nothing at all.

    Args:
        path: path of the file; an existing file is replaced, through links.
        data: the complete contents.
        what: a description for messages, e.g. "the report".
        where: where the user gave the path, for messages; the path itself by default.

    Returns:
        The path.

    Raises:
        ExportError: the file cannot be written.
    """
    where = where or str(path)
    try:
        # Write the file that a link points to, not the link.
        place = Path(path).resolve()
        if place.exists() and not place.is_file():
            # Refuse a folder or a device, which the move below would replace.
            raise ExportError(f"cannot write {what}: this is not a file", where=where, hint=_HINT)
        with tempfile.TemporaryDirectory(prefix=".htvm-", dir=place.parent) as folder:
            partial = Path(folder) / "partial"
            partial.write_bytes(data)
            os.replace(partial, place)
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an impossible name
        raise ExportError(
            f"cannot write {what}: {_reason(error)}", where=where, hint=_HINT
        ) from error
    return Path(path)


def write_folder(folder: Path, files: Mapping[str, bytes], what: str, where: str) -> list[Path]:
    """Write files into a folder, which is made if it does not exist; return their paths.

    Args:
        folder: the folder.
        files: file name -> contents; each is written completely or not at all.
        what, where: as for `write_whole`.

    Raises:
        ExportError: the folder or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # an impossible name
        raise ExportError(
            f"cannot write {what}: {_reason(error)}",
            where=where,
            hint="name a folder that is writable",
        ) from error
    return [write_whole(folder / name, data, what, where) for name, data in files.items()]
