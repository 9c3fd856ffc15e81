"""Runs the C unit tests of device models and driver, plain and with sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from byoc_dory.errors import TargetError
from byoc_dory.soc.header import render
from htvm.firmware.host import driver_sources, model_sources, sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler
from tests.runtime_c.device import DIANA
from tests.tools import tool

TESTS = (
    "soc/test_complaints.c",
    "soc/test_analog.c",
    "soc/test_core.c",
    "soc/test_overlap.c",
    "driver/test_analog_driver.c",
    "driver/test_driver.c",
)
STRICT = ("-g", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow")

BUILDS = (("zig", False), ("zig", True), ("gcc", True), ("clang", True))


@pytest.mark.rotating(6)
@pytest.mark.parametrize(("name", "sanitize"), BUILDS)
@pytest.mark.parametrize("test", TESTS)
def test_c_units(tmp_path: Path, test: str, name: str, sanitize: bool) -> None:
    if name != "zig":
        tool(name)
    compiler = Compiler.zig(host=None if name == "zig" else name)
    (tmp_path / "htvm_soc.h").write_text(render(DIANA))
    root = runtime_c()
    if sanitize:
        compiler = sanitizing(compiler)
    source = root / "tests" / test
    drivers = driver_sources(DIANA) if test.startswith("driver/") else ()
    program = compiler.compile_host(
        [source, *drivers, *model_sources(DIANA)],
        tmp_path / "test",
        [
            tmp_path,
            source.parent,
            root / "tests",
            root / "tests" / "soc",
            root / "include",
            root / "soc" / "diana",
        ],
        STRICT,
    )
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.endswith(" 0 failures\n")


def test_a_driver_slower_than_the_published_constant_does_not_compile(tmp_path: Path) -> None:
    """The device takes the constant less the driver's cycles, which cannot be negative."""
    text = render(DIANA).replace("_ADD_TRIGGER_CYCLES 485u", "_ADD_TRIGGER_CYCLES 1u")
    (tmp_path / "htvm_soc.h").write_text(text)
    with pytest.raises(TargetError, match="not written for these numbers: driver"):
        Compiler.zig().compile_host(
            model_sources(DIANA),
            tmp_path / "models.so",
            [tmp_path, runtime_c() / "include", runtime_c() / "soc" / "diana"],
            shared=True,
        )
