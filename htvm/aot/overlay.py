"""How far apart a kernel's output and an input must be to share bytes.

A kernel that goes through its input in order has read the elements behind it for good.  So its
output may be written over the input, as long as it starts some bytes before: then every write meets
bytes that have been read.  :func:`overlays` finds the fewest such bytes from the loops over flat
buffers, in which the order of all accesses is known.  A kernel that goes backwards may start behind
its input instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx.stmt import AllocBuffer, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, SeqStmt

from htvm.aot.accesses import Unknown, depends_on, value_of
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


@dataclass(frozen=True)
class _Loop:
    """A loop around an access.

    Attributes:
        variable, extent: of the loop.
        stride: groups of iterations in each of its iterations; 0 if all are in one group.
    """

    variable: Any
    extent: int
    stride: int = 0


@dataclass(frozen=True)
class _Access:
    """A load of an input, or a store to the output.

    Attributes:
        parameter: index of the parameter.
        index: of the element.
        loops: around it.
        group: its first group of iterations.
    """

    parameter: int
    index: Any
    loops: tuple[_Loop, ...] = ()
    group: int = 0


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
        groups, accesses = _Walk(buffers).visit(func.body, _STEPS)
        sizes = [bytes_of(buffer) for buffer in buffers]
        spans = {
            number: _spans(accesses, number, groups, sizes[number] // elements_of(buffers[number]))
            for number in {access.parameter for access in accesses}
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


class _Walk:
    """Collects accesses in their order."""

    def __init__(self, buffers: list[Any]) -> None:
        self.buffers = buffers
        self.views: list[tuple[Any, int]] = []

    def visit(self, stmt: Any, groups: int) -> tuple[int, list[_Access]]:
        """Return a statement's number of groups, at most about ``groups``, and its accesses."""
        if isinstance(stmt, SeqStmt):
            total, found = 0, list[_Access]()
            for part in stmt.seq:
                count, accesses = self.visit(part, groups)
                found += [replace(access, group=access.group + total) for access in accesses]
                total += count
            return total, found
        if isinstance(stmt, For):
            return self._loop(stmt, groups)
        if isinstance(stmt, IfThenElse):
            parts = [Evaluate(stmt.condition), stmt.then_case]
            parts += [] if stmt.else_case is None else [stmt.else_case]
            return self.visit(SeqStmt(parts), groups)
        if isinstance(stmt, BufferStore):
            accesses = [*self._loads(stmt.value), *self._loads(stmt.indices[0])]
            number = self._parameter(stmt.buffer)
            if number is not None:
                accesses.append(_Access(number, stmt.indices[0]))
            return 1, accesses
        if isinstance(stmt, Evaluate):
            return 1, list(self._loads(stmt.value))
        if isinstance(stmt, DeclBuffer) and isinstance(stmt.data, tvm.ir.Call):
            for number, buffer in enumerate(self.buffers):
                if len(stmt.data.args) == 1 and stmt.data.args[0].same_as(buffer):
                    self.views.append((stmt.buffer, number))
            return 1, []
        if isinstance(stmt, AllocBuffer):
            return 1, []
        raise Unknown

    def _loop(self, loop: Any, groups: int) -> tuple[int, list[_Access]]:
        extent = int(loop.extent)
        if int(loop.min) != 0:
            raise Unknown
        # A run is one call, in which source and destination must not overlap.
        apart = extent <= groups and RUN not in (loop.annotations or {})
        count, accesses = self.visit(loop.body, groups // extent if apart else 0)
        if apart:
            outer = _Loop(loop.loop_var, extent, count)
            accesses = [replace(a, loops=(outer, *a.loops)) for a in accesses]
            return extent * count, accesses
        outer = _Loop(loop.loop_var, extent)
        together = [
            replace(a, loops=(outer, *(replace(each, stride=0) for each in a.loops)), group=0)
            for a in accesses
        ]
        return 1, together

    def _parameter(self, buffer: Any) -> int | None:
        for view, number in self.views:
            if buffer.same_as(view):
                return number
        for number, parameter in enumerate(self.buffers):
            if buffer.same_as(parameter):
                return number
        return None

    def _loads(self, value: Any) -> Iterator[_Access]:
        loads: list[Any] = []
        calls: list[Any] = []
        tvm_ffi.structural_walk(value, (TensorLoad, loads.append))
        tvm_ffi.structural_walk(value, (tvm.ir.Call, calls.append))
        if any("address_of" in str(getattr(call.op, "name", "")) for call in calls):
            raise Unknown
        for load in loads:
            number = self._parameter(load.source)
            if number is not None:
                yield _Access(number, load.indices[0])


@dataclass(frozen=True)
class _Spans:
    """The bytes that each group of iterations accesses: the first, and the one after the last."""

    first: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]


_FAR = np.int64(1 << 40)


def _spans(accesses: list[_Access], number: int, groups: int, itemsize: int) -> _Spans:
    first, end = np.full(groups, _FAR), np.full(groups, -_FAR)
    for access in accesses:
        if access.parameter != number:
            continue
        index, group = _indices(access)
        np.minimum.at(first, group, index * itemsize)
        np.maximum.at(end, group, (index + 1) * itemsize)
    return _Spans(first, end)


def _indices(access: _Access) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the index of an access in all iterations, and the group of each."""
    loops = [
        loop
        for loop in access.loops
        if loop.stride or depends_on(access.index, {loop.variable}, {})
    ]
    # An index of sums and products only is largest and smallest at the ends of a loop.
    every = _bends(access.index)
    ends = [
        np.arange(loop.extent) if loop.stride or every else np.unique([0, loop.extent - 1])
        for loop in loops
    ]
    if np.prod([len(values) for values in ends], dtype=np.int64) > _ELEMENTS:
        raise Unknown
    grids = np.meshgrid(*ends, indexing="ij", sparse=True)
    values = {loop.variable: grid for loop, grid in zip(loops, grids, strict=True)}
    index = value_of(access.index, values, {})
    group: Any = np.int64(access.group)
    for loop, grid in zip(loops, grids, strict=True):
        group = group + grid * loop.stride
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
