"""Tiling problems for DIANA's digital core: use of L1 and of the weight memory."""

from __future__ import annotations

from typing import Any

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Add, Convolution, Dense, Layer
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.soc.diana.digital_packing import pad_filter
from byoc_dory.tiling.problem import Axis, InputWindow, Rounding, TileWeights, TilingProblem


def tiling_problem(soc: Soc, core: DigitalCore, layer: Layer, l1_budget: int) -> TilingProblem:
    """Return a tile's use of L1 and of the weight memory, with the limits.

    C is never tiled; x is whole or a multiple of 4, because the DMA moves whole reversed groups.
    """
    common: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": l1_budget,
        "unit": core.l1,
    }
    match layer:
        case Dense():
            return _dense_problem(core, layer, common)
        case Add():
            return _add_problem(core, layer, common)
        case Convolution():
            return _conv_problem(core, layer, common)
        case _:
            raise UnsupportedError(f"no tiles of {layer.op}", where=f"layer '{layer.name}'")


def _conv_problem(core: DigitalCore, layer: Convolution, common: dict[str, Any]) -> TilingProblem:
    fy, fx = pad_filter(layer.fy, core.filters), pad_filter(layer.fx, core.filters)
    if layer.depthwise:
        # The weight memory holds the channels of one trigger, and each trigger writes a whole block
        # of maps, of which only these are real.
        each = core.channels_at_a_time(fy, fx)
        special: dict[str, Any] = {
            "c": Axis(1, tiled=False),
            "channels_follow_k": True,
            "rounding": Rounding(x=core.row_pitch, extra_maps=core.lanes - 1),
            "weights": TileWeights(
                fixed=core.lanes * each * fy * fx + core.bias_bytes,
                limit=core.weight_memory,
                block_k=each if each > 1 else core.depthwise_block_channels,
            ),
        }
    else:
        special = {
            "c": Axis(layer.C, tiled=False),
            "rounding": Rounding(k=core.lanes, x=core.row_pitch),
            "weights": TileWeights(
                channel=core.lanes * fy * fx,
                block=core.bias_bytes,
                limit=core.weight_memory,
                block_k=core.lanes,
            ),
        }
    return TilingProblem(
        k=Axis(layer.K),
        y=Axis(layer.oy),
        x=Axis(layer.ox, step=core.group),
        # x tiles start at multiples of the group, so the misalignment is always the same.
        window=InputWindow(layer.iy, layer.ix, fy, fx, layer.stride, -layer.pad[1] % core.group),
        **special,
        **common,
    )


def _dense_problem(core: DigitalCore, layer: Dense, common: dict[str, Any]) -> TilingProblem:
    one = Axis(1, tiled=False)
    return TilingProblem(
        k=Axis(layer.K, step=core.lanes),
        c=Axis(layer.C, tiled=False),
        y=one,
        x=one,
        window=InputWindow(1, 1),
        rounding=Rounding(k=core.lanes, c=core.columns),
        # One trigger per 16 outputs: the weight memory holds one block.
        weights=TileWeights(fixed=core.dense_weight_bytes(layer.C), limit=core.weight_memory),
        **common,
    )


def _add_problem(core: DigitalCore, layer: Add, common: dict[str, Any]) -> TilingProblem:
    k, x = (1, layer.K) if layer.of_vectors else (layer.K, layer.ox)
    return TilingProblem(
        k=Axis(k),
        c=Axis(1, tiled=False),
        y=Axis(layer.oy),
        x=Axis(x, tiled=False),
        window=InputWindow(layer.iy, x),
        channels_follow_k=True,
        copies=2,
        rounding=Rounding(x=round_up(core.row_pitch, core.columns)),
        weights=TileWeights(limit=core.weight_memory),
        **common,
    )
