"""Schedules for all other functions: element-wise operators, pools, softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.s_tir.schedule import ScheduleError

from htvm.aot.schedules.blocks import (
    Scheduled,
    blocks_of,
    extent,
    inline_all,
    is_reduction,
    loops_of,
    name_loop,
    start,
)

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.tirx import PrimFunc

__all__ = ["schedule_any"]


def schedule_any(func: PrimFunc, *, unroll: int = 1) -> Scheduled:
    """Inline element-wise blocks, and compute each sum where its value is used.

    Args:
        func: any function.
        unroll: iterations of an element-wise operator's innermost loop to unroll, if they divide
            it.
    """
    sch = start(func)
    inline_all(sch)
    for block in blocks_of(sch)[:-1]:
        if is_reduction(sch, block):
            _compute_where_used(sch, block)
    for block in blocks_of(sch):
        if is_reduction(sch, block):
            sch.decompose_reduction(block, _first_reduction_loop(sch, block))
    (first, *others) = blocks_of(sch)
    if unroll > 1 and not others and not is_reduction(sch, first) and loops_of(sch, first):
        inner = loops_of(sch, first)[-1]
        name_loop(sch, inner, "i", unroll if extent(sch, inner) % unroll == 0 else 1)
    return Scheduled(sch.mod["main"], "element-wise operators inlined")


def _compute_where_used(sch: s_tir.Schedule, block: Any) -> None:
    """Move a sum into the loops of its only consumer, if each sum is used only once there."""
    consumers = sch.get_consumers(block)
    if len(consumers) != 1 or is_reduction(sch, consumers[0]):
        return
    spatial = [axis for axis in sch.get(block).iter_vars if int(axis.iter_type) != 2]
    loops = loops_of(sch, consumers[0])
    if len(loops) != len(spatial):
        return
    try:
        sch.compute_at(block, loops[-1], preserve_unit_loops=True)
    except ScheduleError:
        # The consumer reads more than one sum per iteration, so it stays in place.
        return


def _first_reduction_loop(sch: s_tir.Schedule, block: Any) -> Any:
    """Return the outermost loop of a block that runs over a reduction axis."""
    node = sch.get(block)
    spatial = sum(int(axis.iter_type) != 2 for axis in node.iter_vars)
    loops = loops_of(sch, block)
    return loops[len(loops) - (len(node.iter_vars) - spatial)]
