"""What a user passes to a run: accepted forms, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from htvm.errors import InputError
from htvm.inputs import bind_inputs, seeded_inputs
from htvm.model import TensorInfo

TWO = (TensorInfo("image", (1, 2), "int8"), TensorInfo("state", (1, 3), "uint8"))
IMAGE = np.array([[1, -2]], np.int8)
STATE = np.array([[3, 4, 255]], np.uint8)


@pytest.mark.parametrize(
    "given", [[IMAGE, STATE], (IMAGE, STATE), {"state": STATE, "image": IMAGE}]
)
def test_a_list_and_a_dict_mean_the_same(given: object) -> None:
    bound = bind_inputs(TWO, given)  # type: ignore[arg-type]
    assert [array.tolist() for array in bound] == [IMAGE.tolist(), STATE.tolist()]


def test_an_array_alone_is_the_only_input() -> None:
    (bound,) = bind_inputs(TWO[:1], IMAGE)
    assert bound.tolist() == IMAGE.tolist()


def test_views_become_contiguous() -> None:
    (bound,) = bind_inputs(TWO[:1], np.array([[1, 9, -2, 9]], np.int8)[:, ::2])
    assert bound.flags.c_contiguous and bound.tolist() == IMAGE.tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (IMAGE, "1 inputs given, the model has 2"),
        (7, "1 inputs given, the model has 2"),
        ([IMAGE, 7], "a int is not a numpy array; input 'state'"),
        ({"image": IMAGE}, "input 'state' is missing"),
        ({"image": IMAGE, "state": STATE, "more": STATE}, "no input 'more'"),
        ([IMAGE, STATE.astype(np.int8)], "dtype int8 instead of uint8; input 'state'"),
        ([IMAGE[0], STATE], r"shape \[2\] instead of \[1, 2\]; input 'image'"),
    ],
)
def test_anything_else_is_refused(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bind_inputs(TWO, given)  # type: ignore[arg-type]


def test_nan_is_refused_and_infinity_is_not() -> None:
    info = (TensorInfo("image", (1, 3), "float32"),)
    with pytest.raises(InputError, match="1 of 3 elements are NaN.*input 'image'"):
        bind_inputs(info, np.array([[0, np.nan, 1]], np.float32))
    (bound,) = bind_inputs(info, np.array([[0, np.inf, 1]], np.float32))
    assert np.isinf(bound[0, 1])


def test_the_first_missing_input_is_named() -> None:
    for _ in range(3):
        with pytest.raises(InputError, match="input 'image' is missing"):
            bind_inputs(TWO, {})


def test_seeded_inputs_are_the_same_every_time_and_use_the_whole_range() -> None:
    infos = (TensorInfo("a", (64, 64), "int8"), TensorInfo("b", (64, 64), "uint8"))
    first, again, other = seeded_inputs(infos), seeded_inputs(infos), seeded_inputs(infos, seed=1)
    for array, twin, stranger, info in zip(first, again, other, infos, strict=True):
        limits = np.iinfo(info.dtype)
        assert array.dtype == info.dtype
        assert (array.min(), array.max()) == (limits.min, limits.max)
        assert np.array_equal(array, twin) and not np.array_equal(array, stranger)
