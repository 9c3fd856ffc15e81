"""Generated C violates only those MISRA rules that the list of deviations gives a reason for."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.misra import GOLDEN, PAGE, deviations, table, unlisted, violations
from tests.tools import tool

EVERY_DAY = ("program/diana/small.c", "cpu_simd/dense.c")


@pytest.fixture(autouse=True)
def _cppcheck() -> None:
    tool("cppcheck")


@pytest.mark.parametrize("name", EVERY_DAY)
def test_a_golden_violates_only_what_is_listed(name: str) -> None:
    found = violations(GOLDEN / name)
    assert found and not unlisted(found)


@pytest.mark.slow
def test_the_page_counts_the_violations_of_all_goldens() -> None:
    found = Counter[str]()
    for path in sorted(GOLDEN.rglob("*.c")):
        found += violations(path)
    assert not unlisted(found)
    assert {*found} == {*deviations()}, "a deviation that nothing needs"
    text = PAGE.read_text(encoding="utf-8")
    assert table(found) in text, "run: python -m benchmarks.misra --write"


@pytest.mark.slow
def test_no_golden_shifts_a_sign_by_all_other_bits() -> None:
    """C leaves the result to its implementation, and cppcheck objects to this shift alone."""
    command = [
        tool("cppcheck"),
        "--enable=portability",
        "--quiet",
        "--template={id} {file}",
        GOLDEN,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "shiftTooManyBitsSigned" not in done.stderr


def test_every_deviation_is_in_the_page_with_its_reason() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d+\.\d+) \| [\d,]+ \| (.*) \|$", text, re.MULTILINE))
    assert rows == deviations()


def test_a_violation_that_is_not_listed_is_found(tmp_path: Path) -> None:
    """A jump backwards."""
    path = tmp_path / "jumps.c"
    path.write_text(
        "#include <stdint.h>\nstatic int32_t jumps(int32_t x)\n{\nagain:\n    x++;\n"
        "    if (x < 3) {\n        goto again;\n    }\n    return x;\n}\n"
    )
    assert unlisted(violations(path)) == ["15.1"]
