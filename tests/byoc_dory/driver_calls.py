"""Helper: a tile program as a flat sequence of steps: every driver call, in order.

A transfer or trigger by itself is a driver call that ends when it is done.  If devices work in
parallel, `Queue`, `Prepare`, `Start`, `Finish` and `Wait` say when each of them begins and when it
must have ended.  Offsets are logical bytes, in L2 relative to the tensor, in L1 relative to its
start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from byoc_dory.tileloop.order import performed_actions
from byoc_dory.tileloop.pipeline import Action, Block, Trigger, Verb
from byoc_dory.tileloop.program import LoopTile, TileProgram
from byoc_dory.tileloop.values import evaluate


@dataclass(frozen=True)
class Load:
    """Move a block of input operand ``operand`` from L2 to L1."""

    operand: int
    l2_offset: int
    l1_offset: int
    block: Block[int]


@dataclass(frozen=True)
class Store:
    """Move a block of the output from L1 to L2."""

    l2_offset: int
    l1_offset: int
    block: Block[int]


@dataclass(frozen=True)
class Queue:
    """Hand a transfer to the DMA, which executes its transfers in order."""

    transfer: Load | Store


@dataclass(frozen=True)
class Wait:
    """Wait until the DMA has done all transfers queued."""


@dataclass(frozen=True)
class Prepare:
    """Write the registers of the core, which may still be working on something else."""

    trigger: Trigger


@dataclass(frozen=True)
class Start:
    """Start the prepared computation; if it takes several triggers, the first of them."""

    trigger: Trigger


@dataclass(frozen=True)
class Finish:
    """Run the other triggers, and wait for the core."""

    trigger: Trigger


Step: TypeAlias = Load | Store | Trigger | Queue | Wait | Prepare | Start | Finish


def loads_of(program: TileProgram, tile: LoopTile) -> tuple[Load, ...]:
    """Return the transfers into L1 that a tile needs, given what the previous tile left there."""
    return tuple(
        Load(
            number,
            evaluate(operand.offset, tile),
            tile.place(operand.name),
            program.block(operand, tile),
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


def steps_of(program: TileProgram) -> Iterator[Step]:
    """Yield every driver call of a layer, in order."""
    pipeline = program.pipeline
    for tile, action in performed_actions(program):
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
