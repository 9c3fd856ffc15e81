"""Tiling problems for DIANA's analog core: use of L1 and of the array."""

from __future__ import annotations

from typing import Any

from byoc_dory.layers import Dense, Layer
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.diana.analog_core import AnalogCore
from byoc_dory.soc.diana.analog_program import SUM_BYTES
from byoc_dory.tiling.problem import Axis, InputWindow, Rounding, TileWeights, TilingProblem


def tiling_problem(soc: Soc, core: AnalogCore, layer: Layer, l1_budget: int) -> TilingProblem:
    """Return a tile's use of L1 and of the array, with the limits.

    C is never tiled, as all passes of a tile follow each other; x is whole or a multiple of 4,
    because the DMA moves whole reversed groups.  An output channel is a column of cells; if there
    is room, the schedule computes several output columns at a time.
    """
    each = min(layer.C, max(1, core.pass_channels(layer.fy, layer.fx)))
    column = round_up(each * layer.fy * layer.fx, core.row_step) * 2 // 8
    common: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": l1_budget,
        "unit": core.l1,
        "sums": SUM_BYTES if each < layer.C else 0,
    }
    if isinstance(layer, Dense):
        one = Axis(1, tiled=False)
        return TilingProblem(
            k=Axis(layer.K, step=core.row_pitch),
            c=Axis(layer.C, tiled=False),
            y=one,
            x=one,
            window=InputWindow(1, 1),
            rounding=Rounding(k=core.row_pitch, c=core.row_pitch),
            weights=TileWeights(block=column * core.row_pitch, limit=column * core.columns),
            **common,
        )
    return TilingProblem(
        k=Axis(layer.K),
        c=Axis(layer.C, tiled=False),
        y=Axis(layer.oy),
        x=Axis(layer.ox, step=core.group),
        # x tiles start at multiples of the group, so the misalignment is always the same.
        window=InputWindow(
            layer.iy, layer.ix, layer.fy, layer.fx, layer.stride, -layer.pad[1] % core.group
        ),
        rounding=Rounding(x=core.row_pitch),
        weights=TileWeights(block=column, limit=column * core.columns),
        **common,
    )
