"""Tables of handlers are checked when they are made, by what handlers say they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from byoc_dory.errors import IntegerFormError
from htvm.frontend.onnx.dialect import READERS
from htvm.frontend.onnx.tflite_qdq import HANDLERS as RELAX
from htvm.frontend.operators import Activation, Applied
from htvm.frontend.registration import registered
from htvm.frontend.tflite.handlers import HANDLERS as TFLITE

if TYPE_CHECKING:
    from decimal import Decimal


def one(reader: object) -> Applied:
    raise NotImplementedError


def several(reader: object) -> Sequence[Applied] | list[Applied]:
    raise NotImplementedError


def with_option(reader: object, *, keep: bool) -> Sequence[Applied]:
    raise NotImplementedError


def no_operator(reader: object) -> Sequence[Activation]:
    raise NotImplementedError


def closure(reader: object) -> Callable[[object], Applied]:
    raise NotImplementedError


def anything(reader: object) -> Any:
    raise NotImplementedError


def unknown(reader: object) -> Decimal:
    raise NotImplementedError


def test_handlers_that_return_operators_are_registered() -> None:
    table = {"ONE": one, "SEVERAL": several, "KEEP": partial(with_option, keep=True)}
    assert registered("a source", table, Applied) == table


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (no_operator, "it returns Activation; .*: Applied"),
        (partial(no_operator), "it returns Activation"),
        (closure, "it returns Callable"),
        (anything, "it returns Any"),
        (unknown, "not known at run time: name 'Decimal'.*outside TYPE_CHECKING"),
        (lambda reader: None, "does not say what it returns"),
        (5, "does not say what it returns"),
    ],
)
def test_other_handlers_are_refused_when_they_are_registered(handler: Any, message: str) -> None:
    with pytest.raises(IntegerFormError, match=message) as error:
        registered("a source", {"ONE": one, "ODD": handler}, Applied)
    assert error.value.where == "handler of ODD (a source)"


TABLES = {
    "tflite": TFLITE,
    "relax": RELAX,
    **{name: import_module(entry.module).HANDLERS for name, entry in READERS.items()},
}


@pytest.mark.parametrize("name", TABLES)
def test_every_frontend_has_a_checked_table(name: str) -> None:
    assert isinstance(TABLES[name], MappingProxyType) and TABLES[name]
