"""SoCs outside the package: the documented example, and what `htvm targets new` makes of it.

Both are installed as anybody's package is, into a folder of their own, and run their own tests
there: nothing of them is imported here.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml

import htvm
from byoc_dory.errors import ExportError, ModelError, TargetError
from byoc_dory.soc import registry
from byoc_dory.soc.base import Soc
from byoc_dory.soc.diana.description import DIANA
from htvm.firmware.paths import soc_folder
from htvm.tools.cli import main
from htvm.tools.skeleton import EXAMPLE, example_folder, new_soc, skeleton
from htvm.tools.zoo.drawing import Sketch
from htvm.tools.zoo.networks import model

ROOT = Path(__file__).parents[2]


def installed(folder: Path, work: Path) -> dict[str, str]:
    """The environment in which the package in ``folder`` is installed, without network."""
    site, tree = work / "site", work / "tree"
    # Building leaves files in the tree.
    shutil.copytree(folder, tree, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--target", str(site), str(tree)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}


def own_tests(folder: Path, work: Path, *arguments: str) -> dict[str, str]:
    """Run a package's tests where it is installed, not where it was written."""
    environment = installed(folder, work)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-c",
        os.devnull,
        "-p",
        "no:cacheprovider",
    ]
    command += ["--rootdir", str(work), "--import-mode", "importlib", *arguments]
    ran = subprocess.run(
        [*command, str(work / "tree" / "tests")],
        cwd=work, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0 and " passed" in ran.stdout, ran.stdout + ran.stderr
    return environment


def told(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "htvm", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


# Its devices, and a network on them; all of its tests are for those who do not wait.
QUICK = ("-k", "devices_say or NHWC-host")


@pytest.mark.parametrize(
    "chosen", [QUICK, pytest.param((), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_the_example_is_found_and_computes_exactly(chosen: tuple[str, ...], tmp_path: Path) -> None:
    environment = own_tests(example_folder(), tmp_path, *chosen)
    listed = json.loads(told(environment, "targets", "--json"))["targets"]
    assert {EXAMPLE, f"{EXAMPLE}.cpu"} <= {entry["target"] for entry in listed}
    shown = told(environment, "targets", "show", EXAMPLE)
    assert "The operator is dense, or a 1x1 convolution" in shown


@pytest.mark.slow
def test_a_new_one_passes_its_tests_as_printed(tmp_path: Path) -> None:
    """From the folder that holds it, which must not hide the package inside, and from others."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_INDEX": "1",
    }
    work = tmp_path / "environment"
    venv.create(work)
    (place,) = work.glob("lib/*/site-packages")
    (place / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment["PATH"] = f"{work / 'bin'}{os.pathsep}{environment['PATH']}"
    python = str(work / "bin" / "python")

    def printed(command: list[str], folder: Path = tmp_path, **more: str) -> str:
        module = [] if command[0] == "python" else ["-m", "htvm"]
        ran = subprocess.run(
            [python, *module, *command[1:]], cwd=folder, env={**environment, **more},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    told_to_do = printed(["htvm", "targets", "new", "mychip"])
    commands = [line.split() for line in told_to_do.splitlines() if line.startswith("  ")]
    outputs = [printed(command) for command in commands]
    assert len(commands) == 4 and " passed" in outputs[-1]
    # What its CI runs in its folder, and the tests from a folder that is not above it.
    folder = tmp_path / "mychip_soc"
    quick = {"PYTEST_ADDOPTS": "-p no:cacheprovider -k says_why"}
    for line in ci_lines(folder):
        output = printed(shlex.split(line), folder, **quick)
    assert "1 passed" in output
    last = ["python", "-m", "pytest", str(folder / "tests")]
    assert "1 passed" in printed(last, Path(tmp_path.anchor), **quick)


def ci_lines(folder: Path) -> list[str]:
    """The commands of a package's workflow, in order."""
    flow = yaml.safe_load((folder / ".github" / "workflows" / "test.yml").read_text("utf-8"))
    (job,) = flow["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


def test_ci_installs_the_extra_that_is_declared(tmp_path: Path) -> None:
    folder = new_soc("mychip", tmp_path / "mychip_soc")
    install, test = ci_lines(folder)
    declared = (folder / "pyproject.toml").read_text("utf-8").partition("optional-dependencies]")[2]
    (extra,) = re.findall(r"\.\[(\w+)\]", install)
    assert f"\n{extra} = [" in declared
    assert (folder / test.split()[-1]).is_dir()


def test_a_new_one_is_the_example_under_its_name() -> None:
    files = skeleton("mychip")
    assert "src/mychip_soc/description.py" in files and "tests/test_mychip.py" in files
    for path, text in files.items():
        assert EXAMPLE not in f"{path}{text}".lower(), path
    # And the other way round.
    back = {
        path.replace("mychip", EXAMPLE): text.replace("mychip", EXAMPLE).replace(
            "MYCHIP", EXAMPLE.upper()
        )
        for path, text in files.items()
    }
    assert back == skeleton_of_example()


def skeleton_of_example() -> dict[str, str]:
    folder = example_folder()
    endings = (".py", ".toml", ".md", ".c", ".h", ".yml")
    found = (path for path in folder.rglob("*") if path.suffix in endings)
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in found
        if not {".pytest_cache", "build"}.intersection(path.parts)
    }


@pytest.mark.parametrize(
    "name", ["", "9a", "Bad", "a b", "../x", "int", "lambda", "a" * 32, "diana", "none", "htvm"]
)
def test_names_that_cannot_be(name: str, tmp_path: Path) -> None:
    with pytest.raises(TargetError):
        new_soc(name, tmp_path / "soc")
    assert not any(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mychip_soc"
    assert main(["targets", "new", "mychip", "--out", str(folder)]) == 0
    assert "htvm targets show mychip" in capsys.readouterr().out
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["targets", "new", "other", "--out", str(folder)]) == 2
    assert "already" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (tmp_path / "file").touch()
    assert main(["targets", "new", "other", "--out", str(tmp_path / "file" / "soc")]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mychip_soc"]
    assert main(["targets", "new", "second", "-o", str(tmp_path / "b"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["kind"] == "soc" and "src/second_soc/mac.py" in said["files"]


def without_files(package: str) -> Soc:
    return replace(DIANA, name="lost", package=package)


@pytest.mark.parametrize("package", ["nobody_has_this", "nobody.has.this", "json", "os"])
def test_packages_without_c_are_refused(package: str) -> None:
    with pytest.raises(TargetError, match="no folder 'runtime'") as caught:
        soc_folder(without_files(package))
    assert "SoC lost" in str(caught.value)


def test_models_are_not_called_like_a_header_of_the_driver() -> None:
    sketch = Sketch("snitch_regs", (4,))
    sketch.dense(sketch.input, 4)
    with pytest.raises(ModelError, match="header of that name"):
        htvm.build(replace(model(sketch), name="snitch_regs"), target="snitch_ita.cpu")
    htvm.build(replace(model(sketch), name="snitch_regs"), target="diana.cpu", platform="host")


def test_a_missing_example_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("htvm.tools.skeleton.__file__", str(tmp_path / "htvm" / "skeleton.py"))
    with pytest.raises(ExportError, match="example"):
        skeleton("mychip")


def test_a_package_that_is_broken_does_not_stop_a_new_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = EntryPoint("mychip", "gone_soc.description:soc", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: (gone,))
    assert (new_soc("mychip", tmp_path / "mychip_soc") / "pyproject.toml").is_file()
