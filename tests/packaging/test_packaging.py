"""What is installed is complete, and the Makefile finds a Python."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import htvm
from byoc_dory.soc import registry
from tests.tools import tool

ROOT = Path(__file__).parents[2]
PACKAGES = ("htvm", "patterns", "byoc_dory", "runtime_c")
NOT_SHIPPED = {"__pycache__", "tests"}
# The documented SoC, which `htvm targets new` needs.
EXAMPLE = Path("docs/examples/tiny_soc")


def package_files() -> set[str]:
    """Every file of the packages, relative to the root."""
    found = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            parts = path.relative_to(ROOT).parts
            if path.is_file() and not NOT_SHIPPED.intersection(parts):
                found.add("/".join(parts))
    for path in (ROOT / EXAMPLE).rglob("*"):
        parts = path.relative_to(ROOT / EXAMPLE).parts
        made = any(part.startswith((".", "__py")) and part != ".github" for part in parts)
        if path.is_file() and not made:
            found.add("/".join(("htvm/example_soc", *parts)))
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the tree, so that nothing is left in the tree itself."""
    base = tmp_path_factory.mktemp("wheel")
    tree = base / "tree"
    ignored = shutil.ignore_patterns("__pycache__")
    for package in (*PACKAGES, EXAMPLE):
        shutil.copytree(ROOT / package, tree / package, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(base), str(tree)]
    made = subprocess.run(command, cwd=base, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (path,) = base.glob("htvm-*.whl")
    return path


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert package_files() - shipped == set(), "not shipped: add the ending to setup.py's DATA"
    assert shipped - package_files() == set(), "shipped, but not part of the packages"


def test_the_wheel_works_elsewhere(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    code = (
        "import htvm, patterns, byoc_dory, sys\n"
        "from htvm.firmware.paths import runtime_c\n"
        "root = runtime_c()\n"
        "assert str(root).startswith(sys.argv[1]), root\n"
        "assert htvm.__file__.startswith(sys.argv[1]), htvm.__file__\n"
        "assert (root / 'include' / 'htvm_hal.h').is_file()\n"
        "assert list(root.rglob('*.c'))\n"
        "from htvm.tools.skeleton import skeleton\n"
        "files = skeleton('mychip')\n"
        "assert {'tests/test_mychip.py', '.github/workflows/test.yml'} <= files.keys()\n"
        "print(*htvm.targets())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(site)}
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code, str(site)] if sys.version_info >= (3, 11)
        else [sys.executable, "-c", code, str(site)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == list(htvm.targets())


_USED = """
import sys
from pathlib import Path
import htvm
from htvm.tools.cli.app import (main)
from htvm.inputs import seeded_inputs
from tests.tools import tool

assert htvm.__file__.startswith(sys.argv[1]), htvm.__file__
assert main(["report", "zoo:toyadmos", "--out", "page.html", "--out", "page.json"]) == 0
assert main(["targets", "show", "snitch_ita"]) == 0
assert main(["targets", "new", "mychip"]) == 0
model = NETWORK
module = htvm.build(model, "snitch_ita")
assert module.verify(seeded_inputs(model.inputs)).equal
folder = module.export("attention")
assert htvm.open(folder, trust=True).check()
assert Path("mychip_soc/pyproject.toml").is_file()
assert "</html>" in Path("page.html").read_text(encoding="utf-8")
"""


@pytest.mark.slow
@pytest.mark.parametrize("network", ["htvm.zoo.gemm(64, 64, 64)", "htvm.zoo.encoder(1)"])
def test_the_wheel_does_what_the_tree_does(wheel: Path, tmp_path: Path, network: str) -> None:
    """Firmware for both SoCs, a page, an export, a new SoC: every kind of data that is shipped."""
    site, home = tmp_path / "site", tmp_path / "home"
    home.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    script = home / "used.py"
    script.write_text(_USED.replace("NETWORK", network), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(script), str(site)], cwd=home,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_metadata_agrees_with_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        (entries,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        lines = archive.read(metadata).decode().splitlines()
        points = archive.read(entries).decode()
    assert f"Version: {htvm.__version__}" in lines
    assert "License-Expression: Apache-2.0" in lines
    for pin in ("apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.15.post2"):
        assert f"Requires-Dist: {pin}" in lines
    for name, reference in registry.BUILT_IN.items():
        assert f"{name} = {reference}" in points
    assert "htvm = htvm.tools.cli:main" in points


def test_the_installed_compiler_is_the_pinned_one() -> None:
    assert importlib.metadata.version("apache-tvm") == "0.27.0.post1"
    assert importlib.metadata.version("apache-tvm-ffi") == "0.1.15.post2"


def make(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Ask the Makefile for a virtual environment in an empty folder."""
    tool("make")
    folder = tmp_path / "env"
    command = ["make", "-C", str(ROOT), f"VENV={folder}", *arguments, f"{folder}/bin/python"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_make_takes_the_python_it_is_told(tmp_path: Path) -> None:
    made = make(tmp_path, f"PYTHON={sys.executable}")
    assert made.returncode == 0, made.stderr
    asked = [str(tmp_path / "env" / "bin" / "python"), "-c", "import sys; print(sys.version)"]
    assert subprocess.check_output(asked, text=True).strip() == sys.version


def test_make_says_which_python_it_needs(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    made = make(tmp_path, f"PYTHON={old}")
    assert made.returncode != 0
    assert "3.10, 3.11 or 3.12" in made.stderr and str(old) in made.stderr
    assert not (tmp_path / "env").exists()
