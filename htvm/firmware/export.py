"""Writing a C project to disk, completely or not at all.

The project is written into a hidden folder beside its destination and moved there when complete, so
an error, a full disk or Ctrl-C leaves the destination unchanged.  A manifest inside records what
was written: an unchanged earlier export is replaced, anything else is not.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from byoc_dory.errors import ExportError
from byoc_dory.soc.base import Soc
from htvm.aot.program import Program
from htvm.files import exchanged, sha256_of
from htvm.firmware.manifest import FILE, PROJECT, Manifest, kind_of, manifest_text
from htvm.firmware.project import BuildFacts, Golden, project_files

_log = logging.getLogger(__name__)

MANIFEST = ".htvm-manifest"

_MOST_BYTES = 1 << 31  # of a file that is read; constants as C text take five times their bytes

# Files that `make` leaves in a project.
_BUILT = "build"


def export(
    program: Program,
    soc: Soc,
    folder: Path,
    golden: Golden,
    manifest: Manifest | None = None,
    loop: Mapping[str, str] | None = None,
    report: BuildFacts | None = None,
) -> Path:
    """Write a self-contained C project that checks a stored golden.

    Args:
        program: the built model.
        soc: the SoC it was built for.
        folder: folder to create; it may exist if it is empty or holds an unchanged earlier export.
        golden: inputs of one inference and the expected outputs, in the model's order.
        manifest: description of the export; without it, the export cannot be opened again.
        loop: C files of a language model's token loop, name to text.
        report: report of the build, whose sizes and tiles appear in the README.

    Returns:
        The folder.

    Raises:
        ExportError: the folder cannot be written, or holds something else; it is left unchanged.
        InputError: the golden does not have the model's shapes and dtypes.
    """
    files = project_files(program, soc, golden, report, loop)
    if manifest is not None:
        files[FILE] = manifest_text(manifest)
    return write_project(files, folder)


def write_project(files: Mapping[str, str | bytes], folder: Path) -> Path:
    """Write files (path inside the project -> text or bytes) and a manifest of them.

    Raises:
        ExportError: as for :func:`export`.
    """
    place = Path(folder)
    try:
        # The move must replace the folder that a link points to, not the link.
        place = place.resolve()
        _refuse_foreign(place, _kind(files.get(FILE)))
        with _made_parents(place), _workspace(place) as work:
            fresh = work / "new"
            _write(files, fresh)
            _swap(fresh, place, work / "old")
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an impossible name
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(
            f"cannot write the project: {reason}",
            where=str(folder),
            hint="choose a folder that can be created or is empty",
        ) from error
    _log.info("exported %d files to %s", len(files), folder)
    return Path(folder)


def check_folder(folder: Path, kind: str | None) -> None:
    """Refuse a folder that could not be written as an export, before anything is built for it.

    Args:
        folder: folder to create.
        kind: kind of package to write; ``None`` for a project.

    Raises:
        ExportError: it is a file, or neither empty nor an unchanged earlier export of this kind.
    """
    # What cannot be read yet is reported by the export itself.
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        place = Path(folder).resolve()
        _refuse_foreign(place, kind or PROJECT)
        above = next(parent for parent in place.parents if os.path.lexists(parent))
        if not above.is_dir():
            raise ExportError(
                f"cannot write the project: '{above.name}' is a file",
                where=str(folder),
                hint="choose a folder that can be created or is empty",
            )


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def _kind(document: str | bytes | None) -> str | None:
    """Return the kind of export that a description tells; ``None`` without one."""
    if document is None:
        return None
    with contextlib.suppress(ValueError, RecursionError):
        return kind_of(document)
    return None


def _named_kind(kind: str) -> str:
    return "a project" if kind == PROJECT else f"a package for {kind}"


def _refuse_foreign(place: Path, kind: str | None) -> None:
    """Raise unless the folder is missing, empty, or an unchanged earlier export of the kind."""
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise ExportError(
            "cannot write the project: there is a file of this name",
            where=str(place),
            hint="choose another folder",
        )
    present = sorted(entry.name for entry in place.iterdir())
    if not present:
        return
    hint = "choose an empty or new folder, or remove what is there"
    if MANIFEST not in present:
        raise ExportError(
            f"the folder is not empty and no earlier export: it holds '{present[0]}'",
            where=str(place),
            hint=hint,
        )
    for name in (MANIFEST, FILE):
        strange = strange_file(place, name)
        if name in present and strange:
            raise ExportError(f"'{name}' {strange}", where=str(place), hint=hint)
    known_files = _known_files(place)
    earlier = _kind((place / FILE).read_bytes() if FILE in present else None)
    if kind is not None and earlier is not None and kind != earlier:
        raise ExportError(
            f"the folder holds {_named_kind(earlier)}, and {_named_kind(kind)} would replace it",
            where=str(place),
            hint=hint,
        )
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place).as_posix()
        if path.is_dir() or name == MANIFEST or name.startswith(f"{_BUILT}/"):
            continue
        if (
            name not in known_files
            or strange_file(place, name)
            or known_files[name] != sha256_of(path)
        ):
            what = "was changed" if name in known_files else "was added"
            raise ExportError(
                f"'{name}' {what} after the earlier export", where=str(place), hint=hint
            )


def _known_files(place: Path) -> dict[str, str]:
    """Return the digest of every file that was written, by its name."""
    digests = {}
    for line in (place / MANIFEST).read_text("utf-8", "replace").splitlines():
        digest, _, name = line.partition("  ")
        digests[name] = digest
    return digests


def strange_file(folder: Path, name: str) -> str:
    """Return why an export cannot have written a file, before it is read; empty if it may be.

    Raises:
        OSError, RuntimeError, ValueError: the name, or a link there, is impossible.
    """
    path, own = folder / name, folder.resolve()
    if path.resolve() != own / name or not path.resolve().is_relative_to(own):
        return "is a link, or outside of the folder"
    if not path.exists():
        return "is missing"
    if not path.is_file():
        return "is no file"
    return "is too large" if path.stat().st_size > _MOST_BYTES else ""


def check_files(folder: Path, *needed: str) -> frozenset[str]:
    """Refuse a folder that is not an unchanged export; additional files do not matter.

    Args:
        folder: the export.
        needed: names of files that must be among those written.

    Returns:
        The names of the files that were written.

    Raises:
        ExportError: it is not an export, or a file is missing, was changed, or is none of its own.
    """
    where, hint = str(folder), "name a folder that Module.export wrote"
    try:
        if not folder.is_dir():
            raise ExportError("there is no such folder", where=where, hint=hint)
        if not (folder / MANIFEST).is_file():
            raise ExportError(
                f"this is not an export: it has no {MANIFEST}", where=where, hint=hint
            )
        strange_entry = strange_file(folder, MANIFEST)
        if strange_entry:
            raise ExportError(f"'{MANIFEST}' {strange_entry}", where=where, hint=hint)
        known_files = _known_files(folder)
        for name in needed:
            if name not in known_files:
                raise ExportError(
                    f"this export has no {name} and cannot be opened", where=where,
                    hint="export the model again with this version of htvm",
                )  # fmt: skip
        for name, digest in known_files.items():
            strange_entry = strange_file(folder, name)
            if strange_entry or sha256_of(folder / name) != digest:
                raise ExportError(
                    f"'{name}' {strange_entry or 'was changed'}",
                    where=where,
                    hint="undo that, or export the model again",
                )
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an impossible name
        raise ExportError(
            f"cannot read the export: {getattr(error, 'strerror', None) or error}",
            where=where,
            hint=hint,
        ) from error
    return frozenset(known_files)


@contextlib.contextmanager
def _made_parents(place: Path) -> Iterator[None]:
    """Create missing parent folders; remove them again unless the body succeeds."""
    missing = [parent for parent in place.parents if not parent.exists()]
    complete = False
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        yield
        complete = True
    finally:
        if not complete:
            for parent in missing:
                # Keep it if somebody has put something into it meanwhile.
                with contextlib.suppress(OSError):
                    parent.rmdir()


@contextlib.contextmanager
def _workspace(place: Path) -> Iterator[Path]:
    """Yield a hidden folder beside the destination, on the same file system; always remove it."""
    work = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write(files: Mapping[str, str | bytes], new_folder: Path) -> None:
    manifest = []
    # Not the temporary folder itself, which only its owner can read.
    new_folder.mkdir()
    for name in sorted(files):
        path = new_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        found = files[name]
        data = found.encode("utf-8") if isinstance(found, str) else found
        path.write_bytes(data)
        manifest.append(f"{_digest(data)}  {name}\n")
    (new_folder / MANIFEST).write_text("".join(manifest), encoding="utf-8", newline="\n")


def _swap(new_folder: Path, place: Path, old_folder: Path) -> None:
    """Move the new folder to its destination; restore the old one, if any, on failure."""
    existed = place.exists()
    if existed and exchanged(new_folder, place):  # at once, so that there is always one of the two
        return
    complete = False
    try:
        if existed:
            os.replace(place, old_folder)
        os.replace(new_folder, place)
        complete = True
    finally:
        if existed and not complete and old_folder.exists() and not place.exists():
            os.replace(old_folder, place)
