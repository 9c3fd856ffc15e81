"""What `.ci/run` says in the end, and when it fails; `make` is played by a script."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools import tool

SCRIPT = Path(__file__).parents[2] / ".ci" / "run"
EVERYDAY = "===== 3000 passed, 20 warnings in 500.12s (0:08:20) ====="
TORCH = "===== 30 passed in 100.00s (0:01:40) ====="
NOTEBOOKS = "===== 6 passed in 120.00s (0:02:00) ====="
SLOW = "===== 40 passed in 1510.00s (0:25:10) ====="
LEFT_OUT = "not reached: tests/e2e/test_a.py::test_b (3 of 7)"

MAKE = """#!/usr/bin/env bash
echo "$@" >> calls
case $1 in
  test) echo "{everyday}"; exit ${{TEST:-0}} ;;
  test-torch) echo "{torch}"; exit ${{TORCH:-0}} ;;
  notebooks) echo "{notebooks}"; exit ${{NOTEBOOKS:-0}} ;;
  test-slow) echo "{left_out}"; echo "{slow}"; exit ${{SLOW:-0}} ;;
esac
"""

# A machine on which a package is installed once apt-get was asked for it.
DPKG = """#!/usr/bin/env bash
for package in "${@:2}"; do grep -qs "install.* $package" calls || exit 1; done
"""
APT = """#!/usr/bin/env bash
echo apt-get "$@" >> calls
"""
SUDO = """#!/usr/bin/env bash
exec "$@"
"""


def run(
    folder: Path, *arguments: str, **statuses: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """The run of a copy of the script in ``folder``, and what it asked of make."""
    (folder / ".ci").mkdir()
    shutil.copy(SCRIPT, folder / ".ci" / "run")
    programs = folder / "bin"
    programs.mkdir()
    make = MAKE.format(
        everyday=EVERYDAY, torch=TORCH, notebooks=NOTEBOOKS, slow=SLOW, left_out=LEFT_OUT
    )
    for name, text in {"make": make, "dpkg": DPKG, "apt-get": APT, "sudo": SUDO}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    made = subprocess.run(
        [tool("bash"), str(folder / ".ci" / "run"), *arguments],
        env={**os.environ, "PATH": path, "CI": "", **statuses},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return made, (folder / "calls").read_text()


pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="no clone, but an archive")


def test_the_everyday_tests_come_last(tmp_path: Path) -> None:
    made, calls = run(tmp_path)
    assert made.returncode == 0, made.stderr
    assert calls.splitlines() == [
        "test",
        "test-torch",
        "notebooks",
        "test-slow OPTIONS=--time-budget 600 --ignore tests/notebooks",
    ]
    lines = made.stdout.splitlines()
    assert lines[-1] == EVERYDAY
    assert lines[-4:-2] == [f"notebooks: {NOTEBOOKS}", f"slow tests: {SLOW}"]
    assert lines[-5] == f"tests with torch: {TORCH}"
    assert lines[-6] == LEFT_OUT and "not reached" in lines[-7]


def test_without_slow_tests(tmp_path: Path) -> None:
    made, calls = run(tmp_path, "0")
    assert made.returncode == 0 and "test-slow" not in calls
    assert "slow tests: not run" in made.stdout and made.stdout.splitlines()[-1] == EVERYDAY


@pytest.mark.parametrize(
    ("part", "status"), [("TEST", 2), ("TORCH", 2), ("NOTEBOOKS", 2), ("SLOW", 2)]
)
def test_a_failure_of_any_part_fails(part: str, status: int, tmp_path: Path) -> None:
    made, _ = run(tmp_path, "600", **{part: str(status)})
    assert made.returncode == status
    if part == "SLOW":
        assert f"slow tests: {SLOW}" in made.stdout
        assert made.stdout.splitlines()[-1] == EVERYDAY


def test_what_hangs_fails(tmp_path: Path) -> None:
    made, _ = run(tmp_path, "600", SLOW="124")
    assert made.returncode == 124
    assert "slow tests: stopped: a test hangs, 1500 s after the start" in made.stdout


def test_other_compilers_are_installed_in_ci(tmp_path: Path) -> None:
    made, calls = run(tmp_path, "0", CI="true")
    assert made.returncode == 0, made.stderr
    update, install, test, *_ = calls.splitlines()
    assert update.startswith("apt-get update") and test == "test"
    assert {"gcc-arm-none-eabi", "clang", "qemu-system-arm", "cppcheck"} <= {*install.split()}


def test_nothing_is_installed_elsewhere_or_twice(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    _, calls = run(tmp_path / "here", "0")
    assert "apt-get" not in calls
    (tmp_path / "there").mkdir()
    packages = SCRIPT.read_text().split('packages="')[1].split('"')[0]
    (tmp_path / "there" / "calls").write_text(f"install {' '.join(packages.split())} \n")
    _, calls = run(tmp_path / "there", "0", CI="true")
    assert "apt-get" not in calls
