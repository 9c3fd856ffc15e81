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
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from htvm.cache_folder import cache_root, signed, stranger
from htvm.errors import ToolchainError
from htvm.stage_values import NotDataError, decode, encode
from htvm.version import __version__

_log = logging.getLogger(__name__)

Result = TypeVar("Result")

# The packages that compute results; others are those of the user's own SoCs.
_OWN = frozenset(("byoc_dory", "htvm", "patterns"))
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

        It is empty if that cannot be guaranteed: an input is not data (`htvm.stage_values`), its
        code is in no package (a function or class of a notebook), or changed since this process
        began.
        """
        try:
            document, modules = encode(parts)
            packages = _OWN | _packages(modules)
            found = hashlib.sha256(_code(packages).encode())
            _check_unchanged(packages)
        except _UNKNOWN as error:
            _log.debug("not kept: %s", error)
            return ""
        found.update(document)
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
        packages = self._packages.get(key, _OWN)
        kept = _read(path, packages)
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
            _check_unchanged(packages)
            data, modules = encode((made, said))
            if not _packages(modules) <= packages:
                raise NotDataError(f"parts are of {_packages(modules) - packages}")
        except _UNKNOWN as error:
            _log.debug("not kept: %s", error)
            return made
        self._write(path, data)
        return made

    def _write(self, path: Path, data: bytes) -> None:
        assert self._folder is not None
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


def _read(path: Path, packages: Collection[str]) -> Any:
    """Return what is kept in a file, made of what these packages define.

    It is ``None`` if there is nothing, or not what was written.
    """
    try:
        reason = stranger(path)
        data = memoryview(b"" if reason else path.read_bytes())
    except OSError:
        return None
    if reason is None and not hmac.compare_digest(signed(data[32:], path.name), data[:32]):
        reason = "it is not what this user wrote"
    found = None
    if reason is None:
        try:
            found = decode(data[32:], packages)
        except NotDataError as error:
            reason = str(error)
    if reason is not None:
        _log.warning("computed again, as what is kept in %s is not used: %s", path, reason)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return found


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


# Why nothing is kept.
_UNKNOWN = (_Unkeepable, NotDataError, OSError)


def _packages(modules: Collection[str]) -> frozenset[str]:
    """Return the packages of modules, without libraries, which versions stand for."""
    found = frozenset(name.partition(".")[0] for name in modules)
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
            file = Path(path)
            found.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()


def _check_unchanged(packages: frozenset[str]) -> None:
    """Refuse packages of which files were written after this process began.

    It may have imported them before or after that, or again.
    """
    for package in packages:
        for path in _sources(package):
            found = os.stat(path)
            # A copy may keep the time of its source, but not that of its own entry.
            if max(found.st_mtime, found.st_ctime) > _BEGAN:
                raise _Unkeepable(f"{path} changed since this process began")


def _sources(package: str) -> list[str]:
    spec = None if package == "__main__" else importlib.util.find_spec(package)
    if spec is None or not (spec.submodule_search_locations or spec.has_location):
        raise _Unkeepable(f"the code of {package} is in no file")
    if spec.submodule_search_locations:
        inside = [found for top in spec.submodule_search_locations for found in os.walk(top)]
        named = [os.path.join(folder, name) for folder, _, names in inside for name in names]
        return sorted(path for path in named if path.endswith(_CODE))
    assert spec.origin is not None
    return [spec.origin]


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
