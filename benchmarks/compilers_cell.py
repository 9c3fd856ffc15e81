"""`Cell`: one export, compiled and linked as a user's build would do it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from htvm.firmware.packages import KINDS as FOLDERS
from htvm.firmware.packages import MLF

__all__ = [
    "COMPILERS",
    "LEVELS",
    "PLACES",
    "PROJECT",
    "STRICT",
    "Cell",
    "compiled",
    "flags_of",
    "kinds_of",
    "linked",
    "missing",
    "place_of",
]

STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror")
COMPILERS = ("GCC", "Clang")
LEVELS = ("-Os", "-O2", "-O3", "-Og")
PROJECT = "project"
"""The kind that is no package; Cortex-M cores have none."""

_UNITS = {"cortex_m4": "fpv4-sp-d16", "cortex_m7": "fpv5-d16", "cortex_m33": "fpv5-sp-d16"}
_ARM = "arm-none-eabi-gcc"
_RISCV = "riscv64-unknown-elf-gcc"
# Picolibc's own linker script is for a small machine.
_ROOM = ("--defsym=__flash_size=0x400000", "--defsym=__ram_size=0x100000")
_PICOLIBC = ("--specs=picolibc.specs", "--oslib=dummyhost")
_PROGRAMS = (_ARM, _RISCV, "clang", "ld.lld")

PLACES = (
    ("cortex_m0plus", "soft"),
    ("cortex_m3", "soft"),
    *((core, abi) for core in _UNITS for abi in ("soft", "softfp", "hard")),
    *(("cortex_m55", abi) for abi in ("soft", "softfp", "hard")),
    ("rv32imc", ""),
)
"""Each core with the float ABIs that it has."""


def kinds_of(core: str) -> tuple[str, ...]:
    """Return the kinds of exports that there are for a core."""
    own, none = ("cmsis", "esp-idf") if core.startswith("cortex") else (PROJECT, "cmsis")
    return (own, *(kind for kind in (*FOLDERS, MLF) if kind not in (own, none)))


@dataclass(frozen=True)
class Cell:
    """A network as one kind of export, and what compiles it.

    Attributes:
        network: its name.
        core, abi: one of `PLACES`.
        compiler, level: of `COMPILERS` and `LEVELS`.
        lto: whether with link-time optimization.
        kind: of `kinds_of` the core.
    """

    network: str
    core: str
    abi: str
    compiler: str
    level: str
    lto: bool
    kind: str


def missing(compilers: Iterable[str] = _PROGRAMS) -> list[str]:
    """Return which of the programs are not installed."""
    return [name for name in compilers if shutil.which(name) is None]


def flags_of(core: str, abi: str) -> tuple[str, ...]:
    """Return the flags that name a core and a float ABI to both compilers."""
    if abi == "":
        return (f"-march={core}", "-mabi=ilp32")
    unit = (f"-mfpu={_UNITS[core]}",) if abi != "soft" and core in _UNITS else ()
    return (f"-mcpu={core.replace('_', '-')}", "-mthumb", f"-mfloat-abi={abi}", *unit)


def place_of(kind: str, folder: Path) -> Path:
    """Return where in a folder the export of a kind is."""
    return folder / (f"{kind}.tar" if kind == MLF else kind)


def compiled(cell: Cell, folder: Path, more: Sequence[str] = ()) -> str:
    """Compile and link an export at `place_of` a folder, with more flags; return its first error.

    The text is empty if there is none.
    """
    export = place_of(cell.kind, folder).resolve()
    with tempfile.TemporaryDirectory(prefix="htvm-cell-") as work:
        if cell.kind == MLF:
            with tarfile.open(export) as tar:
                tar.extractall(work, filter="data")
            export = Path(work)
        sources, includes, entry = _parts(cell.kind, export)
        return linked(cell, sources, includes, ("--gc-sections", "-e", entry), Path(work), more)


def linked(
    cell: Cell,
    sources: Sequence[Path],
    includes: Sequence[Path],
    link: Sequence[str],
    work: Path,
    more: Sequence[str] = (),
) -> str:
    """Compile sources and link ``work/out.elf``; return the first error, or "".

    Args:
        cell: the compiler and its settings.
        sources: C files of different names.
        includes: folders of headers.
        link: options of the linker.
        work: folder for files.
        more: flags of the compiler.
    """
    options = [*more, *(f"-I{folder}" for folder in includes)]
    for line in _lines(cell, [*map(str, sources)], options, link):
        done = subprocess.run(
            line, cwd=work, capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode != 0:
            said = done.stderr.splitlines() or [f"{line[0]} ended with {done.returncode}"]
            words = ("error:", "undefined", "overflowed")
            return next((text for text in said if any(word in text for word in words)), said[0])
    return ""


def _lines(cell: Cell, sources: list[str], more: list[str], link: Sequence[str]) -> list[list[str]]:
    """Return the commands that compile and link."""
    flags = flags_of(cell.core, cell.abi)
    options = [*flags, *STRICT, cell.level, *(["-flto"] if cell.lto else [])]
    options += ["-ffunction-sections", "-fdata-sections", *more]
    if cell.compiler == "GCC":
        library = ("--specs=nano.specs", "--specs=nosys.specs") if cell.abi else _PICOLIBC
        command = [_ARM if cell.abi else _RISCV, *options, *library, "-nostartfiles"]
        room = () if cell.abi else _ROOM
        return [[*command, *sources, f"-Wl,{','.join([*link, *room])}", "-o", "out.elf"]]
    target = f"--target={'arm-none-eabi' if cell.abi else 'riscv32-unknown-elf'}"
    # Its driver does not link with link-time optimization for microcontrollers.
    objects = [f"{Path(source).stem}.o" for source in sources]
    # The C library is GCC's, as in vendors' packages.
    if cell.abi:
        found = [_said(flags, f"-print-file-name={name}") for name in ("libc_nano.a", "libnosys.a")]
    else:
        libraries = Path(_headers("")).parent / "lib" / _said(flags, "-print-multi-directory")
        found = [f"{libraries}/{name}" for name in ("libc.a", "libdummyhost.a")]
    found.append(_said(flags, "-print-libgcc-file-name"))
    return [
        ["clang", target, *options, "-isystem", _headers(cell.abi), "-c", *sources],
        ["ld.lld", *link, "-o", "out.elf", *objects, "--start-group", *found, "--end-group"],
    ]


def _parts(kind: str, export: Path) -> tuple[list[Path], list[Path], str]:
    """Return C files, include folders, and the function to begin with."""
    if kind == PROJECT:
        port = export / "runtime" / "platform" / "port"
        mains = ("main_host.c", "main_rv32.c")
        parts = [export / "src", export / "example"]
        found = [path for folder in parts for path in folder.glob("*.c")]
        sources = [path for path in found if path.name not in mains]
        folders = [export / "include", *parts, port, export / "runtime" / "include"]
        folders += [f for f in (export / "runtime" / "simd",) if f.exists()]
        return sorted([*sources, *port.glob("*.c")]), folders, "main"
    sources = sorted(export.rglob("*.c"))
    folders = sorted({path.parent for path in export.rglob("*.h")})
    # The example of an Arduino library is no C; what it calls is.
    golden = next((path.stem for path in sources if path.stem.endswith("_golden")), "")
    entries = {MLF: "tvmgen_default_run", "esp-idf": "app_main", "arduino": f"{golden}_check"}
    return sources, folders, entries.get(kind, "main")


@lru_cache(maxsize=2)
def _headers(abi: str) -> str:
    """Return the folder of the C library's headers."""
    line = [_ARM] if abi else [_RISCV, *_PICOLIBC]
    text = subprocess.run(
        [*line, "-E", "-x", "c", "-"], input="#include <stdio.h>", capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    found = re.search(r'"(.*)/stdio\.h"', text)
    assert found is not None
    return found[1]


@lru_cache(maxsize=64)
def _said(flags: tuple[str, ...], question: str) -> str:
    """Return what GCC says of its files."""
    riscv = flags[0].startswith("-march")
    line = [_RISCV, *_PICOLIBC] if riscv else [_ARM]
    done = subprocess.run([*line, *flags, question], capture_output=True, text=True, check=True)
    return done.stdout.strip()
