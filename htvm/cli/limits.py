"""Reading ``NAME=VALUE`` of limits, such as those of reading a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

from byoc_dory.nearest import nearest
from byoc_dory.soc.parameters import parse_size
from htvm.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Kind = TypeVar("Kind", bound=DataclassInstance)

__all__ = ["read_limits"]


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
