"""The C compilers: PyPI's ziglang for the simulated core and, by default, for the host.

One package cross-compiles to RV32IMC and builds host programs, so only pip is needed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from byoc_dory.errors import ToolchainError
from htvm.cache_folder import cache_root, signed, stranger
from htvm.firmware.assertions import refused_number
from htvm.firmware.isa import features_of
from htvm.processes import refuse_exceeded

__all__ = [
    "HOST_FLAGS",
    "CompileError",
    "Compiler",
    "instructions",
    "is_sealed",
    "rv32_flags",
    "seal",
]

_log = logging.getLogger(__name__)

# Without contraction: a product and a sum fused into one instruction are rounded once, where the
# simulated cores and the sources' own arithmetic round twice.
HOST_FLAGS: tuple[str, ...] = ("-std=c11", "-O2", "-ffp-contract=off")
"""Flags of every host build; the ``flags`` of a call come after them."""

_RV32_TARGET = ("-target", "riscv32-freestanding-none")
_RV32_FLAGS = (
    "-mabi=ilp32",
    "-std=c11",
    "-O2",
    "-fomit-frame-pointer",
    # A loop head at an address of 2 modulo 4 costs a cycle per iteration, 10 % of a hot loop.
    "-falign-loops=4",
    "-falign-functions=4",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-sanitize=all",
    "-fno-stack-protector",
    "-g0",
    "-Wl,--gc-sections",
)


def rv32_flags(isa: str = "rv32imc") -> tuple[str, ...]:
    """Return the flags of every build for a simulated core.

    Args:
        isa: the core's instruction set: "rv32i" followed by the letters of extensions, and by the
            names of others, each behind "_" (`compiled_isa`).
    """
    features = "".join(f"+{name}" for name in features_of(isa))
    return (*_RV32_TARGET, f"-mcpu=generic_rv32{features}", *_RV32_FLAGS)


# zig builds its own runtime library (floating point in software, 64-bit division) when a program is
# first linked with it, which takes 8 s per core and target; few programs need it.
_WITHOUT_LIBRARY = "-rtlib=none"
_LONGEST_LINE = 300

_CACHE_HINT = "free some disk space, or name a folder that can be written in XDG_CACHE_HOME"
_COMPILER_HINT = "see all it said with -vv, and whether python -m ziglang version works"


class CompileError(ToolchainError):
    """The compiler or linker failed; ``output`` is its complete output."""

    output: str = ""


@dataclass(frozen=True)
class Compiler:
    """A C compiler for the host and one for the simulated RV32IMC core.

    Args:
        host: command that compiles and links C for this machine.
        cross: command that compiles and links C for RV32 with :func:`rv32_flags`.
        cache: folder for the compilers' own caches and for tools built once.
        timeout_s: seconds after which a compiler that does not finish is stopped.
        gcc: name and version of ``cross`` if it is a GCC; empty for zig.
    """

    host: tuple[str, ...]
    cross: tuple[str, ...]
    cache: Path
    timeout_s: float = 300.0
    gcc: str = ""

    @property
    def is_gcc(self) -> bool:
        """Whether ``cross`` takes GCC's flags."""
        return bool(self.gcc)

    @property
    def name(self) -> str:
        """Name and version of what compiles for cores."""
        return self.gcc or f"clang of ziglang {_version(self.cross)}"

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
        # zig adds trapping sanitizers by default; a build without flags should be a plain one.
        plain = ("-fno-sanitize=all",) if self.host == self.cross else ()
        library = ("-shared", "-fPIC") if shared else ()
        return self._run((*self.host, *HOST_FLAGS, *plain, *library), sources, out, includes, flags)

    def compile_rv32(
        self,
        sources: Sequence[Path],
        out: Path,
        includes: Sequence[Path] = (),
        linker_script: Path | None = None,
        flags: Sequence[str] = (),
        isa: str = "rv32imc",
    ) -> Path:
        """Compile and link C or assembly sources for the simulated core.

        Args:
            sources: ``.c``, ``.s`` or ``.S`` files.
            out: the ELF file.
            includes: include folders, searched in this order.
            linker_script: script that places sections; the linker's default if not given.
            flags: further flags, after those of :func:`rv32_flags`.
            isa: the core's instruction set.

        Raises:
            TargetError: a static assertion refused a number of the description.
            CompileError: the compiler failed; the message has its first errors, ``output``
                everything.
        """
        core = self.rv32_flags(isa)
        return self.compile_cross(sources, out, includes, core, linker_script, flags)

    def rv32_flags(self, isa: str) -> tuple[str, ...]:
        """Return the flags of every build for a simulated core; ``isa`` as for `rv32_flags`."""
        if self.is_gcc:
            # Of this version, the base has the registers of zicsr, whose name finds no library.
            core = (f"-march={isa}", "-misa-spec=2.2")
            return (*core, *_RV32_FLAGS, "-ffreestanding")
        return rv32_flags(isa)

    def compile_cross(
        self,
        sources: Sequence[Path],
        out: Path,
        includes: Sequence[Path],
        core: Sequence[str],
        linker_script: Path | None = None,
        flags: Sequence[str] = (),
    ) -> Path:
        """Compile and link sources for a core that ``core``, the first flags, describes.

        The other arguments and the errors are those of `compile_rv32`.
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
                    _write_atomically(folder / name, text)
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
                made = Path(work) / out.name
                line = [*command]
                line += [f"-I{folder}" for folder in includes]
                line += [str(source) for source in sources]
                # After the sources, where libraries named in the flags must be.
                line += [*flags, "-o", str(made)]
                self._link(line, environment, str(out))
                if not made.is_file():
                    raise ToolchainError(
                        "the C compiler ended without an error and wrote nothing",
                        where=str(out),
                        hint=_COMPILER_HINT,
                    )
                os.replace(made, out)
        except OSError as error:
            raise ToolchainError(
                f"cannot write the compiler's output: {error.strerror}",
                where=str(out),
                hint=_CACHE_HINT,
            ) from error
        return out

    def _link(self, line: list[str], environment: dict[str, str], where: str) -> None:
        """Compile and link; repeat with zig's runtime library if something from it is missing."""
        linked = not {"-c", "-shared"}.intersection(line)
        if self.is_gcc and line[: len(self.cross)] == [*self.cross]:
            # Its own start-up and C library are left out, not what its instructions call.
            line = [*line, "-nostdlib", "-lgcc"] if linked else line
        elif linked and line[: len(self.cross)] == [*self.cross]:
            try:
                _call([*line, _WITHOUT_LIBRARY], environment, self.timeout_s, where)
                return
            except CompileError as error:
                if "undefined symbol" not in error.output:
                    raise
        _call(line, environment, self.timeout_s, where)


def _call(line: list[str], environment: dict[str, str], timeout_s: float, where: str) -> None:
    _log.debug("%s", " ".join(line))
    try:
        done = subprocess.run(
            line,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except OSError as error:
        raise ToolchainError(
            f"no C compiler: {line[0]!r} cannot be started: {error.strerror}",
            where=where,
            hint="pip install ziglang",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(
            f"the C compiler did not answer within {timeout_s:g} s",
            where=where,
            hint="check that the cache folder's disk is writable and not full",
        ) from error
    refuse_exceeded(done.returncode, "the C compiler")
    if done.returncode != 0:
        text = done.stderr + done.stdout
        _log.debug("%s", text)
        refused = refused_number(text)
        if refused is not None:
            raise refused
        said = _first_errors(text) or f"it ended with code {done.returncode} and no message"
        failure = CompileError(
            f"the C compiler failed: {said}",
            where=where,
            hint=_hint(text, environment["ZIG_GLOBAL_CACHE_DIR"]),
        )
        failure.output = text
        raise failure


def _first_errors(text: str, count: int = 3) -> str:
    printable = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    lines = [line.strip()[:_LONGEST_LINE] for line in printable.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return " | ".join((errors or lines)[:count])


def _hint(text: str, cache: str) -> str:
    if any(said in text for said in ("No space left", "NoSpaceLeft", "File too large")):
        return "free some disk space"
    if cache in text:
        return f"the compiler's cache may be damaged: remove {cache}, it will be made again"
    return _COMPILER_HINT


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
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(
            f"no C compiler: {command[0]!r} cannot be started",
            where=" ".join(command),
            hint=_COMPILER_HINT,
        ) from error
    return done.stdout


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


def seal(file: Path, entry: str) -> None:
    """Store a finished file's digest beside it; see `is_sealed`."""
    _write_atomically(_seal_of(file), _digest(file, entry))


def is_sealed(file: Path, entry: str) -> bool:
    """Whether a file is what this user's build left under the name of an entry of a cache.

    A crash, a full disk or a cleaning tool can leave a part of it, and a damaged program would
    compute wrong results without any error; one that somebody else put there would do anything.
    """
    try:
        reason = stranger(file) or stranger(_seal_of(file))
        if reason is None:
            if _seal_of(file).read_text(encoding="utf-8") == _digest(file, entry):
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


def _digest(file: Path, entry: str) -> str:
    return signed(file.read_bytes(), f"{entry}/{file.name}").hex()


def _write_atomically(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.replace(name, path)
