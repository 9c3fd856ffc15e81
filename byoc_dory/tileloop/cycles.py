"""Predicted cycles of a tile program: what transfers and computation take, side by side.

The host goes through the actions of the pipeline; transfers queue up behind each other, and a
device computes beside the host.  What an accelerator's author gives is what one transfer and one
computation cost (`Costs`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, TypeAlias

from byoc_dory.tileloop.pipeline import Verb
from byoc_dory.tileloop.program import Operand, Tile, TileProgram
from byoc_dory.tileloop.steps import Block
from byoc_dory.tileloop.traffic import kinds_of_tiles, moves_of_kind

__all__ = [
    "Costs",
    "Moved",
    "Overheads",
    "Price",
    "Prices",
    "Work",
    "predicted_cycles",
    "simulated_cycles",
]


@dataclass(frozen=True)
class Work:
    """What computing a tile takes.

    Attributes:
        cycles: from its start to its end.
        first: of these, those until the host is needed again, to start what follows; None: it is
            not needed.
        fill: cycles besides, where nothing was computed before.
    """

    cycles: int
    first: int | None = None
    fill: int = 0


@dataclass(frozen=True)
class Moved:
    """What one transfer takes: cycles of the mover, in so many commands."""

    cycles: int
    commands: int = 0


@dataclass(frozen=True)
class Overheads:
    """Host cycles of what it orders and waits for, where transfers and work do not contain them.

    Attributes:
        order: of ordering a transfer.
        latency: from then until the DMA begins, if it has nothing else to do.
        wait: of finding that something is done.
        start: of ordering a computation.
        call: of a layer besides.
    """

    order: int = 0
    latency: int = 0
    wait: int = 0
    start: int = 0
    call: int = 0


@dataclass(frozen=True)
class Costs:
    """What an accelerator's calls cost.

    Attributes:
        compute: of what it is told to do for one tile.
        move: of a transfer of a block; the second argument says whether it goes row by row.
        overheads: of the host.
        queue: commands that may be under way at once; the host waits for room in the queue.
    """

    compute: Callable[[Any], Work]
    move: Callable[[Block, bool], Moved]
    overheads: Overheads = field(default_factory=Overheads)
    queue: float = inf


class Price(NamedTuple):
    """What a kind of tile takes; ``loads`` of each operand in the program's order."""

    work: Work
    loads: tuple[Moved | None, ...]
    store: Moved | None


Prices: TypeAlias = dict[tuple[int, ...], Price]
"""What tiles take, by the indices of the first tile of a kind."""


class _Anywhere(Tile):
    """A tile wherever in L1: that costs nothing."""

    __slots__ = ()

    def place(self, operand: str) -> int:
        """No place in particular."""
        return 0


def _price(program: TileProgram, costs: Costs, indices: tuple[int, ...]) -> Price:
    tile = _Anywhere(program, 0, indices)

    def moved(operand: Operand) -> Moved | None:
        if operand.resident:
            return None
        return costs.move(program.block(operand, tile), operand.block.by_rows)

    work = costs.compute(program.call(tile))
    return Price(work, tuple(map(moved, program.operands)), moved(program.result))


def predicted_cycles(program: TileProgram, costs: Costs, known: Prices | None = None) -> int:
    """Cycles of a layer that follows the program.

    Where nothing runs beside anything else, tiles of one kind take the same wherever they are, and
    are counted instead of gone through.

    Args:
        program: of the layer.
        costs: of its transfers and calls.
        known: prices of this layer's tiles of these sizes that are known; others are added.
    """
    known = {} if known is None else known
    if not program.pipelined and costs.overheads == Overheads():
        return _in_turn(program, costs, known)
    return _Timeline(program, costs, known).run()


def _in_turn(program: TileProgram, costs: Costs, known: Prices) -> int:
    """The sum over all tiles."""
    total = 0
    for tile, chosen, count in kinds_of_tiles(program):
        cost = known.get(tile.indices)
        if cost is None:
            cost = known[tile.indices] = _price(program, costs, tile.indices)
        total += count * (cost.work.cycles + cost.work.fill)
        if cost.store is not None:
            total += count * cost.store.cycles
        for operand, moved in zip(program.operands, cost.loads, strict=True):
            if moved is not None:
                total += moves_of_kind(program, operand, chosen) * moved.cycles
    return total


def simulated_cycles(program: TileProgram, costs: Costs) -> int:
    """The same, by going through all tiles."""
    return _Timeline(program, costs, {}).run()


class _Timeline:
    """When the host, the DMA and the device are done with what was ordered so far.

    This is asked of every tile size that a search considers, and so goes through tiles by number,
    with what each kind costs and loads worked out once.
    """

    def __init__(self, program: TileProgram, costs: Costs, known: Prices) -> None:
        self.program, self.costs, self.overheads = program, costs, costs.overheads
        self.blocking = program.pipeline.blocking
        self.queue = costs.queue
        self.order, self.latency = self.overheads.order, self.overheads.latency
        self.host = self.overheads.call
        self.dma = 0
        self.device = 0
        self.batch = (0, 0, 0)  # transfers since the DMA was idle: begin, cycles, commands
        self.tiles = _tiles(program, costs, known)
        # For each operand, it is loaded every so many tiles.
        self.every = [
            program.tiles // program.moves(operand) if not operand.resident else 0
            for operand in program.operands
        ]
        self.watched = [
            every
            for operand, every in zip(program.operands, self.every, strict=True)
            if program.waits_for_readers(operand)
        ]
        self.arrived = [0] * len(self.tiles)
        self.ends = [0] * len(self.tiles)

    def run(self) -> int:
        """Go through all rounds of the pipeline."""
        verbs = {
            Verb.LOAD: self._load,
            Verb.STORE: self._store,
            Verb.ARRIVE: self._arrive,
            Verb.WAIT: self._wait_all,
            Verb.SETTLE: self._settle,
            Verb.START: self._start,
            Verb.FINISH: self._finish,
            Verb.COMPUTE: self._compute,
        }
        pipeline = self.program.pipeline
        actions = [
            (verbs[action.verb], action.distance)
            for action in pipeline.actions
            if action.verb in verbs
        ]
        count = len(self.tiles)
        for round_ in range(count + pipeline.distance):
            for action, distance in actions:
                if 0 <= round_ - distance < count:
                    action(round_ - distance)
        return max(self.host, self.dma) + self.overheads.wait

    def _load(self, number: int) -> None:
        if number:
            for every in self.watched:
                if number % every == 0:
                    self._wait(self.ends[number - 1])
                    break
        for every, moved in zip(self.every, self.tiles[number].loads, strict=True):
            if moved is not None and number % every == 0:
                self._order(moved)
        self.arrived[number] = self.dma

    def _store(self, number: int) -> None:
        store = self.tiles[number].store
        if store is not None:
            self._order(store)

    def _order(self, moved: Moved) -> None:
        self.host += self.order
        ready = self.host + self.latency
        if self.blocking:
            self.host = self.dma = ready + moved.cycles
            return
        begin, cycles, commands = (ready, 0, 0) if ready >= self.dma else self.batch
        cycles += moved.cycles
        commands += moved.commands
        self.batch = (begin, cycles, commands)
        if commands > self.queue:
            # While the queue is full, the host waits for room.
            filling = cycles * (commands - int(self.queue)) // commands
            self.host = max(self.host, begin + filling)
        self.dma = (ready if ready > self.dma else self.dma) + moved.cycles

    def _arrive(self, number: int) -> None:
        self._wait(self.arrived[number])

    def _wait_all(self, number: int) -> None:
        self._wait(self.dma)

    def _settle(self, number: int) -> None:
        if not self.program.result.resident:
            self._wait(self.dma)

    def _start(self, number: int) -> None:
        work = self.tiles[number].work
        self.host += self.overheads.start
        first = work.cycles if work.first is None else work.first
        fill = work.fill if number == 0 or not self.program.pipelined else 0
        self.device = max(self.device, self.host) + fill + first
        self.ends[number] = self.device

    def _finish(self, number: int) -> None:
        work = self.tiles[number].work
        self._wait(self.ends[number])
        if work.first is not None:
            # What follows the first start is started by the host.
            self.host += work.cycles - work.first
            self.device = self.ends[number] = self.host

    def _compute(self, number: int) -> None:
        work = self.tiles[number].work
        self.host += self.overheads.start + work.cycles + work.fill

    def _wait(self, until: int) -> None:
        self.host = (until if until > self.host else self.host) + self.overheads.wait


def _tiles(program: TileProgram, costs: Costs, known: Prices) -> list[Price]:
    """The prices of all tiles in the order of execution, each kind looked at once."""
    found = []
    # Of each tile along an axis, the first tile that is of its kind.
    firsts = [[axis.kinds[0][kind] for kind in axis.kinds[1]] for axis in program.axes]
    for indices in itertools.product(*firsts):
        price = known.get(indices)
        if price is None:
            price = known[indices] = _price(program, costs, indices)
        found.append(price)
    return found
