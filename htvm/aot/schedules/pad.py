"""Padding as a few runs of bytes: borders are filled, rows are copied.

Every run is its own loop over consecutive addresses, which C compilers turn into ``memset`` and
``memcpy``, or a call (`htvm.aot.calls`).  No element is written twice.  Backwards, the last run
comes first: then a row moves to higher addresses before the rows that it is written over are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tvm import sym, tirx
from tvm.ir import TensorLoad
from tvm.tirx.stmt import BufferStore, For, ForKind

from htvm.aot.calls import RUN, RUNS, SHORT_RUN
from htvm.aot.loops import sequence
from htvm.aot.schedules.blocks import Scheduled, blocks_of, start

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc


def schedule_pad(func: PrimFunc, *, runs: bool = False, backward: bool = False) -> Scheduled | None:
    """Schedule a padding of any axes with one value; ``None`` for any other function.

    Args:
        func: any function.
        runs: whether each run of int8 is a call.
        backward: whether the last element is written first.
    """
    source, target = func.params
    inner, outer = ([int(size) for size in buffer.ty.shape] for buffer in (source, target))
    sch = start(func)
    blocks = blocks_of(sch)
    if len(blocks) != 1:
        return None
    read = _read_padding(sch.get(blocks[0]).body)
    if read is None or len(read[0]) != len(inner):
        return None
    before, value = read
    writer = _Writer(inner, outer, before, value, runs, backward)
    body = sequence(writer.axis(0, 0, 0))
    rewritten = tirx.PrimFunc([writer.source, writer.target], body, attrs=func.attrs)
    order = ", the last one first: the output may lie over the input" if backward else ""
    return Scheduled(rewritten, f"borders filled, rows copied{order}")


def _read_padding(store: Any) -> tuple[list[int], Any] | None:
    """Return (elements before the input on each axis, value of the border)."""
    value = getattr(store, "value", None)
    if value is None or getattr(getattr(value, "op", None), "name", "") != "prim.if_then_else":
        return None
    _, load, border = value.args
    if not isinstance(load, TensorLoad) or not isinstance(border, tirx.IntImm):
        return None
    before = []
    for index, variable in zip(load.indices, store.indices, strict=True):
        offset = sym.Analyzer().simplify(variable - index)
        if not isinstance(offset, tirx.IntImm) or int(offset.value) < 0:
            return None
        before.append(int(offset.value))
    return before, border


class _Writer:
    """Writes the padding of one axis after the other, over flat buffers."""

    def __init__(
        self,
        inner: list[int],
        outer: list[int],
        before: list[int],
        value: Any,
        runs: bool,
        backward: bool,
    ) -> None:
        dtype = str(value.ty.dtype)
        self.runs, self.backward = runs and dtype == "int8", backward
        self.inner, self.outer, self.before, self.value = inner, outer, before, value
        self.source = tirx.decl_buffer((math.prod(inner),), dtype, name="source")
        self.target = tirx.decl_buffer((math.prod(outer),), dtype, name="target")
        padded = [axis for axis, size in enumerate(inner) if size != outer[axis]]
        self.last = max(padded, default=0)

    def axis(self, axis: int, source: Any, target: Any) -> list[Any]:
        """Return statements that write axes ``axis`` and following, from these positions."""
        step_in, step_out = math.prod(self.inner[axis + 1 :]), math.prod(self.outer[axis + 1 :])
        count, before = self.inner[axis], self.before[axis]
        after = self.outer[axis] - count - before
        first = target + before * step_out
        if axis == self.last:
            middle = self.copy(count * step_in, source, first)
        else:
            number = tirx.Var("nyxc"[axis % 4], "int32")
            at = count - 1 - number if self.backward else number
            place = (source + at * step_in, first + at * step_out)
            body = sequence(self.axis(axis + 1, *place))
            notes = {RUNS: 1} if self._short(axis + 1) else {}
            middle = [For(number, 0, count, ForKind.SERIAL, body, annotations=notes)]
        head = self.fill(before * step_out, target)
        tail = self.fill(after * step_out, first + count * step_out)
        return [*tail, *middle, *head] if self.backward else [*head, *middle, *tail]

    def _short(self, axis: int) -> bool:
        """Whether the runs along an axis are short, and each is followed by a border."""
        copied = math.prod(self.inner[axis:])
        forward = self.runs and not self.backward
        return forward and axis == self.last and not self.before[axis] and copied <= SHORT_RUN

    def fill(self, count: int, target: Any) -> list[Any]:
        """Write ``count`` bytes of the border's value."""
        return self._loop(count, lambda i: BufferStore(self.target, self.value, [target + i]))

    def copy(self, count: int, source: Any, target: Any) -> list[Any]:
        """Copy ``count`` bytes of the input."""
        return self._loop(
            count, lambda i: BufferStore(self.target, self.source[source + i], [target + i])
        )

    def _loop(self, count: int, statement: Any) -> list[Any]:
        if count == 0:
            return []
        number = tirx.Var("i", "int32")
        notes = {RUN: 1} if self.runs else {}
        return [For(number, 0, count, ForKind.SERIAL, statement(number), annotations=notes)]
