"""The schedule of one layer: which bytes move where, and what each trigger computes.

A `Schedule` is plain data: the tiles along each axis and the geometry of L2 and L1.  `steps` spells
it out as the flat sequence of DMA transfers and triggers; the emitted C walks the same axes with
loops, and the tests check that both do the same, step by step.

Layout in L2 (inside a region) and in L1 is C-y-x with rows padded to the core's pitch; vectors are
padded likewise.  Offsets and sizes are logical bytes: all are multiples of the reversed group
where they meet the DMA, so that reversal never shows here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from byoc_dory.layer import Layer, Op, Shift
from byoc_dory.packing import pad_filter
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.accelerator import DigitalCore
from byoc_dory.soc.base import round_up
from byoc_dory.steps import AddTrigger, Block, ConvTrigger, DenseTrigger, Load, Step, Store
from byoc_dory.tiling.problem import Tile

__all__ = [
    "ChannelTile",
    "LoopOrder",
    "Map",
    "Schedule",
    "SpatialTile",
    "schedule_layer",
    "stored_bytes",
]

LoopOrder: TypeAlias = Literal["yxk", "kyx"]


def stored_bytes(shape: tuple[int, ...], pitch: int) -> int:
    """Bytes of a tensor in the accelerator's layout: rows (or the vector) padded to ``pitch``."""
    if len(shape) == 1:
        return round_up(shape[0], pitch)
    channels, rows, columns = shape
    return channels * rows * round_up(columns, pitch)


@dataclass(frozen=True)
class ChannelTile:
    """Channels start..start+size of the layer."""

    start: int
    size: int


@dataclass(frozen=True)
class SpatialTile:
    """Rows (or columns) of one tile.

    Attributes:
        out_start, out_size: what it produces.
        in_start, in_size: what it reads, clipped to the input.
        pad: zeros before the input; negative: leading elements to skip.
    """

    out_start: int
    out_size: int
    in_start: int
    in_size: int
    pad: int


@dataclass(frozen=True)
class Map:
    """A tensor in L2 as the schedule addresses it: rows per channel, bytes per row."""

    rows: int
    pitch: int

    @property
    def channel(self) -> int:
        """Bytes of a channel."""
        return self.rows * self.pitch


@dataclass(frozen=True)
class Schedule:
    """Single-buffered execution of one layer, tile by tile.

    Attributes:
        op: the operator.
        layer_name: the layer.
        tile: the tile sizes it was made from.
        loop_order: outermost first; ``yxk`` loads an input tile once for all its channel tiles.
        k_tiles, y_tiles, x_tiles: the tiles along each axis.
        source, result: input and output in L2.
        channels: input channels of a tile; 0 where they follow the output channels.
        fy, fx, stride: kernel as executed, stride.
        shift, relu: requantization.
        l1_in: byte offset in L1 of each operand's tile.
        l1_out: byte offset in L1 of the output tile.
        l1_bytes: L1 used in total.
        pitch, group, lanes: row padding, reversed group and array rows of the core.
        k_weight_bytes: packed bytes of one full channel tile; of one trigger for dense.
    """

    op: Op
    layer_name: str
    tile: Tile
    loop_order: LoopOrder
    k_tiles: tuple[ChannelTile, ...]
    y_tiles: tuple[SpatialTile, ...]
    x_tiles: tuple[SpatialTile, ...]
    source: Map
    result: Map
    channels: int
    fy: int
    fx: int
    stride: int
    shift: int
    relu: bool
    l1_in: tuple[int, ...]
    l1_out: int
    l1_bytes: int
    pitch: int
    group: int
    lanes: int
    k_weight_bytes: int

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return len(self.k_tiles) * len(self.y_tiles) * len(self.x_tiles)

    @property
    def input_follows_k(self) -> bool:
        """Whether each channel tile has an input of its own."""
        return self.channels == 0

    # ------------------------------------------------------------------ one tile

    def load_block(self, k: ChannelTile, y: SpatialTile, x: SpatialTile) -> Block:
        """The input block of a tile."""
        if self.op == "dense":
            return self._run(self.source.pitch)
        channels = k.size if self.input_follows_k else self.channels
        return self._block(channels, y.in_size, x.in_size, self.source, len(self.x_tiles))

    def store_block(self, k: ChannelTile, y: SpatialTile, x: SpatialTile) -> Block:
        """The output block of a tile."""
        if self.op == "dense":
            return self._run(round_up(k.size, self.pitch))
        return self._block(k.size, y.out_size, x.out_size, self.result, len(self.x_tiles))

    def _run(self, size: int) -> Block:
        """A vector: one contiguous run of bytes."""
        return Block(1, 1, size, size, size, size, size)

    def _block(self, channels: int, rows: int, columns: int, where: Map, x_tiles: int) -> Block:
        # Whole rows move with their padding, so that they are contiguous; parts of rows move as
        # whole reversed groups.
        l1_pitch = round_up(columns, self.pitch)
        size = where.pitch if x_tiles == 1 else round_up(columns, self.group)
        return Block(
            channels=channels,
            rows=rows,
            bytes=size,
            l2_channel_stride=where.channel,
            l2_row_stride=where.pitch,
            l1_channel_stride=rows * l1_pitch,
            l1_row_stride=l1_pitch,
        )

    def load_offset(self, k: ChannelTile, y: SpatialTile, x: SpatialTile) -> int:
        """Where a tile's input starts in L2."""
        channel = k.start if self.input_follows_k else 0
        return channel * self.source.channel + y.in_start * self.source.pitch + x.in_start

    def store_offset(self, k: ChannelTile, y: SpatialTile, x: SpatialTile) -> int:
        """Where a tile's output starts in L2."""
        return k.start * self.result.channel + y.out_start * self.result.pitch + x.out_start

    def weight_offset(self, k: ChannelTile) -> int:
        """Where a channel tile's packed weights start."""
        if self.op == "dense":
            return k.start // self.lanes * self.k_weight_bytes
        return k.start // self.tile.k * self.k_weight_bytes

    def triggers(self, k: ChannelTile, y: SpatialTile, x: SpatialTile) -> Iterator[Step]:
        """What the core computes for one tile."""
        if self.op == "add":
            size = k.size * y.out_size * self.source.pitch
            a, b = self.l1_in
            yield AddTrigger(size, self.shift, self.relu, a, b, self.l1_out)
        elif self.op == "dense":
            for first in range(0, k.size, self.lanes):
                yield DenseTrigger(
                    min(self.lanes, k.size - first), self.channels, self.shift, self.relu,
                    self.l1_in[0], self.l1_out + first,
                    self.weight_offset(k) + first // self.lanes * self.k_weight_bytes,
                )  # fmt: skip
        else:
            yield ConvTrigger(
                k.size, self.channels or k.size, y.in_size, x.in_size, y.out_size, x.out_size,
                self.fy, self.fx, self.stride, y.pad, x.pad, self.shift, self.relu,
                self.l1_in[0], self.l1_out, self.weight_offset(k), self.op == "depthwise",
            )  # fmt: skip

    # ------------------------------------------------------------------ all tiles

    def order(self) -> Iterator[tuple[ChannelTile, SpatialTile, SpatialTile]]:
        """All tiles in execution order."""
        if self.loop_order == "kyx":
            for k in self.k_tiles:
                for y in self.y_tiles:
                    for x in self.x_tiles:
                        yield k, y, x
        else:
            for y in self.y_tiles:
                for x in self.x_tiles:
                    for k in self.k_tiles:
                        yield k, y, x

    def steps(self) -> Iterator[Step]:
        """Everything that happens, in order; an input tile still in L1 is not loaded again."""
        loaded: object = None
        for k, y, x in self.order():
            wanted = (y, x, k if self.input_follows_k else None)
            if loaded != wanted:
                for operand, l1_offset in enumerate(self.l1_in):
                    yield Load(
                        operand, self.load_offset(k, y, x), l1_offset, self.load_block(k, y, x)
                    )
                loaded = wanted
            yield from self.triggers(k, y, x)
            yield Store(self.store_offset(k, y, x), self.l1_out, self.store_block(k, y, x))


# ---------------------------------------------------------------------- construction


def _channel_tiles(size: int, tile: int) -> tuple[ChannelTile, ...]:
    return tuple(ChannelTile(start, min(tile, size - start)) for start in range(0, size, tile))


def _spatial_tiles(
    out: int, tile: int, size: int, kernel: int, stride: int, pad: int, align: int
) -> tuple[SpatialTile, ...]:
    """Tiles along one axis; inputs start at multiples of ``align``."""
    if tile >= out:
        return (SpatialTile(0, out, 0, size, pad),)
    tiles = []
    for start in range(0, out, tile):
        count = min(tile, out - start)
        first = start * stride - pad
        low = max(0, first) // align * align
        high = min(size, first + (count - 1) * stride + kernel)
        tiles.append(SpatialTile(start, count, low, high - low, low - first))
    return tuple(tiles)


def schedule_layer(
    layer: Layer, plan: LayerPlan, core: DigitalCore, loop_order: LoopOrder = "yxk"
) -> Schedule:
    """The schedule of a layer that follows a plan.

    The layer must satisfy the core's rules; the tile must come from its tiling problem.
    """
    tile = plan.solution.tile
    if not isinstance(layer.requant, Shift):
        raise TypeError(f"layer '{layer.name}': the digital core requantizes by one shift only")
    vector = layer.op == "add" and len(layer.output.shape) == 1
    k_size, iy, ix, oy, ox = layer.K, layer.iy, layer.ix, layer.oy, layer.ox
    if vector:
        # A vector is one padded row.
        k_size, ix, ox = 1, layer.K, layer.K
    fy, fx = pad_filter(layer.fy, core.filters), pad_filter(layer.fx, core.filters)
    y_tiles = _spatial_tiles(oy, tile.y, iy, fy, layer.stride[0], layer.pad[0], 1)
    x_tiles = _spatial_tiles(ox, tile.x, ix, fx, layer.stride[1], layer.pad[1], core.group)
    k_tiles = _channel_tiles(k_size, tile.k)
    pitch = core.row_pitch
    source = Map(iy, round_up(ix, pitch))
    result = Map(oy, round_up(ox, pitch))
    follows = layer.op in ("depthwise", "add")
    if layer.op == "dense":
        # The input is one vector, the output of a tile a run of bytes: channels are unpadded.
        source, result = Map(1, round_up(layer.C, pitch)), Map(1, 1)
    out_bytes = _largest_output(layer, tile, y_tiles, x_tiles, core)
    return Schedule(
        op=layer.op,
        layer_name=layer.name,
        tile=tile,
        loop_order=loop_order,
        k_tiles=k_tiles,
        y_tiles=y_tiles,
        x_tiles=x_tiles,
        source=source,
        result=result,
        channels=0 if follows else layer.C,
        fy=fy,
        fx=fx,
        stride=layer.stride[0],
        shift=layer.requant.shift,
        relu=layer.relu,
        l1_in=plan.l1_inputs,
        l1_out=plan.l1_output,
        l1_bytes=plan.l1_output + out_bytes,
        pitch=pitch,
        group=core.group,
        lanes=core.lanes,
        k_weight_bytes=_weight_bytes(layer, tile, core, fy, fx),
    )


def _largest_output(
    layer: Layer,
    tile: Tile,
    y_tiles: tuple[SpatialTile, ...],
    x_tiles: tuple[SpatialTile, ...],
    core: DigitalCore,
) -> int:
    """Bytes of the output tile in L1 with the surplus maps the core writes."""
    if layer.op == "add":
        maps = tile.k
    elif layer.op == "depthwise":
        maps = tile.k + core.lanes - 1
    else:
        maps = round_up(tile.k, core.lanes)
    if layer.op == "dense":
        return maps
    rows = max(y.out_size for y in y_tiles)
    return maps * rows * max(round_up(x.out_size, core.row_pitch) for x in x_tiles)


def _weight_bytes(layer: Layer, tile: Tile, core: DigitalCore, fy: int, fx: int) -> int:
    """Packed bytes of a full channel tile, or of a trigger (dense)."""
    if layer.op == "add":
        return 0
    if layer.op == "dense":
        return core.dense_weight_bytes(layer.C)
    if layer.op == "depthwise":
        return core.depthwise_weight_bytes(tile.k, fy, fx)
    return core.conv_weight_bytes(tile.k, layer.C, fy, fx)
