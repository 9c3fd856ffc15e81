"""Stage values as documents: equal ones for equal values, and only values of known classes back."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from byoc_dory.layers import Shift
from byoc_dory.soc.registry import resolve
from byoc_dory.tileloop.pipeline import Call, Verb
from htvm import zoo
from htvm.build_options import BuildOptions
from htvm.pipeline import compile_model
from htvm.stage_cache import StageCache
from htvm.stage_values import NotDataError, decode, encode
from htvm.tools.explain.explanation import explanation_of
from tests.models import model_path

OWN = ("htvm", "patterns", "byoc_dory")
HERE = (*OWN, __name__.partition(".")[0])


@dataclass(frozen=True)
class Size:
    """A value of its own package, with something derived."""

    width: int
    height: int

    @cached_property
    def area(self) -> int:
        return self.width * self.height


@dataclass
class Changing:
    width: int


@dataclass(frozen=True)
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number <= 0:
            raise ValueError("not positive")


Pair = namedtuple("Pair", "a b")


def _again(value: Any) -> Any:
    document, _ = encode(value)
    found = decode(document, HERE)
    assert encode(found)[0] == document
    return found


@pytest.mark.parametrize(
    "value",
    [
        None, True, 1, 1.0, -0.0, math.inf, 2**63, -(2**63), 0.1, "", "ä\0", b"\0", (), [], {},
        (1, (2, [3, {"a": (4,)}])), {1: 2, "1": 3, (1, "x"): None}, frozenset({2, 1}),
        Size(2, 3), Shift(3), Verb.COMPUTE, Call, {"kind": Size}, (1, 1.0, True), np.int64(3),
        np.float32(0.5),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_come_back(value: object) -> None:
    found = _again(value)
    assert repr(found) == repr(value) and type(found) is type(value)


def test_a_set_comes_back_in_whatever_order_it_is() -> None:
    assert _again(frozenset({"b", "a", 1})) == {"b", "a", 1}


def test_a_number_that_is_none_comes_back() -> None:
    assert math.isnan(_again(math.nan))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((), np.int8),
        np.zeros((0, 3), np.float32),
        np.arange(24, dtype=">i4").reshape(2, 3, 4),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(10, dtype=np.uint16)[::-2],
        np.array([True, False]),
        np.array([math.nan, -0.0]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_come_back_to_be_read(array: np.ndarray[Any, Any]) -> None:
    found = _again(array)
    np.testing.assert_array_equal(found, array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    with pytest.raises(ValueError, match="read-only"):
        found[...] = 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0), (1, True), (0.0, -0.0), ("1", 1), ("a", b"a"), ((1,), [1]), ((), None),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (Size(1, 2), Size(2, 1)), (Size(1, 2), (1, 2)),
        (np.zeros(2, np.int8), np.zeros(2, np.uint8)), (np.zeros((1, 2)), np.zeros((2, 1))),
        (((1,), 2), (1, (2,))), (np.int64(1), 1), (Size, "Size"),
    ],
    ids=repr,
)  # fmt: skip
def test_different_values_have_different_documents(one: object, other: object) -> None:
    assert encode(one)[0] != encode(other)[0]
    assert encode((one, other))[0] != encode((other, one))[0]


def test_equal_values_have_equal_documents_whatever_they_share() -> None:
    size, array = Size(1, 2), np.arange(5)
    shared = (size, array, size, array)
    equal = (Size(1, 2), array.copy(), Size(1, 2), array.copy())
    assert encode(shared)[0] == encode(equal)[0]
    first, second, third, fourth = _again(equal)
    assert first is third and second is fourth


def test_what_is_derived_is_not_written() -> None:
    size = Size(2, 3)
    before = encode(size)[0]
    assert size.area == 6 and encode(size)[0] == before


def test_large_arrays_are_written_once() -> None:
    array = np.arange(100_000)
    assert len(encode([array, array.copy(), (array,)])[0]) < 1.01 * array.nbytes


@pytest.mark.parametrize(
    "make",
    [
        lambda: lambda: 1,
        lambda: partial(max, 1),
        lambda: Path("x"),
        lambda: {1, 2},
        lambda: Pair(1, 2),
        lambda: Changing(1),
        lambda: Changing,
        lambda: object(),
        lambda: int,
        lambda: 2**64,
        lambda: "\ud800",
        lambda: np.array([{}], object),
        lambda: np.array(["a"]),
        lambda: np.ma.masked_array([1, 2], [True, False]),
        lambda: frozenset({(1, 2)}),
        lambda: zoo.build("toyadmos").module,
    ],
)
def test_what_is_no_data_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(NotDataError):
        encode((1, make()))


def test_what_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(NotDataError):
        encode(value)


def test_what_was_added_to_an_object_is_not_lost_in_silence() -> None:
    size = Size(1, 2)
    object.__setattr__(size, "depth", 3)
    with pytest.raises(NotDataError, match="a Size has attributes that are no fields"):
        encode(size)


def test_functions_are_for_keys_only() -> None:
    document, modules = encode(model_path)
    assert modules == {model_path.__module__}
    with pytest.raises(NotDataError, match="no kind"):
        decode(document, HERE)


def _document(value: object, classes: object = (), parts: object = ()) -> bytes:
    return msgspec.msgpack.encode([classes, parts, value])


SIZE = [__name__, "Size", ["width", "height"]]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\x80\x04N.",
        _document([0]),
        _document([5], (), [[-9]]),
        msgspec.msgpack.encode([1, 2, 3]),
        _document([0], [["os", "system", []]], [[0, "true"]]),
        _document([0], [["subprocess", "Popen", ["args"]]], [[0, "true"]]),
        _document([0], [["htvm.stage_cache", "os.system", []]], [[0, "true"]]),
        _document([0], [["htvm.stage_cache", "StageCache", ["folder"]]], [[0, None]]),
        _document([0], [["htvm.stage_cache", "Path", []]], [[0]]),
        _document([0], [["htvm.no_such_module", "Size", []]], [[0]]),
        _document([0], [[__name__, "Changing", ["width"]]], [[0, 1]]),
        _document([0], [[__name__, "Size", ["width"]]], [[0, 1]]),
        _document([0], [[__name__, "Size", ["height", "width"]]], [[0, 1, 2]]),
        _document([0], [SIZE], [[0, 1]]),
        _document([0], [SIZE], [[0, 1, 2, 3]]),
        _document([0], [SIZE], [[1, 1, 2]]),
        _document([0], [SIZE], [["0", 1, 2]]),
        _document([0], [[__name__, "Positive", ["number"]]], [[0, 0]]),
        _document([0], [["byoc_dory.tileloop.pipeline", "Verb", []]], [[-3, 0, "NOTHING"]]),
        _document([0], [SIZE], [[-3, 0, "width"]]),
        _document([0], (), [[-7, "a"]]),
        _document([0], (), [[-6, [1]]]),
        _document([0], (), [[-5, "|O", b"12345678", 1]]),
        _document([0], (), [[-5, "<i4", b"123", 1]]),
        _document([0], (), [[-5, "<i4", b"1234", 2]]),
        _document([0], (), [[-1, "os", "system"]]),
        _document([0], (), [[-10]]),
    ],
)
def test_other_documents_are_refused(document: bytes) -> None:
    with pytest.raises(NotDataError):
        decode(document, HERE)


def test_classes_of_other_packages_are_not_made() -> None:
    document, modules = encode(Size(1, 2))
    assert modules == {__name__, "builtins"}
    with pytest.raises(NotDataError, match="no class"):
        decode(document, OWN)


def test_every_change_of_a_description_is_another_key() -> None:
    target = resolve("siracusa")
    (memory, *others) = target.soc.memories
    changed = replace(memory, size=memory.size + 4)
    other = replace(target, soc=replace(target.soc, memories=(changed, *others)))
    assert encode(target)[0] == encode(resolve("siracusa"))[0] != encode(other)[0]


# ------------------------------------------------------------------------------ builds

SLOW = pytest.mark.slow  # several seconds of tiling or calibration


@pytest.mark.parametrize(
    ("network", "target"),
    [
        ("toyadmos", "diana"),
        ("toyadmos", "dla"),
        ("toyadmos", "cortex_m4"),
        pytest.param("resnet8", "diana.mixed", marks=SLOW),
        pytest.param("ds_cnn", "snitch_ita", marks=SLOW),
        pytest.param("resnet8", "siracusa", marks=SLOW),
        pytest.param("microllama", "siracusa", marks=SLOW),
        pytest.param("pretrainedResnet_quant", "diana", marks=SLOW),
        pytest.param("kws_ref_model", "siracusa", marks=SLOW),
        pytest.param("ad01_int8", "snitch_ita", marks=SLOW),
    ],
)
def test_every_kept_result_is_read_as_it_was_written(
    network: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htvm.stage_cache._BEGAN", float("inf"))
    cache = StageCache(tmp_path / "stages")
    made: list[tuple[object, bytes]] = []

    def noted(value: Any) -> tuple[bytes, frozenset[str]]:
        found = encode(value)
        made.append((value, found[0]))
        return found

    monkeypatch.setattr("htvm.stage_cache.encode", noted)
    known = network in zoo.names() or network == "microllama"
    model = zoo.build(network) if known else model_path(network)
    compiled = compile_model(model, target, BuildOptions(), cache=cache)
    assert compiled.key
    explanation_of(compiled, 1, cache, measure=False)
    kept = [path.read_bytes()[32:] for path in (tmp_path / "stages").iterdir()]
    assert {path.name.partition("-")[0] for path in (tmp_path / "stages").iterdir()} >= {
        "placing", "generating", "explaining",
    }  # fmt: skip
    assert {document for _, document in made}.issuperset(kept)
    for document in kept:
        assert encode(decode(document, OWN))[0] == document
