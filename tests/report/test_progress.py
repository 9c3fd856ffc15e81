"""Stages are told in order, nested, and closed by exceptions too."""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from rich.console import Console

import htvm
from htvm.progress import CallbackProgress, Progress, StageEvent
from htvm.progress_bar import NotebookBar, TerminalBar, with_progress


def test_stages_nest_and_are_timed() -> None:
    seen: list[StageEvent] = []
    ticks = iter([0.0, 1.0, 3.0, 6.0])
    progress = CallbackProgress(seen.append, clock=lambda: next(ticks))
    with progress.stage("outer"), progress.stage("inner"):
        pass
    assert seen == [
        StageEvent("outer", "begin", 0),
        StageEvent("inner", "begin", 1),
        StageEvent("inner", "end", 1, 2.0),
        StageEvent("outer", "end", 0, 6.0),
    ]


def test_a_failed_stage_says_so_and_leaves_the_depth_right() -> None:
    seen: list[StageEvent] = []
    progress = CallbackProgress(seen.append)
    with pytest.raises(ValueError), progress.stage("fails"):
        raise ValueError
    with progress.stage("next"):
        pass
    assert [(event.name, event.kind, event.depth) for event in seen] == [
        ("fails", "begin", 0),
        ("fails", "failed", 0),
        ("next", "begin", 0),
        ("next", "end", 0),
    ]


def test_the_silent_one_lets_exceptions_through() -> None:
    with pytest.raises(ValueError), Progress().stage("any"):
        raise ValueError


def test_the_number_of_a_stage_is_told_where_it_is_known() -> None:
    seen: list[StageEvent] = []
    progress = CallbackProgress(seen.append)
    with progress.stage("second", (2, 3)), progress.stage("inner"):
        pass
    assert [(event.name, event.part) for event in seen] == [
        ("second", (2, 3)),
        ("inner", None),
        ("inner", None),
        ("second", (2, 3)),
    ]


class _Cell:
    """What a notebook's cell shows, in the order it was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, html: str) -> _Cell:
        self.shown.append(html)
        return self

    def update(self, data: Any) -> None:
        self.shown.append(data._repr_html_())


def test_a_notebook_shows_what_takes_a_while_and_then_nothing() -> None:
    now, cell = [0.0], _Cell()
    bar = NotebookBar(cell.display, lambda: now[0])
    progress = CallbackProgress(bar.on_event, lambda: now[0])
    with progress.stage("importing"):
        now[0] = 0.9
    assert cell.shown == []
    with progress.stage("tiling <b>", (2, 3)):
        now[0] = 1.5
        with progress.stage("conv2d_0"), progress.stage("too soon to be shown"):
            pass
    bar.stop()
    assert cell.shown == [
        '<progress value="1" max="3"></progress> tiling &lt;b&gt;: conv2d_0, 2 s', "",
    ]  # fmt: skip


def test_quick_work_leaves_nothing_in_a_notebook() -> None:
    cell = _Cell()
    bar = NotebookBar(cell.display)
    with CallbackProgress(bar.on_event).stage("quick"):
        pass
    bar.stop()
    assert cell.shown == []


def test_a_function_has_a_bar_where_its_caller_gave_none() -> None:
    mine, theirs = Progress(), Progress()
    opened: list[str] = []

    @contextmanager
    def shown() -> Iterator[Progress]:
        opened.append("begin")
        yield theirs
        opened.append("end")

    def work(name: str, *, progress: Progress | None = None) -> tuple[str, Progress | None]:
        """Work."""
        return name, progress

    bound = with_progress(work, shown)
    assert bound("a", progress=mine) == ("a", mine) and opened == []
    assert bound("b") == ("b", theirs) and bound("c", progress=None) == ("c", theirs)
    assert opened == ["begin", "end"] * 2 and bound.__doc__ == "Work."


def test_what_takes_long_shows_its_progress() -> None:
    for function in (
        htvm.build, htvm.compare, htvm.explore, htvm.fit, htvm.quantize, htvm.sweep,
        htvm.Module.verify,
    ):  # fmt: skip
        assert "progress" in inspect.signature(function).parameters
        assert function.__wrapped__.__name__ == function.__name__


def test_a_second_bar_on_a_terminal_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htvm.progress_bar._PATIENCE_SECONDS", 0.0)
    console = Console(file=io.StringIO(), force_terminal=True)
    bars = [TerminalBar(console), TerminalBar(console)]
    for bar in bars:
        bar._show()
    for bar in reversed(bars):
        bar.stop()
