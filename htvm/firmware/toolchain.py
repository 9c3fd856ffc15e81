"""The C compilers: PyPI's ziglang for cores and, by default, for the host.

One package cross-compiles to RV32 and Cortex-M and builds host programs, so only pip is needed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from byoc_dory.errors import ToolchainError
from htvm.cache_folder import cache_root
from htvm.firmware.diagnostics import (
    COMPILER_HINT,
    CompileError,
    compile_error,
    refused_number,
)
from htvm.firmware.sealed import is_sealed, seal, write_atomically
from htvm.processes import run

_log = logging.getLogger(__name__)

# Without contraction: a product and a sum fused into one instruction are rounded once, where the
# simulated cores and the sources' own arithmetic round twice.
HOST_FLAGS: tuple[str, ...] = ("-std=c11", "-O2", "-ffp-contract=off")
"""Flags of every host build; the ``flags`` of a call come after them."""

# zig builds its own runtime library (floating point in software, 64-bit division) when a program is
# first linked with it, which takes 8 s per core and target; few programs need it.
_WITHOUT_LIBRARY = "-rtlib=none"

# Only ELF lets a shared library lack what it calls, unless told otherwise.
_COMPLETE = () if sys.platform in ("darwin", "win32") else ("-Wl,-z,defs",)

# ISO C wants a declaration in every file.
_FIRST = ("first.c", "typedef int htvm_first_t;\n")

_CACHE_HINT = "free some disk space, or name a folder that can be written in XDG_CACHE_HOME"


@dataclass(frozen=True)
class Compiler:
    """A C compiler for the host and one for a core.

    Args:
        host: command that compiles and links C for this machine.
        cross: command that compiles and links C for RV32 (`rv32_flags`) and Cortex-M (`arm_flags`).
        cache: folder for the compilers' own caches and for tools built once.
        timeout_s: seconds after which a compiler that does not finish is stopped.
        gcc: name and version of ``cross`` if it is a GCC, or takes its flags; empty for zig.
        cpu: core that it compiles for instead of the SoC's, which it is too old for; empty: none.
        kernel_flags: of CPU kernels, after those that their core has for them.
    """

    host: tuple[str, ...]
    cross: tuple[str, ...]
    cache: Path
    timeout_s: float = 300.0
    gcc: str = ""
    cpu: str = ""
    kernel_flags: tuple[str, ...] = ()

    @property
    def is_gcc(self) -> bool:
        """Whether ``cross`` takes GCC's flags."""
        return bool(self.gcc)

    @property
    def name(self) -> str:
        """Name and version of what compiles for cores, and for which if not for the SoC's."""
        other = f" for {self.cpu}" if self.cpu else ""
        return f"{self.gcc or f'clang of ziglang {_version(self.cross)}'}{other}"

    @classmethod
    def zig(cls, *, host: str | None = None, cache: Path | None = None) -> Compiler:
        """Return the compiler of the ``ziglang`` package.

        Args:
            host: another compiler for host programs, for example ``"gcc"`` or ``"clang"``.
            cache: folder for caches; the user's cache folder if not given.

        Raises:
            ToolchainError: ``ziglang`` is not installed, or ``host`` is not found.
        """
        program = _zig()
        if program is None:
            raise ToolchainError(
                "no C compiler: the Python package ziglang is not installed",
                where=sys.executable,
                hint="pip install ziglang",
            )
        zig = (program, "cc")
        command: tuple[str, ...] = zig
        if host is not None:
            found = shutil.which(host)
            if found is None:
                raise ToolchainError(
                    f"no C compiler: {host!r} is not found",
                    hint="install it, or leave the choice to ziglang",
                )
            command = (found,)
        return cls(host=command, cross=zig, cache=cache if cache is not None else cache_root())

    def compile_host(
        self,
        sources: Sequence[Path],
        out: Path,
        includes: Sequence[Path] = (),
        flags: Sequence[str] = (),
        *,
        shared: bool = False,
    ) -> Path:
        """Compile and link C sources for this machine.

        Args:
            sources: C files.
            out: the executable, or the shared library if ``shared``.
            includes: include folders, searched in this order.
            flags: further flags and libraries, after :data:`HOST_FLAGS` and the sources.
            shared: build a shared library instead of an executable.

        Raises:
            TargetError: a static assertion refused a number of the description.
            CompileError: the compiler failed; the message has its first errors, ``output``
                everything.
        """
        # zig adds this one by default; a build without flags should be a plain one.
        plain = ("-fno-sanitize=undefined",) if self.host == self.cross else ()
        library = ("-shared", "-fPIC") if shared else ()
        return self._run((*self.host, *HOST_FLAGS, *plain, *library), sources, out, includes, flags)

    def compile_cross(
        self,
        sources: Sequence[Path],
        out: Path,
        includes: Sequence[Path],
        core: Sequence[str],
        linker_script: Path | None = None,
        flags: Sequence[str] = (),
    ) -> Path:
        """Compile and link sources for a core.

        Args:
            sources: ``.c``, ``.s`` or ``.S`` files.
            out: the ELF file.
            includes: include folders, searched in this order.
            core: the first flags, which describe the core (`rv32_flags`, `arm_flags`).
            linker_script: script that places sections; the linker's default if not given.
            flags: further flags, after these.

        Raises:
            TargetError: a static assertion refused a number of the description.
            CompileError: the compiler failed; the message has its first errors, ``output``
                everything.
        """
        script = ("-T", str(linker_script)) if linker_script is not None else ()
        return self._run((*self.cross, *core, *script), sources, out, includes, flags)

    def built(
        self,
        name: str,
        sources: Sequence[Path],
        includes: Sequence[Path] = (),
        flags: Sequence[str] = (),
        *,
        generated: Sequence[tuple[str, str]] = (),
        shared: bool = False,
    ) -> Path:
        """Return a host tool from the cache, building it first if any of its inputs changed.

        Args:
            name: file name of the tool.
            sources: C files.
            includes: include folders; all headers in them count as inputs.
            flags: further flags.
            generated: generated headers as (file name, text); their folder is searched first.
            shared: build a shared library.

        Raises:
            TargetError: a static assertion refused a number of the description.
            CompileError: the build failed.
        """
        headers = sorted({h for folder in includes for h in folder.rglob("*.h")})
        key = hashlib.sha256()
        variant = (*self.host, _version(self.host), *HOST_FLAGS, *flags, str(shared))
        for part in (*variant, instructions()):
            key.update(part.encode() + b"\0")
        for file in (*sources, *headers):
            key.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
        for file_name, text in generated:
            key.update(file_name.encode() + b"\0" + text.encode() + b"\0")
        folder = self.cache / "tools" / key.hexdigest()[:20]
        out = folder / name
        if not is_sealed(out, folder.name):
            _log.info("building %s (once)", name)
            searched = (self.headers(generated), *includes)
            try:
                self.compile_host(sources, out, searched, flags, shared=shared)
                seal(out, folder.name)
            except OSError as error:
                raise _unwritten(name, folder, error) from error
        return out

    def headers(self, generated: Sequence[tuple[str, str]]) -> Path:
        """Return a folder of the cache that holds these headers, writing them if necessary.

        The same headers are always in the same folder, so that zig finds files compiled with them
        in its own cache.

        Args:
            generated: (file name, text) of each header.

        Raises:
            ToolchainError: the headers cannot be written.
        """
        key = hashlib.sha256(repr(sorted(generated)).encode())
        folder = self.cache / "headers" / key.hexdigest()[:20]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in generated:
                if not is_sealed(folder / name, folder.name):
                    write_atomically(folder / name, text)
                    seal(folder / name, folder.name)
        except OSError as error:
            raise _unwritten("generated headers", folder, error) from error
        return folder

    def _run(
        self,
        command: Sequence[str],
        sources: Sequence[Path],
        out: Path,
        includes: Iterable[Path],
        flags: Sequence[str],
    ) -> Path:
        out = Path(out)
        environment = dict(os.environ)
        caches = self.cache / "zig"
        environment["ZIG_GLOBAL_CACHE_DIR"] = environment["ZIG_LOCAL_CACHE_DIR"] = str(caches)
        try:
            caches.mkdir(parents=True, exist_ok=True)
            out.parent.mkdir(parents=True, exist_ok=True)
            # Linked beside its destination and moved, so that a failed or interrupted build leaves
            # nothing.
            with tempfile.TemporaryDirectory(dir=out.parent, prefix=".build-") as work:
                # Its temporary files are there, too: the user's folder for them may be missing or
                # full.
                environment["TMPDIR"] = environment["TMP"] = environment["TEMP"] = work
                output = Path(work) / out.name
                line = [*command]
                line += [f"-I{folder}" for folder in includes]
                line += [str(source) for source in self._with_first(command, sources, flags)]
                # After the sources, where libraries named in the flags must be.
                line += [*flags, "-o", str(output)]
                self._link(line, environment, str(out))
                if not output.is_file():
                    raise ToolchainError(
                        "the C compiler ended without an error and wrote nothing",
                        where=str(out),
                        hint=COMPILER_HINT,
                    )
                os.replace(output, out)
        except OSError as error:
            raise ToolchainError(
                f"cannot write the compiler's output: {error.strerror}",
                where=str(out),
                hint=_CACHE_HINT,
            ) from error
        return out

    def _with_first(
        self, command: Sequence[str], sources: Sequence[Path], flags: Sequence[str]
    ) -> Sequence[Path]:
        """Return the sources with one before them that declares nothing of use, for zig.

        zig keeps the objects of a call under the name of its first source, too.  With the same
        first source in every call, files that builds share are compiled once.
        """
        if tuple(command[1:2]) != ("cc",) or {"-c", "-E", "-S"}.intersection(flags):
            return sources
        return (self.headers((_FIRST,)) / _FIRST[0], *sources)

    def _link(self, line: list[str], environment: dict[str, str], where: str) -> None:
        """Compile and link; repeat with zig's runtime library if something from it is missing."""
        linked = "-c" not in line
        if self.is_gcc and line[: len(self.cross)] == [*self.cross]:
            # Its own start-up and C library are left out, not what its instructions call.
            line = [*line, "-nostdlib", "-lgcc"] if linked else line
        elif linked and line[: len(self.cross)] == [*self.cross]:
            try:
                without = [_WITHOUT_LIBRARY, *(_COMPLETE if "-shared" in line else ())]
                _call([*line, *without], environment, self.timeout_s, where)
                return
            except CompileError as error:
                if "undefined symbol" not in error.output:
                    raise
        _call(line, environment, self.timeout_s, where)


def _call(line: list[str], environment: dict[str, str], timeout_s: float, where: str) -> None:
    _log.debug("%s", " ".join(line))
    ended = run(
        line,
        f"the C compiler {line[0]!r}",
        ToolchainError,
        where,
        hint="pip install ziglang",
        seconds=timeout_s,
        slow_hint="check that the cache folder's disk is writable and not full",
        environment=environment,
    )
    if ended.code != 0:
        text = ended.said + ended.printed
        _log.debug("%s", text)
        raise refused_number(text) or compile_error(
            text, ended.code, where, environment["ZIG_GLOBAL_CACHE_DIR"]
        )


@lru_cache(maxsize=1)
def instructions() -> str:
    """Return the kind of this machine's processor, and which extensions it has.

    Programs for this machine use all of them, so that a cache that moves to another machine must
    not be taken for its own.
    """
    wanted = ("flags", "Features")  # on x86-64 and on ARM
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):  # no Linux
        lines = []
    fields = (line.partition(":") for line in lines)
    found = {name.strip(): sorted(value.split()) for name, _, value in fields}
    return f"{platform.machine()} {[found.get(name, []) for name in wanted]}"


@lru_cache(maxsize=8)
def _version(command: tuple[str, ...]) -> str:
    """Return the compiler's version text, so that another version builds its tools anew."""
    if command[0] == _zig():
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("ziglang")
        except PackageNotFoundError:  # a folder on the path, no distribution
            pass
    line, what = [*command, "--version"], f"the C compiler {command[0]!r}"
    ended = run(line, what, ToolchainError, " ".join(command), hint=COMPILER_HINT, seconds=60)
    return ended.printed


def _zig() -> str | None:
    """Return the program of the package ``ziglang``; ``None`` if that is not installed.

    Python would start it (``-m ziglang``) from a package of that name in the current folder, which
    may be somebody else's.
    """
    try:
        spec = importlib.util.find_spec("ziglang")
    except (ImportError, ValueError):  # an import hook's refusal, a module without a spec
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    name = "zig.exe" if os.name == "nt" else "zig"
    return str(Path(spec.submodule_search_locations[0]).resolve() / name)


def _unwritten(name: str, folder: Path, error: OSError) -> ToolchainError:
    return ToolchainError(
        f"cannot write {name}: {error.strerror}", where=str(folder), hint=_CACHE_HINT
    )
