"""What a file may ask of the library while it is read.

A file of a few hundred bytes can name a result of gigabytes, or one part of itself thousands of
times.  What reading takes is therefore counted before it is done, and bounded by the size of the
file, or by what `Limits` allows every file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from byoc_dory.errors import InputError, UnsupportedError
from htvm.public import public

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_PER_PLACE = 8  # elements of a constant that take as much memory as one integer of Python

_SAID = {
    "decoded_bytes": "its parts, counted as often as they are named, take {:,} B decoded",
    "folded_elements": "the constants computed from its constants, and those of its operators, "
    "have {:,} elements",
    "folded_operations": "computing its constants takes {:,} operations",
}


@public
@dataclass(frozen=True)
class Limits:
    """What every file may ask of the library while it is read, however small it is.

    Attributes:
        decoded_bytes: of tables, lists, texts and constants, as often as they are named; four times
            the file's size if that is more.
        folded_elements: of all constants that are computed from other constants, and of those that
            operators have, as often as they have them; eight times those that the file holds if
            that is more.
        folded_operations: elements of constants that are read to compute others, and
            multiply-accumulates of their products; sixteen times the elements that the file holds
            if that is more.

    Raises:
        InputError: a limit is no positive integer.
    """

    decoded_bytes: int = 2**24
    folded_elements: int = 2**25
    folded_operations: int = 2**30

    def __post_init__(self) -> None:
        check_limits(self)


def check_limits(limits: DataclassInstance) -> None:
    """Check the fields of a class of limits.

    Raises:
        InputError: a limit is no positive integer.
    """
    for each in fields(limits):
        limit = getattr(limits, each.name)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise InputError(
                f"{limit!r} is no limit of {each.name}",
                where="option 'limits'",
                hint="give a positive integer",
            )


@dataclass
class Budget:
    """Counts what a file takes while it is read.

    Attributes:
        limits: what every file may take.
        source: name of the file, for messages.
        granted: what this file may take because of its size, if that is more; by name of a limit.
    """

    limits: Limits
    source: str
    granted: dict[str, int] = field(default_factory=dict)
    _spent: Counter[str] = field(default_factory=Counter)

    def grant(self, held: Iterable[int]) -> None:
        """Allow what becomes of constants that the file holds, given their elements."""
        elements = sum(held)
        self.granted |= {"folded_elements": 8 * elements, "folded_operations": 16 * elements}

    def spend_places(self, count: int, where: str) -> None:
        """Count integers that become a list of Python, which raises what `spend` does."""
        self.spend("folded_elements", _PER_PLACE * count, where)

    def spend(self, limit: str, amount: int, where: str = "") -> None:
        """Count an amount that is about to be taken, at ``where`` or somewhere in the file.

        Raises:
            UnsupportedError: all in all, that is more than the limit of this name.
        """
        self._spent[limit] += amount
        allowed = max(getattr(self.limits, limit), self.granted.get(limit, 0))
        if self._spent[limit] > allowed:
            raise UnsupportedError(
                f"{_SAID[limit].format(self._spent[limit])} or more, for a limit of {allowed:,}",
                where=where or self.source,
                hint=f"if you trust the file: limits=htvm.Limits({limit}=...), "
                f"or --limit {limit}=...",
            )
