"""Whether cores may run ranges of a loop in parallel, and successive loops without waiting."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from tvm.ir import Var

from htvm.aot.accesses import Access, Indices, depends_on, elements

_NOBODY, _SEVERAL = -1, -2

Owners: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Footprint:
    """The elements that each iteration of a loop nest reads and writes, in the buffers it writes.

    Attributes:
        count: number of iterations.
        owners: for each buffer written, the number of the iteration that writes each element; -1 if
            none does, -2 if several do.
        reads: for each buffer read, element and iteration of every load.
    """

    count: int
    owners: dict[Var, Owners] = field(default_factory=dict)
    reads: dict[Var, list[tuple[Indices, Indices]]] = field(default_factory=dict)


def footprint(
    accesses: Collection[Access], outer: int, written: Collection[Var], sizes: dict[Var, int]
) -> Footprint:
    """Return the footprint of a loop nest on the buffers ``written``, of ``sizes`` elements.

    Args:
        accesses: all accesses of the nest.
        outer: number of its loops that count iterations.
        written: buffers to consider, because something writes them.
        sizes: number of elements of each.

    Raises:
        Unknown: an index cannot be evaluated.
    """
    first = next(iter(accesses), None)
    count = math.prod(extent for _, extent in first.loops[:outer]) if first is not None else 0
    found = Footprint(count)
    stores: dict[Var, list[tuple[Indices, Indices]]] = {}
    for access in accesses:
        if access.buffer not in written:
            continue
        index, happens = elements(access, outer)
        rows = np.broadcast_to(np.arange(len(index))[:, None], index.shape)
        pairs = (index[happens], rows[happens])
        (stores if access.store else found.reads).setdefault(access.buffer, []).append(pairs)
    for buffer, written_by in stores.items():
        owners = np.full(sizes[buffer], _NOBODY, np.int64)
        for index, rows in written_by:
            owners[index] = rows
        several = [index[owners[index] != rows] for index, rows in written_by]
        for index in several:
            owners[index] = _SEVERAL
        found.owners[buffer] = owners
    return found


def independent(nest: Footprint, repeatable: bool) -> bool:
    """Whether no iteration reads or writes elements that another one writes.

    Args:
        nest: footprint of the iterations.
        repeatable: whether several iterations that write an element write the same value.
    """
    for buffer, owners in nest.owners.items():
        several = bool((owners == _SEVERAL).any())
        if several and not (repeatable and buffer not in nest.reads):
            return False
        for index, rows in nest.reads.get(buffer, ()):
            others = owners[index]
            if ((others != _NOBODY) & (others != rows)).any():
                return False
    return True


def meet(first: Footprint, second: Footprint) -> bool:
    """Whether a core may touch in ``second`` an element that another core touches in ``first``.

    At least one of them must be a write.  Loops with equal numbers of iterations are shared alike.
    """
    alike = first.count == second.count
    return _touch(first, second, alike) or _touch(second, first, alike)


def _touch(writer: Footprint, other: Footprint, alike: bool) -> bool:
    for buffer, owners in writer.owners.items():
        touched = list(other.reads.get(buffer, ()))
        if buffer in other.owners:
            own = other.owners[buffer]
            index = np.flatnonzero(own != _NOBODY)
            touched.append((index, own[index]))
        for index, rows in touched:
            others = owners[index]
            if ((others != _NOBODY) & ~(alike & (others == rows) & (others != _SEVERAL))).any():
                return True
    return False


def repeats(accesses: Collection[Access], buffer: Var, outer: int) -> bool:
    """Whether every iteration does the same to a buffer, element for element.

    Then no iteration can read a value left by the previous one: in the first iteration there would
    be none.  So each core may have its own copy of the buffer.
    """
    for access in accesses:
        if access.buffer.same_as(buffer):
            split = {var for var, _ in access.loops[:outer]}
            expressions = (access.index, *access.guards)
            if any(depends_on(expr, split, access.known) for expr in expressions):
                return False
    return True
