"""The reference programs give exactly the counts that the RTL gave."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from htvm.sim.iss import TrapError, run_elf
from tests.sim.bare import bare_corev

PROGRAMS = Path(__file__).resolve().parents[2].parent / "shared" / "riscv"

pytestmark = pytest.mark.skipif(
    not PROGRAMS.is_dir(), reason=f"the reference programs are not there: {PROGRAMS}"
)


def test_micro_sequences() -> None:
    expected = (PROGRAMS / "micro.cycles.txt").read_text().split()
    sequences = (PROGRAMS / "micro.sequences.txt").read_text().splitlines()
    got = run_elf(PROGRAMS / "micro.elf").output.decode().split()
    assert len(expected) == len(sequences) == 400
    wrong = [row for row in zip(sequences, got, expected, strict=True) if row[1] != row[2]]
    assert not wrong


def test_kernels() -> None:
    expected = (PROGRAMS / "kernels.rtl.txt").read_text().splitlines()
    assert run_elf(PROGRAMS / "kernels.elf").output.decode().splitlines() == expected


@pytest.mark.parametrize("name", ["random1", "random2", "random3"])
def test_random(name: str) -> None:
    expected = (PROGRAMS / f"{name}.rtl.txt").read_text().split()
    assert run_elf(PROGRAMS / f"{name}.elf").output.decode().split()[:3] == expected


COREV = sorted((PROGRAMS / "corev").glob("*.elf"))


@pytest.mark.skipif(not COREV, reason=f"the CORE-V programs are not there: {PROGRAMS / 'corev'}")
@pytest.mark.parametrize("elf", COREV, ids=lambda elf: elf.stem)
def test_corev(elf: Path) -> None:
    """Cycles, instructions, and a hash of registers and memory."""
    expected = elf.with_suffix(".rtl.txt").read_text().split()
    assert run_elf(elf, bare_corev()).output.decode().split() == expected
    with pytest.raises(TrapError, match="illegal instruction"):
        run_elf(elf)


def test_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "htvm.sim.iss", PROGRAMS / "random1.elf"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith((PROGRAMS / "random1.rtl.txt").read_text().strip())
    assert last.startswith("cycles ") and "instructions" in last
