"""Slow tests within a time: what is not reached is named, is no failure, and comes first soon."""

from __future__ import annotations

import datetime
import re
import subprocess
from pathlib import Path

import pytest

from tests import rotation
from tests.rotation import PARTS, ROOT, part_of, today

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of this process is as it was when a test ends, and others find the plugin."""
    monkeypatch.setattr(rotation, "clock", rotation.clock)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


# A clock that moves on by a second with every test.
CONFTEST = """
import pytest
from tests import rotation

NOW = [0]
rotation.clock = lambda: NOW[0]

@pytest.fixture(autouse=True)
def second():
    NOW[0] += 1
"""
FILE = """
import pytest

@pytest.mark.parametrize("i", range({cases}))
def test_case(i):
    assert i != {fails}

def test_single():
    pass
"""


def project(pytester: pytest.Pytester, files: int = 4, cases: int = 9, fails: int = -1) -> int:
    """Write files of tests; returns how many tests there are."""
    pytester.makeconftest(CONFTEST)
    for at in range(files):
        pytester.makepyfile(**{f"test_{at}": FILE.format(cases=cases, fails=fails)})
    return files * (cases + 1)


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "tests.rotation", "-v", *options)


def run_with_workers(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "tests.rotation", "-v", *options)


def passed(result: pytest.RunResult) -> list[str]:
    found = [
        re.match(r"(?:\[gw\d\].* PASSED )?(test_\d\.py::\S+)", line) for line in result.outlines
    ]
    return [match[1] for match in found if match]


def missed(result: pytest.RunResult) -> int:
    """How many tests are named as not reached."""
    lines = [re.fullmatch(r"not reached: \S+::\S+ \((\d+) of \d+\)", x) for x in result.outlines]
    return sum(int(match[1]) for match in lines if match)


def test_nothing_is_left_out_where_time_suffices(pytester: pytest.Pytester) -> None:
    count = project(pytester)
    result = run(pytester, "--time-budget", "1000")
    assert result.ret == 0 and missed(result) == 0
    result.assert_outcomes(passed=count)


def test_the_rest_is_named_and_no_failure(pytester: pytest.Pytester) -> None:
    count = project(pytester)
    result = run(pytester, "--time-budget", "11", "--rotation", "4")
    assert result.ret == 0
    result.assert_outcomes(passed=11)
    assert missed(result) == count - 11
    result.stdout.fnmatch_lines(["*not reached in 11 s: 29 of 40 tests (rotation 4)*"])


def test_workers_tell_what_they_left_out(pytester: pytest.Pytester) -> None:
    count = project(pytester)
    result = run_with_workers(pytester, "--time-budget", "5", "-n", "2")
    assert result.ret == 0
    result.assert_outcomes(passed=10)  # each has its clock
    assert missed(result) == count - 10


def test_no_time_at_all(pytester: pytest.Pytester) -> None:
    count = project(pytester)
    result = run(pytester, "--time-budget", "0")
    assert (result.ret, missed(result)) == (0, count)
    result.stdout.fnmatch_lines(["not reached: test_3.py::test_case (9 of 9)"])


def test_a_failure_before_the_end_of_the_time_fails(pytester: pytest.Pytester) -> None:
    count = project(pytester, fails=3)
    result = run(pytester, "--time-budget", str(count))  # all are begun, whichever comes last
    assert result.ret == 1 and result.parseoutcomes()["failed"] == 4


def test_everything_is_reached_within_as_many_runs_as_there_are_parts(
    pytester: pytest.Pytester,
) -> None:
    count = project(pytester)
    names = passed(run(pytester))
    assert len(names) == count
    largest = max(sum(part_of(name) == part for name in names) for part in range(PARTS))
    assert largest < count / 2
    reached: set[str] = set()
    for at in range(PARTS):
        some = passed(run(pytester, "--time-budget", str(largest), "--rotation", str(100 + at)))
        assert len(some) == largest and not set(some) <= reached
        reached |= set(some)
    assert reached == set(names)


def test_workers_begin_with_the_part_whose_turn_it_is(pytester: pytest.Pytester) -> None:
    count = project(pytester)
    options = ("--time-budget", "1000", "--rotation", "3", "-n", "1")
    result = run_with_workers(pytester, *options)
    result.assert_outcomes(passed=count)
    parts = [(part_of(name) - 3) % PARTS for name in passed(result)]
    assert parts == sorted(parts) and len(set(parts)) > 2


def test_the_order_is_the_usual_one_without_a_time(pytester: pytest.Pytester) -> None:
    project(pytester)
    files = [name[:6] for name in passed(run(pytester))]
    assert files == sorted(files)


def test_the_number_is_that_of_commits_or_of_the_day(tmp_path: Path) -> None:
    day = datetime.date.today().toordinal()
    assert today(tmp_path) == day
    here, shallow = tmp_path / "here", tmp_path / "shallow"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", str(here)], check=True)
    for _ in range(3):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=here, check=True)
    assert today(here) == 3
    subprocess.run([*git, "clone", "-q", "--depth", "1", here.as_uri(), shallow], check=True)
    assert today(shallow) == day


CASES = """
import pytest

@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    "i", [0, 1, 2, 3, 4, pytest.param(5, marks=pytest.mark.slow), pytest.param(6)]
)
def test_case(i):
    pass

@pytest.mark.rotating(9)
@pytest.mark.parametrize("i", range(3))
def test_few(i):
    pass
"""


def test_some_cases_run_on_a_commit_and_others_on_the_next(pytester: pytest.Pytester) -> None:
    items, _ = pytester.inline_genitems(pytester.makepyfile(test_cases=CASES))
    runs = [{item.name for item in items} - {item.name for item in left} for left in turns(items)]
    few = {f"test_few[{at}]" for at in range(3)}
    assert all(few < run and len(run) == 2 + 1 + 3 for run in runs)  # with the slow case
    assert set.union(*runs) == {item.name for item in items}


def turns(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    return [rotation.left_out(items, turn) for turn in range(700, 703)]


def test_a_case_that_is_asked_for_alone_is_not_left_out(pytester: pytest.Pytester) -> None:
    items, _ = pytester.inline_genitems(pytester.makepyfile(test_cases=CASES))
    assert all(not rotation.left_out([item], 700) for item in items)


def test_files_come_in_another_order_in_every_run() -> None:
    nodes = [f"test_{at}.py::test" for at in range(9)]
    orders = {tuple(sorted(nodes, key=rotation.Rotation(1, at).place)) for at in (0, PARTS)}
    assert len(orders) == 2
