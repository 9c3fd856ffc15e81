"""Predicted cycles of a tile program, with transfers and computation in parallel, and bytes moved.

The host carries out the actions of the pipeline; transfers queue up, and a device computes in
parallel with the host.  The author of an accelerator gives the cost of one transfer and of one
computation (`Costs`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, TypeAlias

from byoc_dory.plan import Left
from byoc_dory.tileloop.pipeline import Block, Verb
from byoc_dory.tileloop.program import LoopTile, Operand, TileProgram
from byoc_dory.tileloop.values import evaluate


@dataclass(frozen=True)
class ComputeCost:
    """The cycles of computing a tile.

    Attributes:
        cycles: cycles from its start to its end.
        first: the part of these until the host is needed again, to start the rest; None: the host
            is not needed.
        fill: additional cycles if nothing was computed before.
        after: host cycles that complete the tile after its end.
        before: host cycles that prepare the tile before its start.
    """

    cycles: int
    first: int | None = None
    fill: int = 0
    after: int = 0
    before: int = 0


@dataclass(frozen=True)
class Moved:
    """The cost of one transfer: cycles of the mover, number of commands.

    ``host``: host cycles for starting it, beyond those of any transfer.
    """

    cycles: int
    commands: int = 0
    host: int = 0


@dataclass(frozen=True)
class Overheads:
    """Host cycles for starting and waiting, not included in transfers and computations.

    Attributes:
        order: cycles for starting a transfer.
        latency: cycles from then until the DMA begins, if it is idle.
        wait: cycles for noticing that something is done.
        start: cycles for starting a computation.
        call: additional cycles per layer.
    """

    order: int = 0
    latency: int = 0
    wait: int = 0
    start: int = 0
    call: int = 0


@dataclass(frozen=True)
class Costs:
    """The cost of an accelerator's calls.

    Attributes:
        compute: returns the work of one tile, given its call.
        move: returns the cost of transferring a block.
        overheads: host cycles.
        queue: number of commands that can be under way at once; the host waits for room in the
            queue.
    """

    compute: Callable[[Any], ComputeCost]
    move: Callable[[Block[int]], Moved]
    overheads: Overheads = field(default_factory=Overheads)
    queue: float = inf


class Price(NamedTuple):
    """The costs of a kind of tile; ``loads`` has one per operand, in the program's order."""

    work: ComputeCost
    loads: tuple[Moved | None, ...]
    store: Moved | None


@dataclass
class Prices:
    """The prices of a layer's tiles of one size.

    Attributes:
        kinds: prices of tiles, by the indices of the first tile of each kind.
        least: the sum of all computations or of all transfers in cycles, whichever is larger: no
            number of buffers makes the layer faster.  0: not known yet.
    """

    kinds: dict[tuple[int, ...], Price] = field(default_factory=dict)
    least: int = 0


class _Anywhere(LoopTile):
    """A tile without a place in L1, because its place does not affect the cost."""

    __slots__ = ()

    def place(self, operand: str) -> int:
        """Return 0 for every operand."""
        return 0


def _kind_price(program: TileProgram, costs: Costs, indices: tuple[int, ...]) -> Price:
    tile = _Anywhere(program, 0, indices)

    def moved(operand: Operand) -> Moved | None:
        if operand.resident:
            return None
        return costs.move(program.block(operand, tile))

    work = costs.compute(program.call(tile))
    return Price(
        work, tuple([moved(operand) for operand in program.operands]), moved(program.result)
    )


def predicted_cycles(program: TileProgram, costs: Costs, known: Prices | None = None) -> int:
    """Return the cycles of a layer executed by the program.

    If nothing runs in parallel, tiles of the same kind cost the same wherever they are, so they are
    counted instead of simulated.

    Args:
        program: of the layer.
        costs: costs of its transfers and calls.
        known: prices already known for this layer's tiles of these sizes; new ones are added.
    """
    known = Prices() if known is None else known
    alone = program.preload is None and not any([each.preloaded for each in program.operands])
    if alone and not program.pipelined and costs.overheads == Overheads():
        return _sequential_cycles(program, costs, known)
    return _Timeline(program, costs, known).run()


def left_by(program: TileProgram, costs: Costs, tiles: int) -> Left:
    """Return what a program that leaves its last tile leaves to the next layer.

    Args:
        program: of a layer that leaves it.
        costs: costs of its transfers and calls.
        tiles: those of the next layer that do not depend on it, and are started before.
    """
    timeline = _Timeline(program, costs, Prices())
    end = timeline.run()
    return Left(tiles, max(0, timeline.device - end), timeline.tiles[-1].work.after)


def _sequential_cycles(program: TileProgram, costs: Costs, prices: Prices) -> int:
    """Return the sum over all tiles."""
    work = fill = transfers = 0
    for indices, kind_of_tile, count in kinds_of_tiles(program):
        cost = prices.kinds.get(indices)
        if cost is None:
            cost = prices.kinds[indices] = _kind_price(program, costs, indices)
        work += count * (cost.work.before + cost.work.cycles + cost.work.after)
        fill += count * cost.work.fill
        if cost.store is not None:
            transfers += count * cost.store.cycles
        for operand, moved in zip(program.operands, cost.loads, strict=True):
            if moved is not None:
                transfers += moves_of_kind(program, operand, kind_of_tile) * moved.cycles
    prices.least = max(work, transfers)
    return work + fill + transfers


class _Timeline:
    """The times when the host, the DMA and the device finish what has been started so far.

    This runs for every tile size that a search considers, so it goes through tiles by number, with
    the costs and loads of each kind computed once.
    """

    def __init__(self, program: TileProgram, costs: Costs, prices: Prices) -> None:
        self.program, self.known, self.overheads = program, prices, costs.overheads
        self.blocking = program.pipeline.blocking
        self.queue = costs.queue
        self.order, self.latency = self.overheads.order, self.overheads.latency
        self.host = self.overheads.call
        self.dma = 0
        self.device = 0 if program.left is None else program.left.cycles
        self.transfers = 0  # cycles of all transfers
        self.batch = (0, 0, 0)  # transfers since the DMA was idle: begin, cycles, commands
        self.tiles = _tile_prices(program, costs, prices)
        # Each operand is loaded once in this many tiles.
        self.every = [
            program.tiles // program.moves(operand) if not operand.resident else 0
            for operand in program.operands
        ]
        self.preloaded = [operand.preloaded for operand in program.operands]
        preload = program.preload
        self.preload = None if preload is None else costs.move(_run(preload.bytes))
        self.watched = [
            every
            for operand, every in zip(program.operands, self.every, strict=True)
            if program.waits_for_readers(operand)
        ]
        self.arrived = [0] * len(self.tiles)
        self.ends = [0] * len(self.tiles)

    def run(self) -> int:
        """Simulate all rounds of the pipeline."""
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
        self.known.least = max(self.transfers, sum([tile.work.cycles for tile in self.tiles]))
        return max(self.host, self.dma) + self.overheads.wait

    def _load(self, number: int) -> None:
        if number:
            for every in self.watched:
                if number % every == 0:
                    self._wait(self.ends[number - 1])
                    break
        loads = self.tiles[number].loads
        for every, moved, is_there in zip(self.every, loads, self.preloaded, strict=True):
            if moved is not None and number % every == 0 and (number or not is_there):
                self._order(moved)
        self.arrived[number] = self.dma

    def _store(self, number: int) -> None:
        store = self.tiles[number].store
        if store is not None:
            self._order(store)

    def _order(self, transfer_cost: Moved) -> None:
        self.transfers += transfer_cost.cycles
        self.host += self.order + transfer_cost.host
        ready = self.host + self.latency
        if self.blocking:
            self.host = self.dma = ready + transfer_cost.cycles
            return
        begin, cycles, commands = (ready, 0, 0) if ready >= self.dma else self.batch
        cycles += transfer_cost.cycles
        commands += transfer_cost.commands
        self.batch = (begin, cycles, commands)
        if commands > self.queue:
            # Let the host wait while the queue is full.
            filling = cycles * (commands - int(self.queue)) // commands
            self.host = max(self.host, begin + filling)
        self.dma = (ready if ready > self.dma else self.dma) + transfer_cost.cycles

    def _arrive(self, number: int) -> None:
        self._wait(self.arrived[number])

    def _wait_all(self, number: int) -> None:
        self._wait(self.dma)

    def _settle(self, number: int) -> None:
        if not self.program.result.resident:
            self._wait(self.dma)

    def _start(self, number: int) -> None:
        work = self.tiles[number].work
        self.host += work.before
        left = self.program.left
        if left is None or number != left.tiles:
            self.host += self.overheads.start
        elif left.cycles == 0:
            self.host = max(self.host + self.overheads.start, left.after)
        elif self.host >= left.cycles:
            self.host += max(self.overheads.start, left.after)
        else:
            self.host = max(self.host + self.overheads.start, left.cycles)
            self.host += self.overheads.wait + left.after
        first = work.cycles if work.first is None else work.first
        fill = work.fill if number == 0 or not self.program.pipelined else 0
        self.device = max(self.device, self.host) + fill + first
        self.ends[number] = self.device
        self._preload(number)

    def _finish(self, number: int) -> None:
        if self.program.leaves and number == len(self.tiles) - 1:
            return
        work = self.tiles[number].work
        self._wait(self.ends[number])
        if work.first is not None:
            # The host starts the rest after the first start.
            self.host += work.cycles - work.first
            self.device = self.ends[number] = self.host
        self.host += work.after

    def _compute(self, number: int) -> None:
        work = self.tiles[number].work
        self._preload(number)
        self.host += work.before + self.overheads.start + work.cycles + work.fill + work.after

    def _preload(self, number: int) -> None:
        if self.preload is not None and number == len(self.tiles) - 1:
            self._order(self.preload)

    def _wait(self, until: int) -> None:
        self.host = (until if until > self.host else self.host) + self.overheads.wait


def _run(size: int) -> Block[int]:
    return Block(1, 1, size, size, size, size, size)


def _tile_prices(program: TileProgram, costs: Costs, prices: Prices) -> list[Price]:
    """Return the prices of all tiles in the order of execution, computing each kind once."""
    tile_prices = []
    # For each tile along an axis, the first tile of the same kind.
    firsts = [[axis.kinds[0][kind] for kind in axis.kinds[1]] for axis in program.axes]
    for indices in itertools.product(*firsts):
        price = prices.kinds.get(indices)
        if price is None:
            price = prices.kinds[indices] = _kind_price(program, costs, indices)
        tile_prices.append(price)
    return tile_prices


@dataclass(frozen=True)
class Traffic:
    """Bytes that a layer moves to and from L2, including halos and padding.

    Attributes:
        read: bytes of operands.
        written: bytes of the result.
        constants: bytes of packed weights and tables, counting repeated reads.
    """

    read: int
    written: int
    constants: int


Indices: TypeAlias = tuple[int, ...]


def kinds_of_tiles(program: TileProgram) -> Iterator[tuple[Indices, tuple[int, ...], int]]:
    """Yield (one tile's indices, its kind on each axis, number of tiles) for each tile shape."""
    axes = program.axes
    for kind_of_tile in itertools.product(*[range(len(axis.kind_counts)) for axis in axes]):
        indices, count = [], 1
        for axis, kind in zip(axes, kind_of_tile, strict=True):
            indices.append(axis.kinds[0][kind])
            count *= axis.kind_counts[kind]
        yield tuple(indices), kind_of_tile, count


def moves_of_kind(program: TileProgram, operand: Operand, kind_of_tile: tuple[int, ...]) -> int:
    """Return how many tiles of a kind move an operand."""
    depth, count = program.depth(operand), 1
    for number, (axis, kind) in enumerate(zip(program.axes, kind_of_tile, strict=True)):
        if number < depth:
            count *= axis.kind_counts[kind]
        elif kind != 0:
            # Loops inside of the transfer are at their first tile, which is of the first kind.
            return 0
    return count


def traffic_of(program: TileProgram) -> Traffic:
    """Return the bytes of all transfers, and those that the accelerator fetches itself."""
    read = written = constants = 0
    for indices, kind_of_tile, count in kinds_of_tiles(program):
        tile = program.at(indices)
        for operand in program.loaded:
            times = moves_of_kind(program, operand, kind_of_tile)
            if operand.preloaded and not any(indices):
                times -= 1
            moved = times * program.block(operand, tile).size
            if operand.constant:
                constants += moved
            else:
                read += moved
        if not program.result.resident:
            written += count * program.block(program.result, tile).size
        constants += count * evaluate(program.compute.fetched, tile)
    if program.preload is not None:
        constants += program.preload.bytes
    return Traffic(read, written, constants)
