"""The schedule of one layer: which bytes move where, what each trigger computes, and when.

A `Schedule` is plain data: the tiles along each axis and the geometry of L2 and L1.  `steps` spells
it out as the flat sequence of driver calls; the emitted C walks the same axes with loops, and the
tests check that both do the same, step by step.

Layout in L2 (inside a region) and in L1 is C-y-x with rows padded to the core's pitch; vectors are
padded likewise.  Offsets and sizes are logical bytes: all are multiples of the reversed group
where they meet the DMA, so that reversal never shows here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from byoc_dory.geometry import ChannelTile, SpatialTile
from byoc_dory.options import ScheduleKind
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.layout import Map
from byoc_dory.soc.diana.triggers import AddTrigger, ConvTrigger, DenseTrigger
from byoc_dory.steps import Block, Finish, Load, Prepare, Queue, Start, Step, Store, Trigger, Wait
from byoc_dory.tiling.problem import Tile

__all__ = ["LoopOrder", "Schedule", "TileIndex", "maps_written"]

LoopOrder: TypeAlias = Literal["yxk", "kyx"]

TileIndex: TypeAlias = tuple[ChannelTile, SpatialTile, SpatialTile]
"""One tile: its channels, rows and columns."""


@dataclass(frozen=True)
class Schedule:
    """Execution of one layer, tile by tile.

    Attributes:
        kind: ``published`` loads, computes and stores one tile after another; ``overlapped`` lets
            the DMA work beside the core.
        op: the operator.
        layer_name: the layer.
        tile: the tile sizes.
        loop_order: outermost first; ``yxk`` loads an input tile once for all its channel tiles.
        k_tiles, y_tiles, x_tiles: the tiles along each axis.
        source, result: input and output, in L2, or as a whole in L1 where they stay there.
        channels: input channels of a tile; 0 where they follow the output channels.
        fy, fx, stride: kernel as executed, stride.
        shift, relu: requantization.
        buffers: tiles of each tensor that L1 holds at a time.
        resident_in: for each operand, whether it is in L1 as a whole.
        resident_out: whether the result stays there.
        l1_in: byte offset in L1 of each operand: the whole, or its first tile buffer.
        l1_out: the same of the result.
        in_bytes, out_bytes: of one tile buffer of an operand and of the result.
        pitch, group, lanes: row padding, reversed group and array rows of the core.
        k_weight_bytes: packed bytes of one full channel tile.
    """

    kind: ScheduleKind
    op: str
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
    buffers: int
    resident_in: tuple[bool, ...]
    resident_out: bool
    l1_in: tuple[int, ...]
    l1_out: int
    in_bytes: int
    out_bytes: int
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

    @property
    def pipelined(self) -> bool:
        """Whether the next tile is loaded, and the last one stored, while one is computed."""
        moves = not (all(self.resident_in) and self.resident_out)
        return self.kind == "overlapped" and self.buffers > 1 and self.tiles > 1 and moves

    @property
    def several_triggers(self) -> bool:
        """Whether a tile may take several triggers: the registers are free only after the last."""
        return self.op in ("depthwise", "dense")

    @property
    def loads_each_tile(self) -> bool:
        """Whether every tile loads its input; else it is kept for all channel tiles that use it."""
        if self.kind == "published" or self.input_follows_k:
            return True
        return self.loop_order == "kyx" and len(self.y_tiles) * len(self.x_tiles) > 1

    @property
    def l1_end(self) -> int:
        """First byte of L1 behind everything that is touched."""
        buffers = self.buffers if self.pipelined else 1
        # An input that is loaded once has one buffer.
        loads = self.tiles if self.loads_each_tile else len(self.y_tiles) * len(self.x_tiles)
        out = self._out_whole if self.resident_out else buffers * self.out_bytes
        operand = min(buffers, loads) * self.in_bytes
        ends = [
            at + (self._in_whole if resident else operand)
            for at, resident in zip(self.l1_in, self.resident_in, strict=True)
        ]
        return max(self.l1_out + out, *ends)

    @property
    def _in_whole(self) -> int:
        if self.op == "dense":
            return self.source.pitch
        channels = self.channels or self.k_tiles[-1].start + self.k_tiles[-1].size
        return channels * self.source.channel

    @property
    def _out_whole(self) -> int:
        last = self.k_tiles[-1]
        return (
            last.start * self.result.channel
            + maps_written(self.op, last.size, self.lanes) * self.result.channel
        )

    # ------------------------------------------------------------------ one tile

    def load_block(self, k: ChannelTile, y: SpatialTile, x: SpatialTile) -> Block:
        """The input block of a tile."""
        if self.op == "dense":
            return _run(self.source.pitch)
        channels = k.size if self.input_follows_k else self.channels
        return self._block(channels, y.in_size, x.in_size, self.source)

    def store_block(self, k: ChannelTile, y: SpatialTile, x: SpatialTile) -> Block:
        """The output block of a tile."""
        if self.op == "dense":
            return _run(round_up(k.size, self.pitch))
        return self._block(k.size, y.out_size, x.out_size, self.result)

    def _block(self, channels: int, rows: int, columns: int, where: Map) -> Block:
        # Whole rows move with their padding, so that they are contiguous; parts of rows move as
        # whole reversed groups.
        l1_pitch = round_up(columns, self.pitch)
        size = where.pitch if len(self.x_tiles) == 1 else round_up(columns, self.group)
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
        return k.start // self.tile.k * self.k_weight_bytes

    def in_at(self, operand: int, k: ChannelTile, number: int) -> int:
        """Where an operand of a tile is in L1; ``number`` counts loads from 0."""
        at = self.l1_in[operand]
        if self.resident_in[operand]:
            return at + (k.start * self.source.channel if self.input_follows_k else 0)
        return at + (number % self.buffers * self.in_bytes if self.pipelined else 0)

    def out_at(self, k: ChannelTile, number: int) -> int:
        """Where the result of a tile is in L1; ``number`` counts tiles from 0."""
        if self.resident_out:
            return self.l1_out + k.start * self.result.channel
        return self.l1_out + (number % self.buffers * self.out_bytes if self.pipelined else 0)

    def trigger(self, index: TileIndex, inputs: tuple[int, ...], out: int) -> Trigger:
        """What the core computes for one tile, given its place in L1."""
        k, y, x = index
        if self.op == "add":
            size = k.size * y.out_size * self.source.pitch
            return AddTrigger(size, self.shift, self.relu, inputs[0], inputs[1], out)
        weights = self.weight_offset(k)
        if self.op == "dense":
            return DenseTrigger(
                k.size, self.channels, self.shift, self.relu, inputs[0], out, weights
            )
        return ConvTrigger(
            k.size, self.channels or k.size, y.in_size, x.in_size, y.out_size, x.out_size,
            self.fy, self.fx, self.stride, y.pad, x.pad, self.shift, self.relu,
            inputs[0], out, weights, self.op == "depthwise",
        )  # fmt: skip

    # ------------------------------------------------------------------ all tiles

    def order(self) -> Iterator[TileIndex]:
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

    def work(self) -> Iterator[tuple[tuple[Load, ...], Trigger, Store | None]]:
        """What each tile needs, in order: its loads, its trigger, and its store if it has one."""
        loaded: object = None
        loads = 0
        for number, index in enumerate(self.order()):
            k, y, x = index
            wanted = (y, x, k if self.input_follows_k else None)
            moves: tuple[Load, ...] = ()
            if self.loads_each_tile or loaded != wanted:
                moves = self._loads(index, loads)
                loaded, loads = wanted, loads + 1
            operands = range(len(self.l1_in))
            inputs = tuple(self.in_at(operand, k, loads - 1) for operand in operands)
            out = self.out_at(k, number)
            store = None
            if not self.resident_out:
                store = Store(self.store_offset(k, y, x), out, self.store_block(k, y, x))
            yield moves, self.trigger(index, inputs, out), store

    def _loads(self, index: TileIndex, number: int) -> tuple[Load, ...]:
        by_rows = self.kind == "published" and self.op == "add"
        return tuple(
            Load(
                operand,
                self.load_offset(*index),
                self.in_at(operand, index[0], number),
                self.load_block(*index),
                by_rows,
            )
            for operand, resident in enumerate(self.resident_in)
            if not resident
        )

    def steps(self) -> Iterator[Step]:
        """Every driver call, in order."""
        if self.kind == "published":
            for loads, trigger, store in self.work():
                assert store is not None
                yield from loads
                yield trigger
                yield store
        elif self.pipelined:
            yield from self._pipelined()
        else:
            yield from self._one_by_one()

    def _one_by_one(self) -> Iterator[Step]:
        for loads, trigger, store in self.work():
            yield from map(Queue, loads)
            yield Prepare(trigger)
            if not all(self.resident_in):
                yield Wait()
            yield from (Start(trigger), Finish(trigger))
            if store is not None:
                yield from (Queue(store), Wait())

    def _pipelined(self) -> Iterator[Step]:
        """While the core computes a tile, the DMA stores the one before and loads the next."""
        before: tuple[Trigger, Store | None] | None = None
        for loads, trigger, store in self.work():
            yield from map(Queue, loads)
            ready: list[Step] = [Prepare(trigger)]
            if before is not None:
                ready.insert(0 if self.several_triggers else 1, Finish(before[0]))
            yield from (*ready, Wait(), Start(trigger))
            if before is not None and before[1] is not None:
                yield Queue(before[1])
            before = (trigger, store)
        assert before is not None
        yield Finish(before[0])
        if before[1] is not None:
            yield from (Queue(before[1]), Wait())


def _run(size: int) -> Block:
    """A vector: one contiguous run of bytes."""
    return Block(1, 1, size, size, size, size, size)


def maps_written(op: str, k: int, lanes: int) -> int:
    """Output maps (dense: bytes) that the core writes for ``k`` channels, the surplus included."""
    if op == "add":
        return k
    return k + lanes - 1 if op == "depthwise" else round_up(k, lanes)
