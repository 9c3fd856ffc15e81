"""Reading ``NAME=VALUE``, and limits such as those of reading a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

from byoc_dory.errors import nearest
from byoc_dory.soc.parameters import parse_size
from htvm.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Kind = TypeVar("Kind", bound=DataclassInstance)

Value = TypeVar("Value")


def read_named(
    text: str, convert: Callable[[str], Value], what: str, option: str, example: str
) -> tuple[str, Value]:
    """Return a name and its value, from ``NAME=VALUE``.

    Args:
        text: the text.
        convert: returns the value of its part of the text, or raises `ValueError`.
        what, option, example: what the text should be, where it was given, and such a text, for
            messages.

    Raises:
        InputError: it is not written so.
    """
    name, _, value = text.rpartition("=")
    try:
        if not name:
            raise ValueError
        return name, convert(value)
    except ValueError as error:
        raise InputError(
            f"{text[:60]!r} is no {what}", where=option, hint=f"e.g. {example}"
        ) from error


def read_limits(kind: type[Kind], given: Sequence[str], option: str) -> Kind:
    """Return limits of which some are given, each as ``NAME=VALUE``.

    Args:
        kind: class of the limits, whose fields are whole numbers.
        given: the texts; a value may be written as 67108864, 64M or 64MiB.
        option: name of the option, for messages.

    Raises:
        InputError: there is no such limit, it is given twice, or a value is none.
    """
    known = [field.name for field in fields(kind)]
    found: dict[str, int] = {}
    for text in given:
        name, _, value = text.partition("=")
        number = parse_size(value)
        if name not in known:
            raise InputError(
                f"no limit {name[:60]!r}",
                where=option,
                hint=f"{nearest(name, known)}the limits are {', '.join(known)}",
            )
        if not number:
            raise InputError(
                f"{text[:60]!r} has no positive whole number",
                where=option,
                hint=f"e.g. {name}=64M",
            )
        if found.setdefault(name, number) != number:
            raise InputError(f"two values of {name}", where=option)
    return kind(**found)
