"""What a file may ask of the library while it is read, and a network of the stages after reading.

A file of a few hundred bytes can name a result of gigabytes, or one part of itself thousands of
times.  What reading takes is therefore counted before it is done, and bounded by the size of the
file, or by what `Limits` allows every file.

Stages after reading have no time limits, because a build must not depend on the speed of a machine.
Instead each is linear in what is bounded here, or counts its own steps (solvers, planners).  The
bounds are far above anything that runs on a 32-bit core: ResNet-50 has 2^32 multiply-accumulates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import InputError, ModelError, UnsupportedError
from htvm.public import public

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from byoc_dory.soc.base import Target
    from htvm.frontend.operators import Activation, Applied
    from patterns.reading.node import Node

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


MOST_BYTES = 2**32
"""Bytes of all tensors that one operator reads and writes: what 32-bit addresses reach."""

MOST_MACS = 2**36
"""Multiply-accumulates of a network: about a minute of one core of a host."""

MOST_OPERATORS = 10_000
"""Operators of a network."""

MOST_OPERANDS = 2 * MOST_OPERATORS
"""Tensors that the operators of a network read, together."""

MOST_OFFERED = 2_000
"""Operators of a network that accelerators may take layers of: TVM groups those by sets of all that
is before each operator, which take memory with the square of their number (7 GB for this many)."""


def check_sizes(operators: Sequence[tuple[Applied, Activation]]) -> None:
    """Check operators and their results before anything of their size is created.

    Raises:
        UnsupportedError: there are too many operators, or they read too many tensors, or one has
            tensors that 32-bit addresses cannot reach.
        ModelError: a tensor has no elements.
    """
    if len(operators) > MOST_OPERATORS:
        raise UnsupportedError(
            f"{len(operators):,} operators, the first beyond {MOST_OPERATORS:,} is this one",
            where=operators[MOST_OPERATORS][0].where,
            hint="export a smaller network, or parts of it",
        )
    operands = 0
    for operator, result in operators:
        operands += len(operator.inputs)
        if operands > MOST_OPERANDS:
            raise UnsupportedError(
                f"the operators up to this one read more than {MOST_OPERANDS:,} tensors",
                where=operator.where,
                hint="export a smaller network, or parts of it",
            )
        size = 0
        for tensor in (*operator.inputs, result):
            elements = math.prod(tensor.shape)
            size += elements * np.dtype(tensor.dtype).itemsize
            if elements < 1:
                raise ModelError(
                    f"a tensor of shape {list(tensor.shape)}, which is empty",
                    where=operator.where,
                    hint="check the shapes in the file",
                )
        if size > MOST_BYTES:
            raise UnsupportedError(
                f"tensors of {size:,} B together",
                where=operator.where,
                hint=f"32-bit addresses reach {MOST_BYTES:,} B; check the shapes in the file",
            )


def check_offered(operators: Collection[str], target: Target) -> None:
    """Check how many operators a network has for a target with accelerators.

    Raises:
        UnsupportedError: they are more than `MOST_OFFERED`.
    """
    if target.accelerators and len(operators) > MOST_OFFERED:
        raise UnsupportedError(
            f"{len(operators):,} operators; targets with accelerators take {MOST_OFFERED:,}",
            where=f"target '{target.name}'",
            hint=f"build parts of it, or all of it for '{target.soc.name}.cpu'",
        )


def check_work(nodes: Sequence[Node]) -> None:
    """Check how many multiply-accumulates the layers of a network take.

    Raises:
        UnsupportedError: they are too many; the message names the layer with most.
    """
    macs = {node.name: node.layer.macs for node in nodes if node.layer is not None}
    total = sum(macs.values())
    if total > MOST_MACS:
        largest = max(macs, key=lambda name: macs[name])
        raise UnsupportedError(
            f"{total:,} multiply-accumulates, {macs[largest]:,} of them here",
            where=f"operator '{largest}'",
            hint=f"at most {MOST_MACS:,}: use a smaller input or fewer channels",
        )
