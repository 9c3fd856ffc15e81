"""A cache of what stages return: the same stage of the same inputs is computed once.

As builds are (`htvm.firmware.builds`), results are kept in the user's cache folder under the hash
of everything they depend on: the stage's inputs, the code of the packages whose classes and
functions occur in them, and the versions of the libraries.  Nothing is kept if the cache cannot be
written, an input cannot be told from others, or code has changed between the begin of this process
and the end of the stage: whether it executes the new one is unknown.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import importlib.util
import io
import logging
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from htvm.cache_folder import cache_root, signed, stranger
from htvm.errors import ToolchainError
from htvm.version import __version__

__all__ = ["StageCache"]

_log = logging.getLogger(__name__)

Result = TypeVar("Result")

# The packages that compute results; others are those of the user's own SoCs.
_OWN = ("byoc_dory", "htvm", "patterns")
# Libraries that determine results, by distribution.
_LIBRARIES = ("apache-tvm", "apache-tvm-ffi", "highspy", "jinja2", "numpy", "pulp", "scipy")
# The files of a package that results depend on: its code, and the templates of generated code.
_CODE = (".jinja", ".py")


def _began() -> float:
    """Return when this process began, which has loaded no code before; else the time now."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        ago = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - ago
    except (AttributeError, IndexError, OSError, ValueError):  # not Linux
        return time.time()


_BEGAN = _began()
# Results that were not used for this long are removed.
_KEEP_SECONDS = 14 * 24 * 3600
# Larger results are not kept, and the least recently used ones go when all exceed the sum.
_LARGEST_BYTES = 1 << 28
_SUM_BYTES = 1 << 31


class StageCache:
    """Results of stages in a folder; safe against concurrent processes and interruption.

    Args:
        folder: where results are kept; nothing is kept if it is ``None``.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._memory: dict[object, dict[Any, Any]] = {}
        self._packages: dict[str, frozenset[str]] = {}

    @classmethod
    def of_user(cls) -> StageCache:
        """Return the cache in the user's cache folder; one that keeps nothing if there is none."""
        try:
            return cls(cache_root() / "stages")
        except ToolchainError:
            return cls(None)

    def __bool__(self) -> bool:
        return self._folder is not None

    def shared(self, part: object) -> dict[Any, Any]:
        """Return what parts of stages share between builds with this object; it is never written.

        Args:
            part: names the results, with everything they depend on that is not in their own keys.
        """
        return self._memory.setdefault(part, {})

    def key(self, *parts: object) -> str:
        """Return a hash that differs if any of the inputs differs in value, or in code.

        It is empty if that cannot be guaranteed: an input cannot be pickled, or its code is in no
        package (a function or class of a notebook) or was written after this process began.
        """
        text = io.BytesIO()
        pickler = _Pickler(text)
        try:
            pickler.dump(parts)
            packages = frozenset({*_OWN, *pickler.packages()})
            found = hashlib.sha256(_code(packages).encode())
            _check_unchanged(packages)
        except _UNKNOWN as error:
            _log.debug("not kept: %s", error)
            return ""
        found.update(text.getbuffer())
        self._packages[found.hexdigest()] = packages
        return found.hexdigest()

    def get(self, stage: str, key: str, make: Callable[[], Result]) -> Result:
        """Return a stage's result: the kept one, with its warnings, or else a new one.

        Args:
            stage: name of the stage.
            key: from `key`, of all inputs; nothing is kept if it is empty.
            make: computes the result.
        """
        if self._folder is None or not key:
            return make()
        path = self._folder / f"{stage}-{key[:32]}"
        kept = _read(path)
        if kept is not None:
            result, warnings = kept
            for name, level, text in warnings:
                logging.getLogger(name).log(level, "%s", text)
            _log.info("taken from the cache: %s", path.name)
            return result  # type: ignore[no-any-return]
        with _recorded() as said:
            made = make()
        try:
            # Parts of the code may have been imported while it ran.
            _check_unchanged(self._packages.get(key, frozenset(_OWN)))
        except _UNKNOWN as error:
            _log.debug("not kept: %s", error)
            return made
        self._write(path, (made, said))
        return made

    def _write(self, path: Path, kept: tuple[object, list[tuple[str, int, str]]]) -> None:
        assert self._folder is not None
        text = io.BytesIO()
        try:
            _Pickler(text).dump(kept)
        except _UNKNOWN as error:
            _log.debug("not kept: %s", error)
            return
        data = text.getvalue()
        if len(data) > _LARGEST_BYTES:
            return
        # A folder that cannot be written: the next run computes it again.
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(signed(data, path.name) + data)
                os.replace(name, path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            _prune(self._folder)


def _read(path: Path) -> Any:
    """Return what is kept in a file; ``None`` if there is nothing, or not what was written."""
    try:
        reason = stranger(path)
        data = memoryview(b"" if reason else path.read_bytes())
    except OSError:
        return None
    if reason is None and not hmac.compare_digest(signed(data[32:], path.name), data[:32]):
        reason = "it is not what this user wrote"
    if reason is not None:
        _log.warning("computed again, as what is kept in %s is not used: %s", path, reason)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return pickle.loads(data[32:])


def _prune(folder: Path) -> None:
    """Remove results that were not used for a long time, and the oldest of too many."""
    limit, total = time.time() - _KEEP_SECONDS, 0
    entries = [(path.stat().st_mtime, path.stat().st_size, path) for path in folder.iterdir()]
    for used, size, path in sorted(entries, reverse=True):
        total += size
        if used < limit or total > _SUM_BYTES:
            path.unlink(missing_ok=True)


# ------------------------------------------------------------------------------ keys


class _Unkeepable(Exception):
    """The code that an input is made of is unknown."""


# What pickling may raise for objects that it does not support.
_UNKNOWN = (_Unkeepable, pickle.PicklingError, TypeError, AttributeError, OSError)


class _Pickler(pickle.Pickler):
    """Notes the modules of all classes and functions, which are pickled by name only."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self._modules: set[str] = set()

    def reducer_override(self, value: Any) -> Any:
        """Note the module of a class or function, and pickle as usual."""
        if isinstance(value, type):
            self._modules.update(base.__module__ for base in value.__mro__)
        elif isinstance(value, FunctionType):
            self._modules.add(value.__module__)
        elif isinstance(value, str) and type(value) is not str:
            return str, ("".join(value),)
        elif type(value).__module__.startswith("tvm"):
            # Writing a module of TVM ends the process if it has certain functions.
            raise _Unkeepable(f"a {type(value).__name__} of TVM")
        return NotImplemented

    def packages(self) -> set[str]:
        """Return the packages of these modules, without libraries, which versions stand for."""
        found = {name.partition(".")[0] for name in self._modules}
        return found - (sys.stdlib_module_names - {"__main__"}) - {"numpy"}


@lru_cache(maxsize=32)
def _code(packages: frozenset[str]) -> str:
    """Return a hash of the code of packages, and of the versions of Python and libraries."""
    found = hashlib.sha256(f"{__version__} {sys.version}".encode())
    for name in _LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            found.update(f"{name} {version(name)}".encode())
    for package in sorted(packages):
        for path in _sources(package):
            found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def _check_unchanged(packages: frozenset[str]) -> None:
    """Refuse packages of which files were written after this process began.

    It may have imported them before or after that, or again.
    """
    for package in packages:
        for path in _sources(package):
            found = path.stat()
            # A copy may keep the time of its source, but not that of its own entry.
            if max(found.st_mtime, found.st_ctime) > _BEGAN:
                raise _Unkeepable(f"{path} changed since this process began")


def _sources(package: str) -> list[Path]:
    spec = None if package == "__main__" else importlib.util.find_spec(package)
    if spec is None or not (spec.submodule_search_locations or spec.has_location):
        raise _Unkeepable(f"the code of {package} is in no file")
    if spec.submodule_search_locations:
        folders = [Path(folder) for folder in spec.submodule_search_locations]
        return sorted(
            path for folder in folders for path in folder.rglob("*") if path.suffix in _CODE
        )
    assert spec.origin is not None
    return [Path(spec.origin)]


# ------------------------------------------------------------------------------ warnings


class _Recorder(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append((record.name, record.levelno, record.getMessage()))


@contextmanager
def _recorded() -> Iterator[list[tuple[str, int, str]]]:
    """Record the warnings of our packages, so that a kept result says them again."""
    recorder = _Recorder()
    loggers = [logging.getLogger(name) for name in _OWN]
    for logger in loggers:
        logger.addHandler(recorder)
    try:
        yield recorder.said
    finally:
        for logger in loggers:
            logger.removeHandler(recorder)
