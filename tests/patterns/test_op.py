"""Classes of operators: what is checked when they are defined, and that they come back equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array
from patterns.fields import decode, encode
from patterns.op import Op, operator
from patterns.ops import classes
from patterns.ops.convert import TableLookup
from patterns.relax_op import ComposedOp


def test_every_class_is_found_and_named() -> None:
    found = classes()
    assert TableLookup in found
    assert all(cls.kind and cls.__doc__ for cls in found)


def test_a_class_that_is_not_frozen_is_refused() -> None:
    class Plain(Op):
        kind = "plain"

    with pytest.raises(IntegerFormError, match="not a frozen dataclass"):
        operator(Plain)

    with pytest.raises(IntegerFormError, match="not a frozen dataclass"):
        operator(dict)  # type: ignore[type-var]


def test_a_class_that_nobody_has_checked_is_refused() -> None:
    """A subclass of a checked one, too: its fields may be others."""

    @dataclass(frozen=True, eq=False)
    class Unchecked(TableLookup):
        kind = "unchecked"

    Unchecked.__module__ = "patterns.ops.unchecked"
    with pytest.raises(IntegerFormError, match=r"checked its fields; .*unchecked\.Unchecked'.*@op"):
        classes.__wrapped__()
    Unchecked.__module__ = __name__  # it may live on, and is not one of the house's
    assert Unchecked not in classes.__wrapped__()


def test_a_class_without_a_kind_is_refused() -> None:
    with pytest.raises(IntegerFormError, match="no kind"):

        @operator
        @dataclass(frozen=True, eq=False)
        class Nameless(Op):
            number: int


@pytest.mark.parametrize("kind", [Mapping[str, int], list[int], Any, set[str]])
def test_fields_that_no_module_can_carry_are_refused(kind: Any) -> None:
    class Odd(Op):
        kind = "odd"

    Odd.__annotations__ = {"field": kind}
    made = dataclass(frozen=True, eq=False)(Odd)
    with pytest.raises(IntegerFormError, match="field 'field'"):
        operator(made)


def test_a_field_that_is_computed_is_refused() -> None:
    with pytest.raises(IntegerFormError, match=r"field 'total' is no argument.*in a property"):

        @operator
        @dataclass(frozen=True, eq=False)
        class Derived(TableLookup):
            total: int = field(default=0, init=False)


def test_a_class_that_cannot_be_written_and_read_is_refused() -> None:
    with pytest.raises(IntegerFormError, match=r"define matches, read; .*'Half'"):

        @operator
        @dataclass(frozen=True, eq=False)
        class Half(ComposedOp):
            kind = "half"


@dataclass(frozen=True, eq=False)
class Every(Op):
    """One field of each type."""

    number: int
    flag: bool
    real: float
    text: str
    pairs: tuple[tuple[int, int], ...]
    array: Array
    table: TableLookup | None = None


def test_fields_come_back_equal() -> None:
    inner = TableLookup(np.arange(256).astype(np.int8), zero_point=-7)
    op = Every(-3, True, 0.1, "text: {}", ((1, 2), (3, 4)), np.float32([[0.1, np.pi]]), inner)
    again = decode(Every, encode(op, {}), ())
    assert again == op and hash(again) == hash(op)
    assert [type(getattr(again, name)) for name in ("number", "flag", "real")] == [int, bool, float]
    assert again.array.dtype == np.float32
    assert again != Every(-3, True, 0.1, "other", op.pairs, op.array, inner)


def test_an_array_that_is_an_argument_must_be_a_field() -> None:
    with pytest.raises(IntegerFormError, match="no arrays nobody"):
        encode(TableLookup(np.zeros(256, np.int8)), {"nobody": 0})


@pytest.mark.parametrize("text", ["", "[]", '{"unknown": 1}', '{"table": {"argument": 9}}'])
def test_fields_of_another_class_are_refused(text: str) -> None:
    with pytest.raises(IntegerFormError, match="cannot be read"):
        decode(TableLookup, text, ())
