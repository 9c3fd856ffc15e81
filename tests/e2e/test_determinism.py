"""The same model gives the same C, byte for byte, on every build and from everywhere."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

import htvm

ROOT = Path(__file__).parents[2]

SCRIPT = """
import sys
import htvm
model = htvm.zoo.build(sys.argv[1])
htvm.build(model, sys.argv[2], "host").export(sys.argv[3])
"""


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("network", "target"), [("resnet8", "diana.digital"), ("ds_cnn", "diana.cpu")]
)
def test_builds_are_byte_identical(tmp_path: Path, network: str, target: str) -> None:
    folders = []
    for number in range(2):
        folders.append(tmp_path / f"here{number}")
        htvm.build(htvm.zoo.build(network), target, "host").export(folders[-1])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folders.append(tmp_path / "there")
    subprocess.run(
        [sys.executable, "-c", SCRIPT, network, target, str(folders[-1])],
        cwd=elsewhere,
        env={"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7", "PATH": "/usr/bin:/bin"},
        check=True,
    )
    first, second, third = (digests(folder) for folder in folders)
    assert any(name.endswith(".c") for name in first)
    assert first == second == third
