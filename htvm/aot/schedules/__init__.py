"""Schedules of CPU kernels: the loops of each fused PrimFunc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from htvm.aot.schedules.bias import start_with_bias
from htvm.aot.schedules.blocks import Constants, Scheduled
from htvm.aot.schedules.columns import schedule_conv2d_columns, schedule_dense_columns
from htvm.aot.schedules.dot4 import schedule_conv2d_dot4, schedule_dense_dot4
from htvm.aot.schedules.generic import schedule_any
from htvm.aot.schedules.matrix import schedule_conv2d, schedule_dense, schedule_depthwise
from htvm.aot.schedules.pad import schedule_pad
from htvm.aot.schedules.rows import (
    schedule_conv2d_rows,
    schedule_dense_rows,
    schedule_depthwise_taps,
)

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

__all__ = ["Constants", "Scheduled", "Simd", "schedule"]

Simd: TypeAlias = Literal["", "corev", "dsp", "mve", "thumb"]
"""What kernels for a core are built from (`byoc_dory.soc.cores.Host.simd`)."""

_SPECIAL: dict[str, Callable[[PrimFunc], Scheduled | None]] = {
    "conv2d": schedule_conv2d,
    "depthwise": schedule_depthwise,
    "matmul": schedule_dense,
}

_WITH_SIMD: dict[str, dict[str, Callable[[PrimFunc, Constants], Scheduled | None]]] = {
    "corev": {"conv2d": schedule_conv2d_dot4, "matmul": schedule_dense_dot4},
    "mve": {
        "conv2d": schedule_conv2d_rows,
        "depthwise": schedule_depthwise_taps,
        "matmul": schedule_dense_rows,
    },
    **{
        kind: {
            "conv2d": partial(schedule_conv2d_columns, kind=kind),
            "matmul": partial(schedule_dense_columns, kind=kind),
        }
        for kind in ("dsp", "thumb")
    },
}
# With the DSP extension all sums of five pixels stay in registers (of six, MobileNet's do not).
_WITH_SIMD["dsp"]["depthwise"] = lambda func, _: schedule_depthwise(func, most=5)


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
        special = None
        if operator in _WITH_SIMD.get(simd, {}):
            special = _WITH_SIMD[simd][operator](func, constants or {})
        if special is None and operator in _SPECIAL:
            special = _SPECIAL[operator](func)
        if operator == "pad":
            special = schedule_pad(func, runs=runs, backward=backward)
        if special is not None:
            return replace(special, func=start_with_bias(special.func)) if simd else special
    return schedule_any(func, unroll=4 if simd else 1, lanes=simd == "mve")
