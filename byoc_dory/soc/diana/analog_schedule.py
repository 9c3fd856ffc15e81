"""The schedule of a layer on the analog core: that of any layer, with triggers of its own."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.geometry import Map, channel_tiles, spatial_tiles, stored_bytes
from byoc_dory.layer import AnalogRequant, Layer
from byoc_dory.options import ScheduleKind
from byoc_dory.plan import LayerPlan
from byoc_dory.schedule import LoopOrder, Schedule, TileIndex
from byoc_dory.soc.analog_core import AnalogCore
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.analog_packing import tile_bytes
from byoc_dory.steps import AnalogTrigger

__all__ = ["SUM_BYTES", "AnalogSchedule", "analog_schedule", "gain_shift"]

SUM_BYTES = 2
"""Bytes of a sum between passes."""


@dataclass(frozen=True)
class AnalogSchedule(Schedule):
    """Execution of one layer on the analog core.

    Attributes:
        gain: right shift before the converters.
        clip: inclusive range of the output.
        c_pass: input channels of a pass.
        unroll: output columns computed at a time.
        slice: outputs of one trigger of a vector.
        pass_bytes: image of a pass of ``c_pass`` channels, of each channel tile.
        sums: bytes from the place of the result in L1 (of a tile, or of the whole if it stays
            there) to that of a tile's sums between passes; 0 with one pass.
    """

    gain: int
    clip: tuple[int, int]
    c_pass: int
    unroll: int
    slice: int
    pass_bytes: tuple[int, ...]
    sums: int

    @property
    def passes(self) -> int:
        """Passes over the array for one tile."""
        return -(-self.channels // self.c_pass)

    @property
    def several_triggers(self) -> bool:
        """Whether a tile may take several triggers: the registers are free only after the last."""
        return self.passes > 1 or self.sliced

    @property
    def sliced(self) -> bool:
        """Whether some tile has more outputs than one trigger of a vector makes."""
        return self.op == "dense" and self.k_tiles[0].size > self.slice

    def trigger(self, index: TileIndex, inputs: tuple[int, ...], out: int) -> AnalogTrigger:
        """What the core computes for one tile, given its place in L1."""
        k, y, x = index
        return AnalogTrigger(
            k.size, self.channels, y.in_size, x.in_size, y.out_size, x.out_size,
            self.fy, self.fx, self.stride, y.pad, x.pad, self.gain, self.shift, self.clip,
            self.c_pass, self.unroll, self.op == "dense", self.slice,
            inputs[0], out, (self.l1_out if self.resident_out else out) + self.sums,
            self.weight_offset(k),
        )  # fmt: skip


def gain_shift(gain: int) -> int:
    """The right shift that divides by ``gain``, a power of two."""
    return gain.bit_length() - 1


def analog_schedule(
    layer: Layer,
    plan: LayerPlan,
    core: AnalogCore,
    kind: ScheduleKind = "published",
    loop_order: LoopOrder = "yxk",
) -> AnalogSchedule:
    """The schedule of a layer that follows a plan.

    The layer must satisfy the core's rules; the tile must come from its tiling problem.  The
    published schedule has a loop order of its own (kyx).

    Raises:
        TypeError: the layer is not requantized as by the core.
        ValueError: the plan asks for what the schedule or the tile does not allow.
    """
    if not isinstance(layer.requant, AnalogRequant):
        raise TypeError(f"layer '{layer.name}': the analog core has converters, not one shift")
    solution, tile = plan.solution, plan.solution.tile
    _check_plan(layer, plan, kind)
    pitch, dense = core.row_pitch, layer.op == "dense"
    source, result = (
        Map(layer.iy, round_up(layer.ix, pitch)),
        Map(layer.oy, round_up(layer.ox, pitch)),
    )
    if dense:
        # The input is one vector, the output of a tile a run of bytes: channels are unpadded.
        source, result = Map(1, round_up(layer.C, pitch)), Map(1, 1)
    (top, left, _, _), (sy, sx) = layer.pad, layer.stride
    k_tiles = channel_tiles(layer.K, tile.k)
    unroll = 1 if dense else core.unroll_of(tile.k, layer.C, layer.fy, layer.fx, sy)
    c_pass = min(layer.C, core.pass_channels(layer.fy, layer.fx))
    rows = c_pass * layer.fy * (layer.fx + unroll - 1)
    return AnalogSchedule(
        kind=kind,
        op=layer.op,
        layer_name=layer.name,
        tile=tile,
        loop_order="kyx" if kind == "published" else loop_order,
        k_tiles=k_tiles,
        y_tiles=spatial_tiles(layer.oy, tile.y, layer.iy, layer.fy, sy, top, 1),
        x_tiles=spatial_tiles(layer.ox, tile.x, layer.ix, layer.fx, sx, left, core.group),
        source=source,
        result=result,
        channels=layer.C,
        fy=layer.fy,
        fx=layer.fx,
        stride=sy,
        shift=layer.requant.shift,
        relu=layer.relu,
        buffers=plan.buffers,
        resident_in=plan.resident_inputs,
        resident_out=plan.resident_output,
        l1_in=plan.l1_inputs,
        l1_out=plan.l1_output,
        in_bytes=solution.l1_in,
        out_bytes=solution.l1_out,
        pitch=pitch,
        group=core.group,
        # The core writes the maps it is asked for, and vectors in whole rows of memory.
        lanes=pitch if dense else 1,
        k_weight_bytes=tile_bytes(layer, tile.k, unroll, core),
        gain=gain_shift(layer.requant.gain),
        clip=layer.clip,
        c_pass=c_pass,
        unroll=unroll,
        slice=core.dense_max_k,
        pass_bytes=tuple(core.image_bytes(rows, unroll * k.size) for k in k_tiles),
        sums=_sums(layer, plan, core) if c_pass < layer.C else 0,
    )


def _sums(layer: Layer, plan: LayerPlan, core: AnalogCore) -> int:
    """Sums lie behind the tile they belong to, or behind a whole result."""
    if plan.resident_output:
        return stored_bytes(layer.output.shape, core.row_pitch)
    return plan.solution.l1_out // (1 + SUM_BYTES)


def _check_plan(layer: Layer, plan: LayerPlan, kind: ScheduleKind) -> None:
    tile = plan.solution.tile
    resident = plan.resident_output or any(plan.resident_inputs)
    if kind == "published" and (resident or plan.buffers != 1):
        raise ValueError(f"layer '{layer.name}': the published schedule keeps nothing in L1")
    if resident and (tile.y < layer.oy or tile.x < layer.ox):
        raise ValueError(f"layer '{layer.name}': a map that is tiled cannot stay in L1")
