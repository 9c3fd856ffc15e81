"""Bytes that a tile program moves between L2 and L1."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from byoc_dory.tileloop.program import Operand, TileProgram
from byoc_dory.tileloop.values import evaluate


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
    """Yield (one tile's indices, its kind on each axis, number of such) for each shape of tiles."""
    axes = program.axes
    for chosen in itertools.product(*[range(len(axis.kind_counts)) for axis in axes]):
        indices, count = [], 1
        for axis, kind in zip(axes, chosen, strict=True):
            indices.append(axis.kinds[0][kind])
            count *= axis.kind_counts[kind]
        yield tuple(indices), chosen, count


def moves_of_kind(program: TileProgram, operand: Operand, chosen: tuple[int, ...]) -> int:
    """Return how many tiles of a kind move an operand."""
    depth, count = program.depth(operand), 1
    for number, (axis, kind) in enumerate(zip(program.axes, chosen, strict=True)):
        if number < depth:
            count *= axis.kind_counts[kind]
        elif kind != 0:
            # Loops inside of the transfer are at their first tile, which is of the first kind.
            return 0
    return count


def traffic_of(program: TileProgram) -> Traffic:
    """Return the bytes of all transfers, and those that the accelerator fetches itself."""
    read = written = constants = 0
    for indices, chosen, count in kinds_of_tiles(program):
        tile = program.at(indices)
        for operand in program.loaded:
            moved = moves_of_kind(program, operand, chosen) * program.block(operand, tile).size
            if operand.constant:
                constants += moved
            else:
                read += moved
        if not program.result.resident:
            written += count * program.block(program.result, tile).size
        constants += count * evaluate(program.compute.fetched, tile)
    return Traffic(read, written, constants)
