"""No error but ours and the caller's own leaves what users call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import htvm
from benchmarks.mutant import failure
from htvm.errors import DefectError, InputError, InternalError, ModelError
from htvm.progress import CallbackProgress
from htvm.public import public
from htvm.shown import Shown
from htvm.tools.cli.app import main
from htvm.tools.report.compare import Comparison
from tests import conftest
from tests.frontend.single import CASES

# Raises a ValueError without a frame of its own, as a defect in our code would.
BROKEN: Callable[..., Any] = [].index


def functions_of(kind: type) -> Iterator[Any]:
    """Yield the public methods and properties of a class."""
    for name, member in vars(kind).items():
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            yield member
        elif isinstance(member, property):
            yield member.fget
        elif isinstance(member, functools.cached_property):
            yield member.func
        elif isinstance(member, classmethod | staticmethod):
            yield member.__func__


def entries() -> list[Any]:
    found: list[Any] = [htvm.report.load, htvm.report.save, htvm.zoo.named, htvm.zoo.build]
    kinds = {Shown, *Shown.__subclasses__()}
    for name in htvm.__all__:
        value = getattr(htvm, name)
        if isinstance(value, FunctionType):
            found.append(value)
        elif isinstance(value, type):
            kinds.add(value)
    return [*found, *(each for kind in kinds for each in functions_of(kind))]


def test_all_that_users_call_is_guarded() -> None:
    assert len(entries()) > 50
    guarded = public(lambda: None).__code__
    assert [each.__qualname__ for each in entries() if each.__code__ is not guarded] == []


@pytest.mark.defects
def test_what_nobody_foresaw_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htvm.opening._is_folder", BROKEN)
    with pytest.raises(InternalError) as caught:
        htvm.load("net.onnx", dialect="qdq")
    assert isinstance(caught.value, DefectError) and isinstance(caught.value.__cause__, ValueError)
    assert caught.value.what.startswith("htvm.load('net.onnx', dialect='qdq') failed with ValueErr")
    assert caught.value.where.startswith("htvm.opening, line ")
    assert "please report it" in caught.value.hint


@pytest.mark.defects
def test_the_outermost_call_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htvm.opening._is_folder", BROKEN)
    with pytest.raises(InternalError, match=r"^htvm\.build\('net\.onnx', 'dla'\) failed"):
        htvm.build("net.onnx", "dla")


@pytest.mark.defects
def test_methods_and_properties() -> None:
    result = htvm.RunResult.__new__(htvm.RunResult)  # without its fields
    with pytest.raises(InternalError, match=r"^htvm\.Shown\.records\(\) failed with Attribute"):
        _ = result.records


def test_the_callers_own_errors_reach_the_caller(tmp_path: Path) -> None:
    class CancelledError(Exception):
        pass

    def cancel(_: object) -> None:
        raise CancelledError

    def samples() -> Iterator[Any]:
        yield from ()
        raise CancelledError

    path = tmp_path / "net.tflite"
    path.write_bytes(CASES["conv"](np.random.default_rng(1)).file())
    with pytest.raises(CancelledError):
        htvm.build("zoo:toyadmos", progress=CallbackProgress(cancel))
    with pytest.raises(CancelledError):
        htvm.build(path, data=samples(), labels=[0])


def test_a_call_that_does_not_fit_is_a_type_error() -> None:
    call: Any = htvm.build
    with pytest.raises(TypeError, match="unexpected keyword argument 'tagret'"):
        call("zoo:toyadmos", tagret="dla")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        call()


MISTAKES: list[tuple[str, Callable[[Any], object]]] = [
    ("htvm.open(5): path is a int, not str or Path", htvm.open),
    ("htvm.report.load(5): path is a int", htvm.report.load),
    ("htvm.zoo.named(5): text is a int", htvm.zoo.named),
    ("progress is a int", lambda value: htvm.build("zoo:toyadmos", progress=value)),
    ("cc is a int, not str or None", lambda value: htvm.build("zoo:toyadmos", cc=value)),
]


@pytest.mark.parametrize(("message", "call"), MISTAKES)
def test_an_argument_of_another_type(message: str, call: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError) as caught:
        call(5)
    assert message in str(caught.value).replace("report.loading.load", "report.load")


@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt, SystemExit])
def test_what_is_nobodys_defect_passes(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: object) -> bool:
        raise kind

    monkeypatch.setattr("htvm.opening._is_folder", stop)
    with pytest.raises(kind):
        htvm.load("net.onnx")


@pytest.mark.defects
def test_the_command_says_that_it_is_a_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("htvm.opening._is_folder", BROKEN)
    assert main(["explain", "net.onnx"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("htvm: internal error: `htvm explain net.onnx` failed with ValueError")
    assert "Traceback" not in shown and "-v" in shown
    assert main(["explain", "net.onnx", "-v"]) == 1
    assert "ValueError" in capsys.readouterr().err


def test_too_little_memory_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhausted(_: object) -> bool:
        raise MemoryError

    monkeypatch.setattr("htvm.opening._is_folder", exhausted)
    assert main(["explain", "net.onnx"]) == 3
    assert "no more memory" in capsys.readouterr().err


@pytest.mark.defects
def test_campaigns_count_defects_as_crashes() -> None:
    assert failure(ModelError("no model")) == ("refused", "no model")
    for error in (InternalError("no"), DefectError("no"), ValueError("no")):
        assert failure(error) == ("crashed", f"{type(error).__name__}: no")


class _Item:
    def __init__(self, marker: object) -> None:
        self._marker = marker

    def get_closest_marker(self, _: str) -> object:
        return self._marker


@pytest.mark.defects
@pytest.mark.parametrize("marker", [None, "defects"])
def test_a_test_that_makes_one_fails(marker: object) -> None:
    item: Any = _Item(marker)
    running = conftest.pytest_runtest_call(item)
    next(running)
    InternalError("a defect")
    with pytest.raises(StopIteration if marker else pytest.fail.Exception):
        next(running)


def test_a_configuration_that_is_not_compared() -> None:
    comparison = Comparison("net", 1, 1, (), "dla")
    with pytest.raises(InputError, match="there is no configuration 'mars'"):
        comparison.row("mars")
