"""Helper: run as many tests as fit a time, others on every commit, and name those left out.

A pytest plugin (see `tests/conftest.py`) with two options:

``--time-budget SECONDS``
    Begin no test later than that.  Tests that were not begun are no failure; they are named at the
    end, one line ``not reached: ...`` for each test function.

``--rotation N``
    Which part of the tests comes first, modulo `PARTS`.  Default: the number of commits, or the
    number of the day where there is no git, or a shallow clone.  The parts follow each other in a
    circle, so that whatever one run leaves out comes first in one of the next.  Every part has some
    cases of every long list, and its files come in another order in every run.

Without a time budget, nothing is reordered.

Of a test marked ``rotating(count)``, everyday runs have so many cases, others on every commit, and
the rest is slow.
"""

from __future__ import annotations

import datetime
import subprocess
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PARTS = 6
"""How many parts there are.  In a run of CI, at least one is to fit its time."""

ROOT = Path(__file__).parents[1]
clock = time.monotonic


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rotation", "running as many tests as fit a time")
    group.addoption("--time-budget", type=float, metavar="SECONDS", help="begin no test later")
    group.addoption("--rotation", type=int, metavar="N", help="which part of the tests is first")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.time_budget is None:
        return
    if config.option.rotation is None:
        config.option.rotation = today()  # before xdist hands the options to its workers
    budget, rotation = config.option.time_budget, config.option.rotation
    config.pluginmanager.register(Rotation(budget, rotation), "rotation")


def today(root: Path = ROOT) -> int:
    """A number that grows from run to run: that of the commits, or of the day.

    A shallow clone has the same number of commits each time, so it counts as none.
    """
    try:
        if _git(root, "rev-parse", "--is-shallow-repository") == "false":
            return int(_git(root, "rev-list", "--count", "HEAD"))
    except (OSError, subprocess.CalledProcessError):
        pass
    return datetime.date.today().toordinal()


def _git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    made = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return made.stdout.strip()


def part_of(nodeid: str) -> int:
    """Which part a test belongs to, on every machine and in every process."""
    return zlib.crc32(nodeid.encode()) % PARTS


def summed_up(missed: list[str], collected: list[str]) -> list[str]:
    """Tests that were not reached, by function: ``tests/test_a.py::test_b (3 of 7)``."""
    functions, all_of = (
        Counter(nodeid.split("[")[0] for nodeid in names) for names in (missed, collected)
    )
    return [f"{name} ({count} of {all_of[name]})" for name, count in sorted(functions.items())]


def left_out(items: list[pytest.Item], turn: int) -> list[pytest.Item]:
    """Cases of tests marked ``rotating(count)`` whose turn it is not; slow cases do not count.

    Cases of a turn are scattered in their list, where neighbours are alike.
    """
    tests: dict[str, list[pytest.Item]] = {}
    counts: dict[str, int] = {}
    for item in items:
        marker = item.get_closest_marker("rotating")
        if marker and not item.get_closest_marker("slow"):
            test = item.nodeid.split("[")[0]
            tests.setdefault(test, []).append(item)
            (counts[test],) = marker.args
    left: list[pytest.Item] = []
    for test, cases in tests.items():
        cases.sort(key=lambda case: zlib.crc32(case.nodeid.encode()))
        first, count = turn * counts[test], counts[test]
        left += [case for at, case in enumerate(cases) if (at - first) % len(cases) >= count]
    return left


class Rotation:
    """Order, time and what was left out, of one process.

    Args:
        budget: seconds in which tests begin.
        rotation: the part that comes first, modulo `PARTS`.
    """

    def __init__(self, budget: float, rotation: int) -> None:
        self.budget = budget
        self.rotation = rotation
        self.end = clock() + budget
        self.collected: list[str] = []
        self.missed: list[str] = []

    def place(self, nodeid: str) -> tuple[int, int]:
        """What tests are sorted by: when their part comes, and their file in this run."""
        file = zlib.crc32(f"{self.rotation} {nodeid.split('::')[0]}".encode())
        return (part_of(nodeid) - self.rotation) % PARTS, file

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.place(item.nodeid))
        self.collected = [item.nodeid for item in items]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if clock() < self.end:
            return None
        self.missed.append(item.nodeid)
        return True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:  # a worker of xdist tells the process that started it
            output["rotation"] = (self.missed, self.collected)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        names = summed_up(self.missed, self.collected)
        if names:
            terminalreporter.section(
                f"not reached in {self.budget:.0f} s: {len(self.missed)} of "
                f"{len(self.collected)} tests (rotation {self.rotation})"
            )
        for name in names:
            terminalreporter.write_line(f"not reached: {name}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        missed, collected = getattr(node, "workeroutput", {}).get("rotation", ([], []))
        self.missed += missed
        self.collected = collected or self.collected

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Workers share the tests by part and file, in the order in which they are sorted."""
        from xdist.scheduler import LoadFileScheduling

        class PartByPart(LoadFileScheduling):
            def _split_scope(self, nodeid: str) -> str:
                return f"{part_of(nodeid)} {super()._split_scope(nodeid)}"

        config.option.loadscopereorder = False
        return PartByPart(config, log)
