"""The Ethos-U's model as C: without warnings, for hosts and for firmware without a C library."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from htvm.firmware.toolchain import Compiler
from tests.runtime_c.ethos_u import FOLDER, INCLUDES, sources
from tests.tools import tool

STRICT = ("-g", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow", "-Wconversion")
# What compilers call on their own.
ASSUMED = {"memcpy", "memset", "memmove", "memcmp"}


@pytest.mark.parametrize(
    "name", ["zig", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gcc", "clang"))]
)
def test_no_warnings(tmp_path: Path, name: str) -> None:
    if name != "zig":
        tool(name)
    compiler = Compiler.zig(host=None if name == "zig" else name)
    compiler.compile_host(sources(), tmp_path / "model.so", INCLUDES, STRICT, shared=True)


def test_static_analysis() -> None:
    done = subprocess.run(
        [
            tool("cppcheck"),
            "--enable=warning,performance,portability",
            "--error-exitcode=1",
            "--inline-suppr",
            "--quiet",
            *(f"-I{folder}" for folder in INCLUDES),
            *map(str, sources()),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_firmware_needs_no_library(tmp_path: Path) -> None:
    """Neither allocation nor standard output: all but the file for the host platform."""
    files = [path for path in sources() if path.name != "ethos_u_soc.c"]
    flags = ["-mcpu=cortex-m55", "-mthumb", "-O2", "-std=c11", "-ffreestanding", *STRICT]
    for path in files:
        subprocess.run(
            [tool("arm-none-eabi-gcc"), *flags, f"-I{FOLDER}", "-c", str(path)],
            cwd=tmp_path,
            check=True,
        )
    listed = subprocess.run(
        [tool("arm-none-eabi-nm"), *(f"{path.stem}.o" for path in files)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    symbols = [line.split() for line in listed.splitlines()]
    defined = {words[2] for words in symbols if len(words) == 3}
    missing = {words[1] for words in symbols if len(words) == 2 and words[0] == "U"}
    arithmetic = {name for name in missing if name.startswith("__aeabi_")}
    assert missing - defined - arithmetic <= ASSUMED
