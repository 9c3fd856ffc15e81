"""Relax modules that cannot be compiled: what is wrong is named, with its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tvm import relax, tirx
from tvm.relax import op as R

import htvm
from htvm.errors import HtvmError, IntegerFormError, UnsupportedError


def module(shape: tuple[Any, ...], emit: Callable[[Any, Any], Any]) -> Any:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(shape, "int8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            result = bb.emit_output(emit(bb, x))
        bb.emit_func_output(result)
    return bb.finalize()


@pytest.mark.parametrize(
    ("shape", "emit", "error", "said"),
    [
        (
            (1, tirx.Var("n", "int64"), 4),
            lambda bb, x: R.reshape(x, (1, -1)),
            UnsupportedError,
            ("dimension 1 of a tensor is 'n'", "parameter 'x' of function 'main'", "BindSymbolic"),
        ),
        (
            (4, 16),
            lambda bb, x: bb.emit(R.unique(x), name_hint="few"),
            UnsupportedError,
            ("the shape of a tensor is not known", "variable 'few' of function 'main'"),
        ),
        (
            (4, 16),
            lambda bb, x: R.sort(bb.emit(R.reshape(x, (8, 8)))),
            IntegerFormError,
            ("not an operator of the integer form", "variable 'gv' of", "'relax.sort'"),
        ),
    ],
)
def test_what_cannot_become_c_is_named(
    shape: tuple[Any, ...],
    emit: Callable[[Any, Any], Any],
    error: type[HtvmError],
    said: tuple[str, ...],
) -> None:
    with pytest.raises(error) as caught:
        htvm.load(module(shape, emit))
    for words in said:
        assert words in str(caught.value)
