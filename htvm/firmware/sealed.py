"""Files of the user's cache, with a digest beside each that tells who left it there, and whole."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

from htvm.cache_folder import signed, stranger

_log = logging.getLogger(__name__)


def seal(file: Path, text: str) -> None:
    """Store a finished file's digest beside it; see `is_sealed`."""
    write_atomically(_seal_of(file), _digest(file, text))


def is_sealed(file: Path, text: str) -> bool:
    """Whether a file is what this user's build left under the name of an entry of a cache.

    A crash, a full disk or a cleaning tool can leave a part of it, and a damaged program would
    compute wrong results without any error; one that somebody else put there would do anything.
    """
    try:
        reason = stranger(file) or stranger(_seal_of(file))
        if reason is None:
            if _seal_of(file).read_text(encoding="utf-8") == _digest(file, text):
                return True
            reason = "it is not what this user built"
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError) as error:
        reason = str(error)
    _log.warning("built again, as %s is not used: %s", file, reason)
    return False


def _seal_of(file: Path) -> Path:
    return file.with_name(file.name + ".seal")


def _digest(file: Path, text: str) -> str:
    return signed(file.read_bytes(), f"{text}/{file.name}").hex()


def write_atomically(path: Path, text: str) -> None:
    """Write a file such that nobody ever sees a part of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.replace(name, path)
