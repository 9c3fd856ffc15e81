"""Schedules for all other functions: element-wise operators, pools, softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir.schedule import ScheduleError

from htvm.aot.calls import POOL, START
from htvm.aot.lanes import FOUR
from htvm.aot.schedules.blocks import (
    Scheduled,
    anchor,
    blocks_of,
    extent,
    inline_all,
    is_reduction,
    lanes_over,
    loops_of,
    name_loop,
    start,
)
from htvm.aot.schedules.tiles import overlap_tiles

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc


_POOLED = 1 << 8
"""Pixels of a window at most: the sum of so many int8 has 16 bits."""


def schedule_any(func: PrimFunc, *, unroll: int = 1, lanes: int = 0, pools: int = 0) -> Scheduled:
    """Inline element-wise blocks, and compute each sum where its value is used.

    Args:
        func: any function.
        unroll: iterations of an element-wise operator's innermost loop to unroll, if they divide
            it.
        lanes: how many elements such a loop computes at once (`htvm.aot.lanes`); 0: one.
        pools: channels of a pool's window whose sums the core adds at once; 0: one.
    """
    sch = start(func)
    inline_all(sch)
    if pools and (pool := _pool(sch, lanes, pools)) is not None:
        return pool
    for block in reversed(blocks_of(sch)[:-1]):
        if is_reduction(sch, block):
            _compute_where_used(sch, block)
    for block in blocks_of(sch):
        if is_reduction(sch, block):
            sch.decompose_reduction(block, _first_reduction_loop(sch, block))
    (first, *others) = blocks_of(sch)
    elements = not others and not is_reduction(sch, first) and bool(loops_of(sch, first))
    if elements and lanes:
        try:
            return _in_lanes(sch, first, lanes)
        except ScheduleError:
            # Its loops can be neither made one nor split: they stay as they are.
            return schedule_any(func, unroll=unroll)
    if elements and unroll > 1:
        inner = loops_of(sch, first)[-1]
        name_loop(sch, inner, "i", unroll if extent(sch, inner) % unroll == 0 else 1)
    return Scheduled(sch.mod["main"], "element-wise operators inlined", plain=True)


def _pool(sch: s_tir.Schedule, lanes: int, channels: int) -> Scheduled | None:
    """Sum windows of int8 with channels last, all channels of a pixel at once; ``None`` if others.

    At most `_POOLED` pixels.
    """
    blocks = anchor(sch, 6, 4)
    if blocks is None:
        return None
    sums, out = blocks
    if not sch.get(out).reads:  # its limits are one value
        return None
    *_, ry, rx = loops_of(sch, sums)
    _, _, x, c = loops_of(sch, out)
    total = sch.get(sums).body.value
    source = sch.get(sums).reads[0].source
    added = isinstance(total, tirx.Add) and isinstance(getattr(total.b, "value", None), TensorLoad)
    if not added or str(source.ty.dtype) != "int8" or extent(sch, c) < 4:
        return None
    if extent(sch, ry) * extent(sch, rx) > _POOLED:
        return None
    *_, last = total.b.value.indices
    if not last.same_as(sch.get(sums).iter_vars[3].var):
        return None
    sch.compute_at(sums, x, preserve_unit_loops=True)
    first = loops_of(sch, sums)[-6]
    zero = sch.decompose_reduction(sums, first)
    sch.annotate(first, POOL, 1)
    sch.annotate(loops_of(sch, zero)[-4], START, 1)
    if lanes:
        lanes_over(sch, lanes, c)
    return Scheduled(overlap_tiles(sch.mod["main"]), f"windows summed {channels} channels at once")


def _in_lanes(sch: s_tir.Schedule, block: Any, lanes: int) -> Scheduled:
    """Compute several elements at once, of one long run if each has its operands' place."""
    store, loads = sch.get(block).body, list[Any]()
    tvm_ffi.structural_walk(store, (TensorLoad, loads.append))
    same = [
        all(isinstance(index, tirx.IntImm) for index in load.indices)
        or tvm_ffi.structural_equal(load.indices, store.indices)
        for load in loads
    ]
    loops = loops_of(sch, block)
    lanes_over(sch, lanes, sch.fuse(*loops) if all(same) else loops[-1])
    number = "four" if lanes == FOUR else f"up to {lanes}"
    note = f"element-wise operators inlined, {number} at once"
    return Scheduled(overlap_tiles(sch.mod["main"]), note)


def _compute_where_used(sch: s_tir.Schedule, block: Any) -> None:
    """Move a sum into the loops of its only consumer, if each sum is used only once there.

    Several sums that one sum consists of are computed before it, so that they need little space.
    """
    consumers = sch.get_consumers(block)
    if len(consumers) != 1:
        return
    (consumer,), several = consumers, _spatial(sch, block)
    loops = loops_of(sch, consumer)[: _spatial(sch, consumer)]
    partial = is_reduction(sch, consumer)
    if not loops or (several <= len(loops) if partial else several != len(loops)):
        return
    try:
        sch.compute_at(block, loops[-1], preserve_unit_loops=True)
    except ScheduleError:
        # The consumer reads more than one sum per iteration, so it stays in place.
        return


def _spatial(sch: s_tir.Schedule, block: Any) -> int:
    """Return the number of a block's axes that it does not reduce."""
    return sum(int(axis.iter_type) != 2 for axis in sch.get(block).iter_vars)


def _first_reduction_loop(sch: s_tir.Schedule, block: Any) -> Any:
    """Return the outermost loop of a block that runs over a reduction axis."""
    loops = loops_of(sch, block)
    return loops[len(loops) - (len(sch.get(block).iter_vars) - _spatial(sch, block))]
