"""Tiles of a layer on DIANA's digital core: what they need of L1 and of the weight memory."""

from __future__ import annotations

from typing import Any

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Add, Convolution, Dense, Layer
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.soc.diana.digital_packing import pad_filter
from byoc_dory.tiling.problem import Axis, TilingProblem

__all__ = ["tiling_problem"]


def tiling_problem(layer: Layer, core: DigitalCore, soc: Soc, l1_budget: int) -> TilingProblem:
    """What a tile of this layer needs of L1 and of the weight memory.

    C is never tiled; x is whole or a multiple of 4, because the DMA moves whole reversed groups.
    """
    common: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": l1_budget,
        "weight_limit": core.weight_memory,
        "unit": core.l1,
    }
    match layer:
        case Dense():
            return _dense_problem(layer, core, common)
        case Add():
            return _add_problem(layer, core, common)
        case Convolution():
            return _conv_problem(layer, core, common)
        case _:
            raise UnsupportedError(f"no tiles of {layer.op}", where=f"layer '{layer.name}'")


def _conv_problem(layer: Convolution, core: DigitalCore, common: dict[str, Any]) -> TilingProblem:
    fy, fx = pad_filter(layer.fy, core.filters), pad_filter(layer.fx, core.filters)
    if layer.depthwise:
        # One trigger per channel: the weight memory holds one channel, each trigger writes a
        # whole block of maps of which the first is real.
        special: dict[str, Any] = {
            "c": Axis(1, tiled=False),
            "channels_follow_k": True,
            "extra_maps": core.lanes - 1,
            "block_k": core.depthwise_block_channels,
            "weight_fixed": core.lanes * fy * fx + core.bias_bytes,
        }
    else:
        special = {
            "c": Axis(layer.C, tiled=False),
            "round_k": core.lanes,
            "block_k": core.lanes,
            "weight_channel": core.lanes * fy * fx,
            "weight_block": core.bias_bytes,
        }
    return TilingProblem(
        k=Axis(layer.K),
        y=Axis(layer.oy),
        x=Axis(layer.ox, step=core.group),
        iy=layer.iy,
        ix=layer.ix,
        fy=fy,
        fx=fx,
        stride=layer.stride,
        # x tiles start at multiples of the group, so the misalignment is always the same.
        crop=-layer.pad[1] % core.group,
        round_x=core.row_pitch,
        **special,
        **common,
    )


def _dense_problem(layer: Dense, core: DigitalCore, common: dict[str, Any]) -> TilingProblem:
    one = Axis(1, tiled=False)
    return TilingProblem(
        k=Axis(layer.K, step=core.lanes),
        c=Axis(layer.C, tiled=False),
        y=one,
        x=one,
        iy=1,
        ix=1,
        fy=1,
        fx=1,
        stride=(1, 1),
        round_k=core.lanes,
        round_c=core.columns,
        # One trigger per 16 outputs: the weight memory holds one block.
        weight_fixed=core.dense_weight_bytes(layer.C),
        **common,
    )


def _add_problem(layer: Add, core: DigitalCore, common: dict[str, Any]) -> TilingProblem:
    k, x = (1, layer.K) if layer.of_vectors else (layer.K, layer.ox)
    return TilingProblem(
        k=Axis(k),
        c=Axis(1, tiled=False),
        y=Axis(layer.oy),
        x=Axis(x, tiled=False),
        iy=layer.iy,
        ix=x,
        fy=1,
        fx=1,
        stride=(1, 1),
        channels_follow_k=True,
        copies=2,
        round_x=round_up(core.row_pitch, core.columns),
        **common,
    )
