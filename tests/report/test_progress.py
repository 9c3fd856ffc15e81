"""Stages are told in order, nested, and closed by exceptions too."""

from __future__ import annotations

import pytest

from htvm.progress import CallbackProgress, Progress, StageEvent


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
