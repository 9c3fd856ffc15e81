"""Runs the C unit tests of Siracusa's device models and drivers, with sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from byoc_dory.soc.header import render
from htvm.firmware.host import include_folders, model_sources, sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.runtime_c.siracusa import DRIVERS, SOC
from tests.tools import tool

TESTS = ("test_complaints.c", "test_dma.c", "test_driver.c", "test_random_registers.c")
STRICT = ("-g", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow", "-Wconversion")


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", ["zig", "gcc", "clang"])
@pytest.mark.parametrize("test", TESTS)
def test_c_units(tmp_path: Path, test: str, name: str) -> None:
    if name != "zig":
        tool(name)
    compiler = sanitizing(Compiler.zig(host=None if name == "zig" else name))
    (tmp_path / "htvm_soc.h").write_text(render(SOC))
    tests = runtime_c() / "tests"
    _, *includes = include_folders(SOC)
    program = compiler.compile_host(
        [tests / "soc" / "siracusa" / test, *DRIVERS, *model_sources(SOC)],
        tmp_path / "test",
        [tmp_path, tests / "driver", tests, *includes],
        STRICT,
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.endswith(" 0 failures\n")
