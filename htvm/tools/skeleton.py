"""A starting point for a user's own SoC: the documentation's example under another name.

The example is the only source.  It is complete and tested; its files and their contents use the
name `EXAMPLE` only for the SoC, so that it can be replaced by a new name.
"""

from __future__ import annotations

import keyword
import os
import re
import tempfile
from pathlib import Path

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import ExportError, TargetError
from byoc_dory.soc.registry import loadable

EXAMPLE = "tiny"
"""Name of the example's SoC."""

# A SoC's name is used for packages, C macros and folders.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_TAKEN = ("none", "htvm", "byoc_dory", "patterns", "runtime_c")


def example_folder() -> Path:
    """Return the folder of the example.

    The distribution has it as `htvm.example_soc`; in the source tree it is in the documentation.

    Raises:
        ExportError: the installation is incomplete.
    """
    here = Path(__file__).resolve().parents[1]
    for folder in (here / "example_soc", here.parent / "docs" / "examples" / f"{EXAMPLE}_soc"):
        if (folder / "pyproject.toml").is_file():
            return folder
    raise ExportError(
        "the example that new SoCs begin as is missing",
        where=str(here),
        hint="reinstall htvm; its wheel carries it as package data",
    )


def skeleton(name: str) -> dict[str, str]:
    """Return the files of a new SoC: path inside its folder -> text.

    Args:
        name: name of the SoC, its targets, its driver and (with the suffix ``_soc``) its package.

    Raises:
        TargetError: the name is not allowed.
        ExportError: the installation is incomplete.
    """
    _check_name(name)
    folder = example_folder()
    files = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not any(_is_made(part) for part in inside.parts):
            files[_renamed_text(inside.as_posix(), name)] = _renamed_text(
                path.read_text("utf-8"), name
            )
    return files


def new_soc(name: str, folder: Path) -> Path:
    """Write a new SoC into ``folder``, completely or not at all; return the folder.

    Raises:
        TargetError: the name is not allowed.
        ExportError: the folder already exists, or cannot be written.
    """
    files = skeleton(name)
    try:
        if os.path.lexists(folder):
            raise ExportError(
                "there is something of this name already",
                where=str(folder),
                hint="name a folder that is not there yet",
            )
        place = Path(os.path.abspath(folder))
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as work:
            fresh = Path(work) / "new"
            for inside, text in files.items():
                path = fresh / inside
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="\n")
            os.rename(fresh, place)
    except OSError as error:
        raise ExportError(
            f"cannot write the SoC: {error.strerror}",
            where=str(folder),
            hint="name a folder that can be created",
        ) from error
    return folder


def _is_made(part: str) -> bool:
    """Whether a part of a path is left behind by running or installing."""
    hidden = part.startswith(".") and part != ".github"
    return hidden or part.endswith(".egg-info") or part in ("__pycache__", "build")


def _renamed_text(text: str, name: str) -> str:
    return text.replace(EXAMPLE, name).replace(EXAMPLE.upper(), name.upper())


def _check_name(name: str) -> None:
    where = f"SoC {name!r}"
    reserved = keyword.iskeyword(name) or c_identifier(name) != name
    if reserved or not _NAME.fullmatch(name):
        raise TargetError(
            "a SoC cannot be called that",
            where=where,
            hint="small letters, digits and _, a letter first, at most 31, and no keyword",
        )
    if name in _TAKEN or any(name in (soc.name, soc.driver) for soc in loadable()[0]):
        raise TargetError("the name is taken", where=where, hint="choose another")
