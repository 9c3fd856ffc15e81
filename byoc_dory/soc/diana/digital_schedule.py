"""From a layer and its plan to a schedule."""

from __future__ import annotations

from dataclasses import replace

from byoc_dory.geometry import channel_tiles, spatial_tiles
from byoc_dory.layers import Add, Convolution, Dense, Layer, Shift
from byoc_dory.options import ScheduleKind
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.soc.diana.digital_packing import pad_filter
from byoc_dory.soc.diana.layout import Map
from byoc_dory.soc.diana.schedule import LoopOrder, Schedule
from byoc_dory.tiling.problem import Tile

__all__ = ["base_schedule", "schedule_layer"]


def schedule_layer(
    layer: Layer,
    plan: LayerPlan,
    core: DigitalCore,
    kind: ScheduleKind = "published",
    loop_order: LoopOrder = "yxk",
) -> Schedule:
    """The schedule of a layer that follows a plan.

    The layer must satisfy the core's rules; the tile must come from its tiling problem.  The
    published schedule has a loop order of its own (kyx) and one dense trigger per tile.

    Raises:
        TypeError: the layer is not requantized by one shift.
        ValueError: the plan asks for what the schedule or the tile does not allow.
    """
    if not isinstance(layer.requant, Shift):
        raise TypeError(f"layer '{layer.name}': the digital core requantizes by one shift only")
    tile = plan.solution.tile
    if kind == "published" and isinstance(layer, Dense):
        tile = replace(tile, k=min(tile.k, core.dense_max_k))
    fy, fx = pad_filter(layer.fy, core.filters), pad_filter(layer.fx, core.filters)
    return base_schedule(
        layer,
        plan,
        kind,
        loop_order,
        tile=tile,
        fy=fy,
        fx=fx,
        shift=layer.requant.shift,
        pitch=core.row_pitch,
        group=core.group,
        lanes=core.lanes,
        k_weight_bytes=_weight_bytes(layer, tile, core, fy, fx),
    )


def base_schedule(
    layer: Layer,
    plan: LayerPlan,
    kind: ScheduleKind,
    loop_order: LoopOrder,
    *,
    tile: Tile,
    fy: int,
    fx: int,
    shift: int,
    pitch: int,
    group: int,
    lanes: int,
    k_weight_bytes: int,
) -> Schedule:
    """What the schedules of all cores have that work on padded rows in L1.

    Args:
        layer: as the core's rules take it.
        plan: of the layer.
        kind: the published schedule has the loop order kyx, whatever is asked for.
        loop_order: of the overlapped schedule.
        tile: the plan's, or what the core makes of it.
        fy, fx: the kernel as the core executes it.
        shift: right shift of the requantization.
        pitch, group, lanes, k_weight_bytes: as in `Schedule`.

    Raises:
        ValueError: the plan asks for what the schedule or the tile does not allow.
    """
    _check_plan(layer, plan, kind)
    k_size, ix, ox = layer.K, layer.ix, layer.ox
    if isinstance(layer, Add) and layer.of_vectors:
        # A vector is one padded row.
        k_size, ix, ox = 1, layer.K, layer.K
    source, result = Map(layer.iy, round_up(ix, pitch)), Map(layer.oy, round_up(ox, pitch))
    if isinstance(layer, Dense):
        # The input is one vector, the output of a tile a run of bytes: channels are unpadded.
        source, result = Map(1, round_up(layer.C, pitch)), Map(1, 1)
    (top, left, _, _), (sy, sx) = layer.pad, layer.stride
    return Schedule(
        kind=kind,
        op=layer.op,
        layer_name=layer.name,
        tile=tile,
        loop_order="kyx" if kind == "published" else loop_order,
        k_tiles=channel_tiles(k_size, tile.k),
        y_tiles=spatial_tiles(layer.oy, tile.y, layer.iy, fy, sy, top, 1),
        x_tiles=spatial_tiles(ox, tile.x, ix, fx, sx, left, group),
        source=source,
        result=result,
        channels=layer.C if layer.groups == 1 and not isinstance(layer, Add) else 0,
        fy=fy,
        fx=fx,
        stride=sy,
        shift=shift,
        relu=layer.relu,
        buffers=plan.buffers,
        resident_in=plan.resident_inputs,
        resident_out=plan.resident_output,
        l1_in=plan.l1_inputs,
        l1_out=plan.l1_output,
        in_bytes=plan.solution.l1_in // len(layer.inputs),
        out_bytes=plan.solution.l1_out,
        pitch=pitch,
        group=group,
        lanes=lanes,
        k_weight_bytes=k_weight_bytes,
    )


def _check_plan(layer: Layer, plan: LayerPlan, kind: ScheduleKind) -> None:
    tile = plan.solution.tile
    resident = plan.resident_output or any(plan.resident_inputs)
    if kind == "published" and (resident or plan.buffers != 1):
        raise ValueError(f"layer '{layer.name}': the published schedule keeps nothing in L1")
    columns = layer.K if isinstance(layer, Add) and layer.of_vectors else layer.ox
    if resident and (tile.y < layer.oy or tile.x < columns):
        raise ValueError(f"layer '{layer.name}': a map that is tiled cannot stay in L1")


def _weight_bytes(layer: Layer, tile: Tile, core: DigitalCore, fy: int, fx: int) -> int:
    """Packed bytes of a full channel tile."""
    match layer:
        case Add():
            return 0
        case Dense():
            return -(-tile.k // core.lanes) * core.dense_weight_bytes(layer.C)
        case Convolution(depthwise=True):
            return core.depthwise_weight_bytes(tile.k, fy, fx)
        case _:
            return core.conv_weight_bytes(tile.k, layer.C, fy, fx)
