"""Check of the order of a pipeline's actions.

The actions of the first tiles are performed on symbols instead of data: each buffer in L1 holds the
number of the tile that it was filled for.  The order is wrong if an action finds another tile's
data in its buffer, or touches a buffer that a transfer or the device may still be using.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from byoc_dory.errors import TileProgramError
from byoc_dory.tileloop.pipeline import Action, Pipeline, Verb
from byoc_dory.tileloop.program import LoopTile, Operand, TileProgram

_DISTANCE = "distances must not be negative"
_ONCE = (Verb.LOAD, Verb.PREPARE, Verb.START, Verb.COMPUTE, Verb.STORE)


def check_order(program: TileProgram) -> None:
    """Check that every tile is computed from its own data, and its own result stored.

    Raises:
        TileProgramError: an action comes too early or too late, or is missing; the message names
            it, the tile and the tensor, and says where it belongs.
    """
    verbs = [action.verb for action in program.pipeline.actions]
    for verb in _ONCE:
        if verbs.count(verb) > 1:
            raise program.error(
                f"pipeline '{program.pipeline.name}': '{verb.value}' appears more than once",
                f"list '{verb.value}' once; only waiting may be repeated",
            )
    if Verb.START not in verbs and Verb.COMPUTE not in verbs:
        raise program.error(
            f"pipeline '{program.pipeline.name}': tiles are never computed",
            "add 'compute', or 'start' and 'finish'",
        )
    if Verb.STORE not in verbs and not program.result.resident:
        raise program.error(
            f"pipeline '{program.pipeline.name}': the result is never stored", "add 'store'"
        )
    _rehearse(_Shape.of_program(_first_tiles(program, _tiles_to_rehearse(program))))


def performed_actions(program: TileProgram) -> Iterator[tuple[LoopTile, Action]]:
    """Yield every action of a layer's pipeline with its tile, in order."""
    pipeline = program.pipeline
    tiles = list(program.order())
    for round_ in range(len(tiles) + pipeline.distance):
        for action in pipeline.actions:
            number = round_ - action.distance
            if 0 <= number < len(tiles):
                yield tiles[number], action


@dataclass(frozen=True)
class _Shape:
    """What the outcome of a rehearsal depends on: the layers of a network have few of these.

    Attributes:
        pipeline: order of the actions.
        counts: number of tiles along each axis.
        tensors: of each operand and the result: name, whether it is resident or preloaded, number
            of buffers, and number of loops around its transfer.
        several: whether a computation may take several starts.
        copied: operands that are copied before a tile is started.
        program: a program of this shape.
    """

    pipeline: Pipeline
    counts: tuple[int, ...]
    tensors: tuple[tuple[str, bool, bool, int, int], ...]
    several: bool
    copied: frozenset[str]
    program: TileProgram = field(compare=False)

    @classmethod
    def of_program(cls, program: TileProgram) -> _Shape:
        """Return the shape of a program."""
        tensors = [
            (
                each.name,
                each.resident,
                each.preloaded,
                program.buffers(each),
                program.depth(each),
            )
            for each in (*program.operands, program.result)
        ]
        counts = tuple(axis.count for axis in program.axes)
        several, copied = program.compute.several, program.compute.copied
        return cls(program.pipeline, counts, tuple(tensors), several, copied, program)


@lru_cache(256)
def _rehearse(shape: _Shape) -> None:
    """Perform a program's actions; an error is not kept, so that it names its own layer."""
    _Rehearsal(shape.program).run()


def _tiles_to_rehearse(program: TileProgram) -> int:
    """Return how many tiles along each axis are enough to meet every conflict.

    Conflicts arise between tiles that are under way at a time, or use the same buffer one after the
    other.  Tiles further apart than the pipeline's distance and the buffers together do not meet.
    """
    buffers = max(operand.buffers for operand in program.tensor.values())
    return program.pipeline.distance + buffers + 2


def _first_tiles(program: TileProgram, count: int) -> TileProgram:
    """Return the program of the first ``count`` tiles along each axis."""
    axes = tuple(replace(axis, spans=axis.spans[:count]) for axis in program.axes)
    return replace(program, axes=axes)


class _Buffer(NamedTuple):
    """A buffer in L1: the name of its tensor, and its number."""

    tensor: str
    number: int


class _Content(NamedTuple):
    """What a load has put into a buffer: a number that tells the loads apart, and its tile."""

    move: int
    tile: LoopTile


@dataclass(frozen=True)
class _Transfer:
    """A transfer that the DMA may be executing."""

    verb: Verb
    tile: LoopTile
    buffer: _Buffer


class _Rehearsal:
    """The buffers, the DMA's queue and the device while a pipeline is performed."""

    def __init__(self, program: TileProgram) -> None:
        self.program, self.pipeline = program, program.pipeline
        self.loaded: dict[_Buffer, _Content] = {}
        self.results: dict[_Buffer, LoopTile] = {}
        self.transfers: list[_Transfer] = []
        self.prepared: LoopTile | None = None
        self.running: list[LoopTile] = []
        self.computed: set[int] = set()
        self.stored: set[int] = set()
        self.actions: dict[Verb, Callable[[LoopTile], None]] = {
            Verb.LOAD: self._load,
            Verb.WAIT: self._wait,
            Verb.ARRIVE: self._arrive,
            Verb.PREPARE: self._prepare,
            Verb.START: self._start,
            Verb.FINISH: self._finish,
            Verb.COMPUTE: self._compute,
            Verb.STORE: self._store,
            Verb.SETTLE: self._settle,
        }

    def run(self) -> None:
        """Perform all actions."""
        for tile, action in performed_actions(self.program):
            self.actions[action.verb](tile)
        self._end()

    # ------------------------------------------------------------------ transfers

    def _load(self, tile: LoopTile) -> None:
        for operand in self.program.loaded:
            if not self.program.moved_at(operand, tile.indices):
                continue
            if self.program.waits_for_readers(operand):
                self.running = [other for other in self.running if other.number >= tile.number]
            buffer = self._buffer(operand, tile)
            copied = operand.name in self.program.compute.copied
            for other in () if copied else self.running:
                if self._buffer(operand, other) == buffer:
                    raise self._error(
                        f"'load' of {_text(tile)} overwrites '{operand.name}', "
                        f"which {_text(other)} is being computed from",
                        f"'load' belongs after the 'finish' of the tile that used the buffer before"
                        f" ('{operand.name}' has {self.program.buffers(operand)})",
                    )
            if tile.number or not operand.preloaded:
                self._begin(Verb.LOAD, tile, buffer)
            move = self.program.moves_before(operand, tile.indices)
            self.loaded[buffer] = _Content(move, tile)

    def _store(self, tile: LoopTile) -> None:
        result = self.program.result
        if result.resident:
            return
        if tile.number not in self.computed:
            raise self._error(
                f"'store' of {_text(tile)} comes before it is computed",
                "'store' belongs after the 'compute' or 'finish' of the same tile",
            )
        if tile in self.running:
            raise self._error(
                f"'store' of {_text(tile)} comes before its 'finish'",
                "'store' belongs after the 'finish' of the same tile",
            )
        self._begin(Verb.STORE, tile, self._buffer(result, tile))
        self.stored.add(tile.number)

    def _begin(self, verb: Verb, tile: LoopTile, buffer: _Buffer) -> None:
        if not self.pipeline.blocking:
            self.transfers.append(_Transfer(verb, tile, buffer))

    def _wait(self, tile: LoopTile) -> None:
        if self.program.loaded or self.program.pipelined:
            self.transfers.clear()

    def _arrive(self, tile: LoopTile) -> None:
        self._await(lambda one: one.verb is Verb.LOAD and one.tile.number <= tile.number)
        if self.program.waits_for_stores:
            buffer = self._buffer(self.program.result, tile)
            self._await(lambda one: one.verb is Verb.STORE and one.buffer == buffer)

    def _settle(self, tile: LoopTile) -> None:
        self._await(lambda one: one.verb is Verb.STORE and one.tile == tile)

    def _await(self, condition: Callable[[_Transfer], bool]) -> None:
        """Wait for the last transfer that is wanted; the DMA executes them in order."""
        places = [place for place, one in enumerate(self.transfers) if condition(one)]
        if places:
            del self.transfers[: places[-1] + 1]

    # ------------------------------------------------------------------ computation

    def _prepare(self, tile: LoopTile) -> None:
        if self.running and self.program.compute.several:
            raise self._error(
                f"'prepare' of {_text(tile)} overwrites the registers of "
                f"{_text(self.running[0])}, which takes several starts",
                "'prepare' belongs after the 'finish' of the tile before",
            )
        self.prepared = tile

    def _start(self, tile: LoopTile) -> None:
        if self.pipeline.has(Verb.PREPARE):
            if self.running:
                raise self._error(
                    f"'start' of {_text(tile)} comes before the 'finish' of "
                    f"{_text(self.running[0])}",
                    "'start' belongs after the 'finish' of the tile before",
                )
            if self.prepared is None or self.prepared.number != tile.number:
                raise self._error(
                    f"'start' of {_text(tile)} finds the registers of another tile",
                    "'prepare' belongs before the 'start' of the same tile, with no other between",
                )
        self._begin_computing(Verb.START, tile)
        self.running.append(tile)

    def _compute(self, tile: LoopTile) -> None:
        self._begin_computing(Verb.COMPUTE, tile)

    def _begin_computing(self, verb: Verb, tile: LoopTile) -> None:
        for operand in self.program.loaded:
            self._read(verb, tile, operand)
        if not self.program.result.resident:
            self._write(verb, tile)
        self.computed.add(tile.number)

    def _read(self, verb: Verb, tile: LoopTile, operand: Operand) -> None:
        buffer = self._buffer(operand, tile)
        content = self.loaded.get(buffer)
        expected_move = self.program.moves_before(operand, tile.indices)
        if content is None or content.move < expected_move:
            raise self._error(
                f"'{verb.value}' of {_text(tile)} reads '{operand.name}' before its 'load'",
                f"'{verb.value}' belongs after the 'load' of the same tile",
            )
        if content.move > expected_move:
            raise self._error(
                f"'load' of {_text(content.tile)} overwrites '{operand.name}' "
                f"before '{verb.value}' of {_text(tile)} reads it",
                f"'load' belongs after the '{verb.value}' of the tile that used the buffer before "
                f"('{operand.name}' has {self.program.buffers(operand)})",
            )
        if any(one.buffer == buffer for one in self.transfers):
            raise self._error(
                f"'{verb.value}' of {_text(tile)} reads '{operand.name}' before it has arrived",
                f"'wait' or 'arrive' of the same tile belongs between 'load' and '{verb.value}'",
            )

    def _write(self, verb: Verb, tile: LoopTile) -> None:
        result = self.program.result
        buffer = self._buffer(result, tile)
        content = self.results.get(buffer)
        if content is not None and content.number not in self.stored:
            raise self._error(
                f"'{verb.value}' of {_text(tile)} overwrites the result of {_text(content)} "
                "before its 'store'",
                f"'store' belongs before the '{verb.value}' of the next tile in the same buffer "
                f"('{result.name}' has {self.program.buffers(result)})",
            )
        if any(one.buffer == buffer for one in self.transfers):
            raise self._error(
                f"'{verb.value}' of {_text(tile)} overwrites a result that is being stored",
                f"'wait', or 'settle' of the tile before, belongs between its 'store' and "
                f"'{verb.value}'",
            )
        self.results[buffer] = tile

    def _finish(self, tile: LoopTile) -> None:
        if tile.number not in self.computed:
            raise self._error(
                f"'finish' of {_text(tile)} comes before its 'start'",
                "'finish' belongs after the 'start' of the same tile",
            )
        # A device executes what it was given in order.
        self.running = [other for other in self.running if other.number > tile.number]

    def _end(self) -> None:
        program = self.program
        for tile in program.order():
            if tile.number not in self.computed:
                raise self._error(f"{_text(tile)} is never computed", _DISTANCE)
            if not program.result.resident and tile.number not in self.stored:
                raise self._error(f"the result of {_text(tile)} is never stored", _DISTANCE)
        if self.running:
            raise self._error(
                f"nothing waits for the end of {_text(self.running[0])}",
                "add 'finish' after 'start'",
            )
        # Without 'settle', the layer ends with waiting for all transfers.
        if self.pipeline.has(Verb.SETTLE) and self.transfers:
            raise self._error(
                f"'{self.transfers[0].verb.value}' of {_text(self.transfers[0].tile)} is still "
                "under way at the end of the layer",
                "'settle' belongs after the 'store' of the same tile",
            )

    # ------------------------------------------------------------------ names

    def _buffer(self, tensor: Operand, tile: LoopTile) -> _Buffer:
        """Return the buffer that a tile uses of a tensor that is moved."""
        number = self.program.moves_before(tensor, tile.indices)
        return _Buffer(tensor.name, number % self.program.buffers(tensor))

    def _error(self, what: str, hint: str) -> TileProgramError:
        return self.program.error(f"pipeline '{self.pipeline.name}': {what}", hint)


def _text(tile: LoopTile) -> str:
    """Return a tile's name in messages."""
    return f"tile {tile.number}"
