"""Schedules of CPU kernels: the loops of each fused PrimFunc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from htvm.aot.schedules.blocks import Constants, Scheduled, has_blocks
from htvm.aot.schedules.depthwise import schedule_depthwise
from htvm.aot.schedules.generic import schedule_any
from htvm.aot.schedules.pad import schedule_pad
from htvm.aot.schedules.products import schedule_products
from htvm.aot.schedules.tiles import start_with_bias

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from htvm.aot.intrinsics import CoreKernels

__all__ = ["Constants", "Scheduled", "has_blocks", "schedule"]


def schedule(
    func: PrimFunc,
    operators: Sequence[str],
    *,
    core: CoreKernels,
    constants: Constants,
    runs: bool = False,
    backward: bool = False,
    room: int | None = None,
    grows: bool = True,
) -> Scheduled:
    """Schedule a fused PrimFunc.

    Args:
        func: function with the blocks that legalization and fusion made.
        operators: names of its operators; see `htvm.aot.fuse.FusedGroup`.
        core: the rows of the table for it (`htvm.aot.intrinsics`).
        constants: values of the parameters that are constants, whose layout can be changed.
        runs: whether what paddings copy and fill are calls.
        backward: whether paddings begin with the last element, so that their output may take the
            bytes of their input.
        room: bytes of the largest tensor, which a kernel's larger one and what it needs besides
            should not exceed, so that the arena does not grow; ``None``: any.
        grows: whether what is computed from its output next is larger.
    """
    for operator in operators:
        special = None
        if operator in ("conv2d", "matmul"):
            ways = (
                schedule_products(func, constants, row, core.lanes, room) for row in core.products
            )
            special = next(filter(None, ways), None)
        elif operator == "depthwise":
            taps = (
                schedule_depthwise(func, constants, row, core.lanes, room, grows)
                for row in core.depthwise
            )
            special = next(filter(None, taps), None)
        elif operator == "pad":
            special = schedule_pad(func, runs=runs, backward=backward)
        if special is not None:
            biased = core.header and special.biased
            return replace(special, func=start_with_bias(special.func)) if biased else special
    return schedule_any(func, unroll=core.unroll, lanes=core.lanes, pools=core.pools)
