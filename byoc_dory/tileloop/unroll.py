"""A tile program as a flat sequence of steps: every driver call, in order."""

from __future__ import annotations

from collections.abc import Iterator

from byoc_dory.tileloop.pipeline import Action, Verb
from byoc_dory.tileloop.program import LoopTile, TileProgram
from byoc_dory.tileloop.steps import Finish, Load, Prepare, Queue, Start, Step, Store, Wait
from byoc_dory.tileloop.values import evaluate

__all__ = ["loads_of", "performed", "steps_of", "store_of"]


def loads_of(program: TileProgram, tile: LoopTile) -> tuple[Load, ...]:
    """Return the transfers into L1 that a tile needs, given what the previous tile left there."""
    return tuple(
        Load(
            number,
            evaluate(operand.offset, tile),
            tile.place(operand.name),
            program.block(operand, tile),
            operand.block.by_rows,
        )
        for number, operand in enumerate(program.operands)
        if not operand.resident and program.moved_at(operand, tile.indices)
    )


def store_of(program: TileProgram, tile: LoopTile) -> Store | None:
    """Return the transfer of a tile's result to L2; None if it stays in L1."""
    result = program.result
    if result.resident:
        return None
    return Store(
        evaluate(result.offset, tile), tile.place(result.name), program.block(result, tile)
    )


def performed(program: TileProgram) -> Iterator[tuple[LoopTile, Action]]:
    """Yield every action of a layer's pipeline with its tile, in order."""
    pipeline = program.pipeline
    tiles = list(program.order())
    for round_ in range(len(tiles) + pipeline.distance):
        for action in pipeline.actions:
            number = round_ - action.distance
            if 0 <= number < len(tiles):
                yield tiles[number], action


def steps_of(program: TileProgram) -> Iterator[Step]:
    """Yield every driver call of a layer, in order."""
    pipeline = program.pipeline
    for tile, action in performed(program):
        yield from _done(program, tile, action)
    if not (pipeline.blocking or pipeline.has(Verb.SETTLE) or program.result.resident):
        yield Wait()


_OF_DEVICE: dict[Verb, type[Prepare] | type[Start] | type[Finish]] = {
    Verb.PREPARE: Prepare,
    Verb.START: Start,
    Verb.FINISH: Finish,
}


def _done(program: TileProgram, tile: LoopTile, action: Action) -> Iterator[Step]:
    blocking, verb = program.pipeline.blocking, action.verb
    if verb is Verb.LOAD:
        for load in loads_of(program, tile):
            yield load if blocking else Queue(load)
    elif verb is Verb.STORE:
        store = store_of(program, tile)
        if store is not None:
            yield store if blocking else Queue(store)
    elif verb in (Verb.WAIT, Verb.ARRIVE):
        if program.loaded or program.pipelined:
            yield Wait()
    elif verb is Verb.SETTLE:
        if not program.result.resident:
            yield Wait()
    else:
        trigger = program.call(tile)
        if verb is Verb.COMPUTE:
            yield trigger
        else:
            yield _OF_DEVICE[verb](trigger)
