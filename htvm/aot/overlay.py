"""How far apart a kernel's output and an input must be to share bytes.

A kernel that goes through its input in order has read the elements behind it for good.  So its
output may be written over the input, as long as it starts some bytes before: then every write meets
bytes that have been read.  :func:`overlays` finds the fewest such bytes from the loops over flat
buffers, in which the order of all accesses is known.  A kernel that goes backwards may start behind
its input instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm_ffi
from tvm import tirx
from tvm.tirx.stmt import For

from htvm.aot.accesses import Access, Unknown, accesses_of, depends_on, value_of
from htvm.aot.calls import RUN
from htvm.aot.loops import bytes_of, elements_of

if TYPE_CHECKING:
    import numpy.typing as npt
    from tvm.tirx import PrimFunc

_STEPS = 1 << 13
"""Groups of iterations told apart at most; a group counts as reading everything after writing."""

_ELEMENTS = 1 << 24
"""Indices of one access that are computed at most."""


@dataclass(frozen=True)
class Overlay:
    """An input over which a kernel may write its output.

    Attributes:
        parameter: index of the input among the kernel's parameters.
        below: bytes that the output must start before the input at least.
        above: or that it must start after the input at least.
    """

    parameter: int
    below: int
    above: int

    def said(self, source: str, output: str) -> str:
        """The condition as a line of the kernel's comment, given the names of both pointers."""
        return (
            f"{output} may overlap {source} if it starts at least {self.below} B before it "
            f"or {self.above} B after it"
        )


def overlays(func: PrimFunc, inputs: int) -> tuple[Overlay, ...]:
    """Return the inputs over which a function with one output may write it.

    Args:
        func: loops over flat buffers, whose last parameter is the output.
        inputs: number of its first parameters that are inputs or constants.
    """
    buffers = list(func.params)
    if len(buffers) != inputs + 1:
        return ()
    try:
        accesses = [each for each in accesses_of(func.body) if each.buffer in buffers]
        groups, timed = _in_order(accesses, _runs(func.body))
        sizes = [bytes_of(buffer) for buffer in buffers]
        spans = {
            buffers.index(buffer): _spans(
                [each for each in timed if each.access.buffer.same_as(buffer)],
                groups,
                bytes_of(buffer) // elements_of(buffer),
            )
            for buffer in {access.buffer for access in accesses}
        }
    except Unknown:
        return ()
    if inputs not in spans:
        return ()
    found = []
    for number in sorted(spans.keys() - {inputs}):
        overlay = _distances(number, spans[inputs], spans[number])
        if overlay.below < sizes[inputs] or overlay.above < sizes[number]:
            found.append(overlay)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _Timed:
    """An access and when it happens.

    Attributes:
        access: the access.
        first: its first group of iterations.
        strides: groups in each iteration of the loops whose iterations are told apart.
    """

    access: Access
    first: int
    strides: Mapping[Any, int]


def _runs(body: Any) -> list[Any]:
    """Return the variables of runs: one call, in which operands must not overlap."""
    found: list[Any] = []

    def visit(loop: Any) -> None:
        if RUN in (loop.annotations or {}):
            found.append(loop.loop_var)

    tvm_ffi.structural_walk(body, (For, visit))
    return found


def _in_order(
    accesses: Sequence[Access], runs: Sequence[Any], depth: int = 0, most: int = _STEPS
) -> tuple[int, list[_Timed]]:
    """Return the number of groups, at most about ``most`` for each statement, and the accesses.

    Args:
        accesses: in the order of the text.
        runs: variables of loops whose iterations are not told apart.
        depth: number of loops around all of them.
        most: groups of iterations of a statement.
    """
    total, found = 0, list[_Timed]()
    for _, same in itertools.groupby(accesses, lambda access: access.path[depth]):
        part = list(same)
        if len(part[0].path) == depth + 1:
            variable, extent = None, 1
        else:
            variable, extent = part[0].loops[depth]
        if variable is None or extent > most or variable in runs:
            found += [_Timed(access, total, {}) for access in part]
            total += 1
            continue
        count, inner = _in_order(part, runs, depth + 1, most // extent)
        found += [
            _Timed(each.access, total + each.first, {**each.strides, variable: count})
            for each in inner
        ]
        total += extent * count
    return total, found


@dataclass(frozen=True)
class _Spans:
    """The bytes that each group of iterations accesses: the first, and the one after the last."""

    first: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]


_FAR = np.int64(1 << 40)


def _spans(accesses: Sequence[_Timed], groups: int, itemsize: int) -> _Spans:
    first, end = np.full(groups, _FAR), np.full(groups, -_FAR)
    for access in accesses:
        index, group = _indices(access)
        np.minimum.at(first, group, index * itemsize)
        np.maximum.at(end, group, (index + 1) * itemsize)
    return _Spans(first, end)


def _indices(timed: _Timed) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the index of an access in all iterations, and the group of each."""
    place, strides = timed.access.index, timed.strides
    loops = [
        (variable, extent)
        for variable, extent in timed.access.loops
        if variable in strides or depends_on(place, {variable}, timed.access.known)
    ]
    # An index of sums and products only is largest and smallest at the ends of a loop.
    every = _bends(place)
    ends = [
        np.arange(extent) if variable in strides or every else np.unique([0, extent - 1])
        for variable, extent in loops
    ]
    if np.prod([len(values) for values in ends], dtype=np.int64) > _ELEMENTS:
        raise Unknown
    grids = np.meshgrid(*ends, indexing="ij", sparse=True)
    values = {variable: grid for (variable, _), grid in zip(loops, grids, strict=True)}
    index = value_of(place, values, timed.access.known)
    group: Any = np.int64(timed.first)
    for variable, grid in values.items():
        group = group + grid * strides.get(variable, 0)
    index, group = np.broadcast_arrays(index, group)
    return index.reshape(-1), group.reshape(-1)


def _bends(index: Any) -> bool:
    """Whether an index has more than sums and products."""
    found: list[Any] = []
    kinds = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod, tirx.Min, tirx.Max)
    tvm_ffi.structural_walk(index, (kinds, found.append))
    return bool(found)


def _distances(number: int, writes: _Spans, reads: _Spans) -> Overlay:
    """Return the distances at which no group writes what it or a later one reads."""
    written_to = np.maximum.accumulate(writes.end)
    written_from = np.minimum.accumulate(writes.first)
    read_from = np.minimum.accumulate(reads.first[::-1])[::-1]
    read_to = np.maximum.accumulate(reads.end[::-1])[::-1]
    below = int(np.max(written_to - read_from))
    above = int(np.max(read_to - written_from))
    return Overlay(number, max(0, below), max(0, above))
