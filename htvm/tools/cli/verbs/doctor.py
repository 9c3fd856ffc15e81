"""``htvm doctor``: whether this machine has what builds and runs need."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version

import click

from htvm.errors import HtvmError
from htvm.tools.cli import options
from htvm.tools.cli.output import print_json
from htvm.tools.cli.terminal import echo, terminal_width


@click.command(epilog=options.examples("htvm doctor", "htvm doctor --json"))
@options.common
def command(as_json: bool) -> None:
    """Check this installation: packages, compiler, cache, SoCs; exit code 1 if builds cannot work.

    Extras that are missing are named with what to install; they are no fault.
    """
    from htvm.tools.report.table import Column, Table, text

    checks = list(_checks())
    if as_json:
        names = ("check", "state", "said")
        print_json("doctor", {"checks": [dict(zip(names, check, strict=True)) for check in checks]})
    else:
        columns = (Column("check"), Column("state"), Column("", wraps=True))
        echo(text(Table(columns, tuple(checks)), terminal_width()))
    if any(state == "FAULT" for _, state, _ in checks):
        raise click.exceptions.Exit(1)


def _checks() -> Iterator[tuple[str, str, str]]:
    where = f"{platform.system()} {platform.machine()}"
    yield "Python", "ok", f"{sys.version.split()[0]} on {where}"
    for package in ("apache-tvm", "apache-tvm-ffi", "ziglang", "highspy", "onnx", "numpy"):
        yield package, *_package(package)
    for name, check in (("TVM", _tvm), ("C compiler", _compiler), ("cache", _cache)):
        yield name, *_check_result(check)
    yield from _socs()
    yield from _extras()


def _package(name: str) -> tuple[str, str]:
    try:
        return "ok", version(name)
    except PackageNotFoundError:
        return "FAULT", f"not installed: pip install {name}"


def _check_result(check: Callable[[], str]) -> tuple[str, str]:
    try:
        return "ok", check()
    except (HtvmError, ImportError, OSError) as error:
        return "FAULT", str(error)


def _tvm() -> str:
    import tvm

    return f"imports, version {tvm.__version__}"


def _compiler() -> str:
    """Compile a C file for the simulated core."""
    import tempfile
    from pathlib import Path

    from htvm.firmware.isa import rv32_flags
    from htvm.firmware.toolchain import Compiler

    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "check.c"
        source.write_text("int check(void)\n{\n    return 1;\n}\n", encoding="utf-8")
        flags = ("-c", "-Wl,--no-gc-sections")
        Compiler.zig().compile_cross(
            [source], Path(name) / "check.o", (), rv32_flags(), None, flags
        )
    return "compiles for RV32"


def _cache() -> str:
    from htvm.cache_folder import cache_root

    return f"{cache_root()} can be written"


def _socs() -> Iterator[tuple[str, str, str]]:
    from byoc_dory.soc.registry import loadable

    found, faults = loadable()
    yield "SoCs", "ok", ", ".join(soc.name for soc in found)
    for fault in faults:
        yield "SoC", "FAULT", str(fault)


def _extras() -> Iterator[tuple[str, str, str]]:
    """Yield the extras for users, and which of their packages are missing."""
    known: dict[str, list[str]] = {}
    for line in requires("htvm") or ():
        package, _, marker = line.partition(";")
        if "extra ==" in marker:
            extra = marker.split("==")[-1].strip().strip("\"'")
            known.setdefault(extra, []).append(re.split("[<>=!~[ ]", package)[0])
    for extra in ("explore", "quantize", "digits", "sweep", "search", "cluster"):
        missing = [each for each in known.get(extra, ()) if _package(each)[0] != "ok"]
        hint = f"without {', '.join(missing)}: pip install 'htvm[{extra}]'"
        yield f"extra {extra}", "missing" if missing else "ok", hint if missing else ""
