"""Schedules of CPU kernels: the loops of each fused PrimFunc."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from htvm.aot.schedules.bias import start_with_bias
from htvm.aot.schedules.blocks import Constants, Scheduled
from htvm.aot.schedules.depthwise import schedule_depthwise, schedule_depthwise_taps
from htvm.aot.schedules.generic import schedule_any
from htvm.aot.schedules.pad import schedule_pad
from htvm.aot.schedules.products import COLUMNS, DOT4, SCALAR, schedule_products
from htvm.aot.schedules.rows import schedule_rows

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

__all__ = ["Constants", "Scheduled", "Simd", "schedule"]

Simd: TypeAlias = Literal["", "corev", "dsp", "mve", "thumb"]
"""What kernels for a core are built from (`byoc_dory.soc.cores.Host.simd`)."""

_Schedule: TypeAlias = "Callable[[PrimFunc, Constants], Scheduled | None]"

_PRODUCTS: Mapping[Simd, _Schedule] = {
    "": partial(schedule_products, how=SCALAR),
    "corev": partial(schedule_products, how=DOT4),
    "mve": schedule_rows,
    "dsp": partial(schedule_products, how=COLUMNS["dsp"]),
    "thumb": partial(schedule_products, how=COLUMNS["thumb"]),
}
_DEPTHWISE: Mapping[Simd, _Schedule] = {
    "": schedule_depthwise,
    "mve": schedule_depthwise_taps,
    # With the DSP extension all sums of five pixels stay in registers (of six, MobileNet's do not).
    "dsp": partial(schedule_depthwise, most=5),
}
_SCHEDULES: Mapping[str, Mapping[Simd, _Schedule]] = {
    "conv2d": _PRODUCTS,
    "depthwise": _DEPTHWISE,
    "matmul": _PRODUCTS,
}
"""By operator and what a core has; what a core's schedule leaves is any core's, that of ``""``."""


def schedule(
    func: PrimFunc,
    operators: Sequence[str],
    *,
    simd: Simd = "",
    constants: Constants | None = None,
    runs: bool = False,
    backward: bool = False,
) -> Scheduled:
    """Schedule a fused PrimFunc.

    Args:
        func: function with the blocks that legalization and fusion made.
        operators: names of its operators; see `htvm.aot.fuse.FusedGroup`.
        simd: which intrinsics the core has instructions for (`htvm.aot.intrinsics`); may be empty.
        constants: values of the parameters that are constants, whose layout can be changed.
        runs: whether what paddings copy and fill are calls.
        backward: whether paddings begin with the last element, so that their output may take the
            bytes of their input.
    """
    for operator in operators:
        special, known = None, _SCHEDULES.get(operator, {})
        for kind in dict.fromkeys((simd, "")):
            if special is None and kind in known:
                special = known[kind](func, constants or {})
        if operator == "pad":
            special = schedule_pad(func, runs=runs, backward=backward)
        if special is not None:
            return replace(special, func=start_with_bias(special.func)) if simd else special
    return schedule_any(func, unroll=4 if simd else 1, lanes=simd == "mve")
