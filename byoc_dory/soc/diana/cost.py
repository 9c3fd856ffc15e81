"""Predicted cycles of DIANA's transfers and triggers, and of layers made of them.

The model of a trigger is that of `DigitalCore`: a constant, the weights at the width of their port,
and per block of maps, block of columns and output row ``C*fx*fy' + alpha*C*fy' + beta`` cycles,
where fy' counts the filter rows inside the tile.  That of a pass over an in-memory array is that
of `AnalogCore`.

A layer under the published schedule costs the sum over its transfers and triggers.  Where the DMA
works beside the core, a tile costs ``max(core, load of the next + store of the one before)``, and
the first load and the last store are waited for.  The host that fills the DMA's queue with many
commands cannot go on to the second trigger of a tile meanwhile (depthwise: its second channel).
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from typing import TypeAlias

from byoc_dory.soc.base import Dma, Soc
from byoc_dory.soc.diana.analog_core import AnalogCore
from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.soc.diana.schedule import Schedule
from byoc_dory.soc.diana.triggers import AddTrigger, AnalogTrigger, ConvTrigger, DenseTrigger
from byoc_dory.steps import Block, Load, Store, Trigger

__all__ = [
    "Core",
    "analog_cycles",
    "array_cycles",
    "dma_cycles",
    "layer_cycles",
    "step_cycles",
]

Core: TypeAlias = DigitalCore | AnalogCore


def _blocks(value: int, step: int) -> int:
    return -(-value // step)


def dma_cycles(block: Block, dma: Dma, by_rows: bool = False) -> int:
    """Cycles of one DMA call that moves ``block``, as one command per row if ``by_rows``."""
    commands, size = block.commands()
    if by_rows:
        rows = block.channels * block.rows
        # A call of one row is not collapsed either: it pays for its command.
        return dma.cycles(block.bytes, rows) + (dma.command_cycles if rows == 1 else 0)
    return dma.cycles(size, commands)


def queued_cycles(block: Block, dma: Dma) -> int:
    """Cycles of moving ``block`` by commands that are queued without waiting for each.

    The host's work for a further command is done while the one before runs.
    """
    commands, _ = block.commands()
    return dma_cycles(block, dma) - (commands - 1) * dma.driver_next_cycles


def array_cycles(trigger: ConvTrigger, core: DigitalCore) -> int:
    """Cycles a convolution (of one channel if depthwise) keeps the array busy."""
    channels, k = (1, 1) if trigger.depthwise else (trigger.c, trigger.k)
    each = channels * (trigger.fx + core.row_cycles)
    total = each * _filter_rows(trigger) + core.output_cycles * trigger.oy
    return _blocks(k, core.lanes) * _blocks(trigger.ox, core.columns) * total


def _filter_rows(trigger: ConvTrigger) -> int:
    """Filter rows inside the tile, summed over the output rows."""
    total = 0
    for tap in range(trigger.fy):
        # Output row r reads input row r * stride + tap - pad_top.
        first = max(0, _blocks(trigger.pad_top - tap, trigger.stride))
        last = min(trigger.oy - 1, (trigger.iy - 1 + trigger.pad_top - tap) // trigger.stride)
        total += max(0, last - first + 1)
    return total


def analog_cycles(trigger: AnalogTrigger, core: AnalogCore) -> int:
    """Cycles of all passes of a tile over the array, host code included.

    Each slice of a vector takes all passes.  The registers of each trigger but the first are
    written while the one before runs.
    """
    window = trigger.fy * (trigger.fx + trigger.unroll - 1)
    slices = _blocks(trigger.k, trigger.slice) if trigger.vector else 1
    total = 0
    for first in range(0, trigger.c, trigger.c_pass):
        rows = min(trigger.c_pass, trigger.c - first) * window
        each = core.pass_cycles(rows, trigger.oy, trigger.ox, trigger.unroll)
        total += slices * (each - core.ahead_cycles)
    return total + core.ahead_cycles


def step_cycles(step: Load | Store | Trigger, dma: Dma, core: Core, ahead: bool = False) -> int:
    """Cycles of one DMA call or of one driver call of the core, host code included.

    ``ahead``: the registers of each trigger but the first are written while the one before runs.
    """
    if isinstance(step, Load | Store):
        return dma_cycles(step.block, dma, isinstance(step, Load) and step.by_rows)
    if isinstance(step, AnalogTrigger):
        assert isinstance(core, AnalogCore)
        return analog_cycles(step, core)
    assert isinstance(core, DigitalCore)
    width = core.weight_bytes_per_cycle
    if isinstance(step, ConvTrigger):
        if step.depthwise:
            weights = core.conv_weight_bytes(1, 1, step.fy, step.fx)
            each = core.depthwise_trigger_cycles - (core.depthwise_ahead_cycles if ahead else 0)
            return step.k * (each + _blocks(weights, width) + array_cycles(step, core))
        weights = core.conv_weight_bytes(step.k, step.c, step.fy, step.fx)
        return core.conv_trigger_cycles + _blocks(weights, width) + array_cycles(step, core)
    if isinstance(step, DenseTrigger):
        weights = core.dense_weight_bytes(step.c)
        triggers = _blocks(step.k, core.lanes)
        array = _blocks(step.c, core.columns)
        hidden = (triggers - 1) * core.dense_ahead_cycles if ahead else 0
        each = core.dense_trigger_cycles + _blocks(weights, width) + array
        return triggers * each - hidden
    assert isinstance(step, AddTrigger)
    return core.add_trigger_cycles + _blocks(step.elements, core.columns)


def layer_cycles(schedule: Schedule, soc: Soc, core: Core) -> int:
    """Cycles of a layer: DMA and triggers with the driver code they contain.

    Host code around the calls is not counted: what is generated here needs a few tens of cycles.
    Tiles of one shape cost the same, so each shape is looked at once.
    """
    if soc.dma is None:
        raise ValueError(f"SoC '{soc.name}' has no DMA to feed '{core.name}'")
    shapes = _Shapes(schedule, soc.dma, core)
    return shapes.pipelined() if schedule.pipelined else shapes.one_by_one()


# Which of the different tiles along k, y and x, and whether its input is loaded.
_Kind: TypeAlias = tuple[int, int, int, bool]


@dataclass(frozen=True)
class _TileCost:
    """Cycles of one tile's load, triggers and store, and the number of triggers and commands."""

    load: int
    core: int
    store: int
    triggers: int
    load_commands: int
    store_commands: int


class _Shapes:
    """The costs of a schedule's tiles, by shape.

    Of each axis, ``kinds`` has the different tiles and ``number`` the kind of each tile.
    """

    def __init__(self, schedule: Schedule, dma: Dma, core: Core) -> None:
        self.schedule, self.dma, self.core = schedule, dma, core
        self.moved = schedule.resident_in.count(False)
        self._costs: dict[tuple[int, int, int], _TileCost] = {}
        self.k, self.k_number = _kinds([(tile.size,) for tile in schedule.k_tiles])
        self.y, self.y_number = _kinds([(t.out_size, t.in_size, t.pad) for t in schedule.y_tiles])
        self.x, self.x_number = _kinds([(t.out_size, t.in_size, t.pad) for t in schedule.x_tiles])

    def of(self, k: int, y: int, x: int) -> _TileCost:
        """The costs of a tile of these kinds."""
        if (k, y, x) not in self._costs:
            self._costs[k, y, x] = self._cost(k, y, x)
        return self._costs[k, y, x]

    def _cost(self, k: int, y: int, x: int) -> _TileCost:
        s = self.schedule
        index = s.k_tiles[self.k[k]], s.y_tiles[self.y[y]], s.x_tiles[self.x[x]]
        load, loads = self._transfer(s.load_block(*index), s.op == "add")
        store, stores = self._transfer(s.store_block(*index), False)
        trigger = s.trigger(index, s.l1_in, s.l1_out)
        return _TileCost(
            load=self.moved * load,
            core=step_cycles(trigger, self.dma, self.core, s.kind == "overlapped"),
            store=0 if s.resident_out else store,
            triggers=_triggers(trigger, self.core),
            load_commands=self.moved * loads,
            store_commands=0 if s.resident_out else stores,
        )

    def _transfer(self, block: Block, operand_of_add: bool) -> tuple[int, int]:
        if self.schedule.kind == "published":
            return dma_cycles(block, self.dma, operand_of_add), 0
        return queued_cycles(block, self.dma), block.commands()[0]

    def one_by_one(self) -> int:
        """Sum over all tiles, and over those that load."""
        s, total = self.schedule, 0
        first = self.k_number[0]
        for y in range(len(self.y)):
            for x in range(len(self.x)):
                maps = self.y_number.count(y) * self.x_number.count(x)
                for k in range(len(self.k)):
                    cost = self.of(k, y, x)
                    tiles = maps * self.k_number.count(k)
                    loads = tiles if s.loads_each_tile else (maps if k == first else 0)
                    total += loads * cost.load + tiles * (cost.core + cost.store)
        return total

    def pipelined(self) -> int:
        """Sum over all tiles of what takes longer, and what both ends expose.

        A tile's cycles follow from its kind and those of its neighbours, so each such triple is
        looked at once.
        """
        tiles = self._in_order()
        total = self._moving(tiles[0]).load + self._moving(tiles[-1]).store
        triples = zip([None, *tiles[:-1]], tiles, [*tiles[1:], None], strict=True)
        for (before, tile, following), count in Counter(triples).items():
            total += count * self._beside(before, tile, following)
        return total

    def _beside(self, before: _Kind | None, kind: _Kind, following: _Kind | None) -> int:
        """Cycles of a tile beside the store of the one before and the load of the next."""
        moved = commands = 0
        if before is not None:
            cost = self._moving(before)
            moved, commands = cost.store, cost.store_commands
        if following is not None:
            cost = self._moving(following)
            moved, commands = moved + cost.load, commands + cost.load_commands
        tile = self._moving(kind)
        # While the queue is full, the host waits for room.
        filling = moved * max(0, commands - self.dma.queue_depth) // max(1, commands)
        first = tile.core // tile.triggers
        return max(moved, max(first, filling) + tile.core - first)

    def _moving(self, kind: _Kind) -> _TileCost:
        """The costs of a kind of tile; no load where it keeps the input of the one before."""
        k, y, x, loads = kind
        cost = self.of(k, y, x)
        return cost if loads else replace(cost, load=0, load_commands=0)

    def _in_order(self) -> list[_Kind]:
        """The kind of every tile."""
        s = self.schedule
        if s.loop_order == "kyx":
            outer = itertools.product(self.k_number, self.y_number, self.x_number)
            kinds = [(k, y, x) for k, y, x in outer]
            kept = len(kinds)
        else:
            inner = itertools.product(self.y_number, self.x_number, self.k_number)
            kinds = [(k, y, x) for y, x, k in inner]
            kept = len(self.k_number)
        each = s.loads_each_tile
        return [(k, y, x, each or number % kept == 0) for number, (k, y, x) in enumerate(kinds)]


def _triggers(trigger: Trigger, core: Core) -> int:
    """How often the core is started for a tile."""
    if isinstance(trigger, AnalogTrigger):
        return _blocks(trigger.c, trigger.c_pass)
    if isinstance(trigger, DenseTrigger) and isinstance(core, DigitalCore):
        return _blocks(trigger.k, core.lanes)
    return trigger.k if isinstance(trigger, ConvTrigger) and trigger.depthwise else 1


def _kinds(shapes: list[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """(first tile of each shape, number of the shape of each tile)."""
    first: dict[tuple[int, ...], int] = {}
    numbers = []
    order: dict[tuple[int, ...], int] = {}
    for position, shape in enumerate(shapes):
        first.setdefault(shape, position)
        numbers.append(order.setdefault(shape, len(order)))
    return list(first.values()), numbers
