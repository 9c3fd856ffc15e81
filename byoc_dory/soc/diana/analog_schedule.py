"""The schedule of a layer on the analog core: that of any layer, with triggers of its own."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.layers import AnalogRequant, Dense, Layer
from byoc_dory.options import ScheduleKind
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.diana.analog_core import AnalogCore
from byoc_dory.soc.diana.analog_packing import tile_bytes
from byoc_dory.soc.diana.digital_schedule import base_schedule
from byoc_dory.soc.diana.layout import stored_bytes
from byoc_dory.soc.diana.schedule import LoopOrder, Schedule, TileIndex
from byoc_dory.soc.diana.triggers import AnalogTrigger

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
    tile, pitch, dense = plan.solution.tile, core.row_pitch, isinstance(layer, Dense)
    unroll = 1 if dense else core.unroll_of(tile.k, layer.C, layer.fy, layer.fx, layer.stride[0])
    c_pass = min(layer.C, core.pass_channels(layer.fy, layer.fx))
    rows = c_pass * layer.fy * (layer.fx + unroll - 1)
    base = base_schedule(
        layer,
        plan,
        kind,
        loop_order,
        tile=tile,
        fy=layer.fy,
        fx=layer.fx,
        shift=layer.requant.shift,
        pitch=pitch,
        group=core.group,
        # The core writes the maps it is asked for, and vectors in whole rows of memory.
        lanes=pitch if dense else 1,
        k_weight_bytes=tile_bytes(layer, tile.k, unroll, core),
    )
    return AnalogSchedule(
        **vars(base),
        gain=gain_shift(layer.requant.gain),
        clip=layer.clip,
        c_pass=c_pass,
        unroll=unroll,
        slice=core.dense_max_k,
        pass_bytes=tuple(core.image_bytes(rows, unroll * k.size) for k in base.k_tiles),
        sums=_sums(layer, plan, core) if c_pass < layer.C else 0,
    )


def _sums(layer: Layer, plan: LayerPlan, core: AnalogCore) -> int:
    """Sums lie behind the tile they belong to, or behind a whole result."""
    if plan.resident_output:
        return stored_bytes(layer.output.shape, core.row_pitch)
    return plan.solution.l1_out // (1 + SUM_BYTES)
