"""Runs the C unit tests of the cluster's device models and of ITA's driver, with sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from byoc_dory.soc.header import render
from htvm.firmware.host import model_sources, sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.runtime_c.cluster import SOC
from tests.tools import tool

TESTS = ("test_complaints.c", "test_races.c", "test_driver.c")
STRICT = ("-g", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow", "-Wconversion")


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", ["zig", "gcc", "clang"])
@pytest.mark.parametrize("test", TESTS)
def test_c_units(tmp_path: Path, test: str, name: str) -> None:
    if name != "zig":
        tool(name)
    compiler = sanitizing(Compiler.zig(host=None if name == "zig" else name))
    (tmp_path / "htvm_soc.h").write_text(render(SOC))
    root = runtime_c()
    folder = root / "soc" / "snitch_ita"
    tests = root / "tests"
    sources = [tests / "soc" / "snitch" / test, *model_sources(SOC)]
    if test == "test_driver.c":
        sources.append(folder / "snitch_ita_driver.c")
    includes = [tmp_path, tests / "driver", tests, root / "include", folder]
    program = compiler.compile_host(sources, tmp_path / "test", includes, STRICT)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.endswith(" 0 failures\n")
