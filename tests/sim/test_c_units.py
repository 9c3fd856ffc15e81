"""The simulator's C unit tests, with warnings as errors and under sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from htvm.firmware.host import sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow")
COMPILERS = [None, *(name for name in ("gcc", "clang") if shutil.which(name))]


def iss_sources() -> list[Path]:
    return [
        *sorted((runtime_c() / "iss").glob("*.c")),
        runtime_c() / "soc" / "none" / "none_model.c",
    ]


@pytest.mark.parametrize("host", COMPILERS, ids=lambda host: host or "zig")
@pytest.mark.parametrize("name", ["corev", "decode", "elf"])
def test_units(name: str, host: str | None, tmp_path: Path) -> None:
    compiler = sanitizing(Compiler.zig(host=host))
    tests = runtime_c() / "tests"
    program = compiler.compile_host(
        [tests / "iss" / f"test_{name}.c", *(s for s in iss_sources() if s.name != "main.c")],
        tmp_path / "test",
        [tests, runtime_c() / "iss", runtime_c() / "include"],
        WARNINGS,
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout


@pytest.mark.parametrize("corev", [False, True], ids=["", "corev"])
@pytest.mark.parametrize("host", COMPILERS, ids=lambda host: host or "zig")
def test_simulator_under_sanitizers(host: str | None, corev: bool, tmp_path: Path) -> None:
    """The whole simulator, on a program of random instructions of every kind."""
    from tests.rtl.programs import random_program
    from tests.sim.bare import assemble

    compiler = sanitizing(Compiler.zig(host=host))
    iss = compiler.compile_host(
        iss_sources(),
        tmp_path / "iss",
        [runtime_c() / "iss", runtime_c() / "include"],
        (*WARNINGS, *(("-DHTVM_CORE_COREV=1",) if corev else ())),
    )
    for seed in range(3):
        elf = assemble(random_program(seed, corev=corev), tmp_path, compiler)
        report = tmp_path / "report.json"
        done = subprocess.run(
            [iss, elf, "--report", report, "--max-cycles", "1000000"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.split()) == 3 and '"exit_code": 0' in report.read_text()
