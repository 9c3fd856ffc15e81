"""A cache of builds: the same sources for the same SoC are compiled once."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.errors import ToolchainError
from htvm.firmware.paths import runtime_c, soc_folder
from htvm.firmware.sealed import is_sealed, seal
from htvm.firmware.toolchain import Compiler

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc

_log = logging.getLogger(__name__)

# Age after which builds that nobody used are removed.
_KEEP_SECONDS = 14 * 24 * 3600
_ATTEMPTS = 10  # to lock a folder before another process removes it


def kept_build(
    product: str,
    files: Mapping[str, str],
    soc: Soc,
    variant: Sequence[str],
    compiler: Compiler,
    cache_dir: Path | None,
    make: Callable[[Path, list[Path]], None],
) -> Path:
    """Return the product of a build, building it if it is missing or was changed.

    It is cached under the hash of all its inputs.  Its folder is created under another name and
    moved when complete, so neither an interrupted build nor a second process can leave a partial
    one.

    Args:
        product: name of the file that ``make`` leaves in the folder.
        files: file name -> text of the sources.
        soc: the SoC whose drivers and device models are linked.
        variant: other inputs of the build (compiler, flags); the first is the platform.
        compiler: the compiler, whose cache is used unless ``cache_dir`` is given.
        make: called with the folder, which contains the files by then, and the C files among them.

    Raises:
        ToolchainError: the build cannot be written, or does not compile.
    """
    root = (cache_dir or compiler.cache) / "builds"
    key = hashlib.sha256()
    for text in (*variant, repr(soc), *(part for item in sorted(files.items()) for part in item)):
        key.update(text.encode() + b"\0")
    own = soc_folder(soc)
    for path in sorted({*runtime_c().rglob("*"), *own.rglob("*")}):
        if path.is_file() and path.suffix in (".c", ".h", ".S", ".in"):
            key.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    place = root / key.hexdigest()[:24]
    try:
        if is_sealed(place / product, place.name):
            os.utime(place)
            return place / product
        # Remove what a crash or a cleaning tool has left of a build.
        shutil.rmtree(place, ignore_errors=True)
        root.mkdir(parents=True, exist_ok=True)
        _prune(root)
        with _work_folder(root) as folder:
            for file, text in files.items():
                (folder / file).write_text(text, encoding="utf-8", newline="\n")
            _log.info("compiling %s for %s", soc.name, variant[0])
            make(folder, [folder / file for file in files if file.endswith(".c")])
            seal(folder / product, place.name)
            if not place.is_dir():
                os.rename(folder, place)
    except OSError as error:
        if is_sealed(place / product, place.name):  # another process was faster
            return place / product
        raise ToolchainError(
            f"cannot write the build: {error.strerror}",
            where=str(root),
            hint="free some disk space, or name a folder that can be written in XDG_CACHE_HOME",
        ) from error
    return place / product


@contextlib.contextmanager
def _work_folder(root: Path) -> Iterator[Path]:
    """Create a folder to build in, in one that nobody else removes.

    Another process whose clock is later may remove that one before it is locked: then there is a
    next one.
    """
    with contextlib.ExitStack() as stack:
        for attempt in range(_ATTEMPTS):
            made = tempfile.TemporaryDirectory(prefix=".build-", dir=root)
            outer = Path(stack.enter_context(made))
            try:
                stack.enter_context(_locked(outer))
                (outer / "build").mkdir()
                break
            except (FileNotFoundError, BlockingIOError):
                if attempt == _ATTEMPTS - 1:
                    raise
        yield outer / "build"


def _prune(root: Path) -> None:
    """Remove builds that have not been used for a long time."""
    limit = time.time() - _KEEP_SECONDS
    for folder in root.iterdir():
        # Another process may be doing the same.
        with contextlib.suppress(FileNotFoundError):
            if folder.stat().st_mtime >= limit:
                continue
            # The clock may be wrong, or set since another process began what it still builds.
            with contextlib.suppress(BlockingIOError, NotADirectoryError), _locked(folder):
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, where the system can do that; a process that ends loses its locks.

    Raises:
        BlockingIOError: another process has locked it.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:  # a file system without locks
            _log.debug("%s is not locked: %s", folder, error.strerror)
        yield
    finally:
        os.close(handle)
