"""Tile programs of layers on the cluster: what the cores and ITA have in common.

A layer's result is a matrix; a tile is a range of its rows (``y``) by a range of its columns
(``k``).  Row ranges are outermost, so that the rows of an operand are loaded once for all column
ranges; operands that are needed as a whole are loaded with the first tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.layers import Layer
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Dma
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.cycles import Moved
from byoc_dory.tileloop.pipeline import Action, Pipeline, Verb
from byoc_dory.tileloop.program import BlockOf, Compute, Operand, TileProgram
from byoc_dory.tileloop.steps import Block, Trigger

__all__ = [
    "CORES_BESIDE",
    "CORES_IN_TURN",
    "ITA_BESIDE",
    "ITA_IN_TURN",
    "Call",
    "call",
    "RowsOf",
    "moved",
    "result_of",
    "row_program",
    "transfer_cycles",
    "weights_of",
]

CORES_IN_TURN = Pipeline(
    "in turn",
    (Action(Verb.LOAD), Action(Verb.ARRIVE), Action(Verb.COMPUTE), Action(Verb.STORE)),
)
CORES_BESIDE = Pipeline(
    "a tile is computed while the next is loaded",
    (Action(Verb.LOAD), Action(Verb.ARRIVE, 1), Action(Verb.COMPUTE, 1), Action(Verb.STORE, 1)),
)
ITA_IN_TURN = Pipeline(
    "in turn",
    (
        Action(Verb.LOAD),
        Action(Verb.ARRIVE),
        Action(Verb.START),
        Action(Verb.FINISH),
        Action(Verb.STORE),
    ),
)
ITA_BESIDE = Pipeline(
    "of three tiles one is loaded, one computed, one stored",
    (
        Action(Verb.ARRIVE, 1),
        Action(Verb.START, 1),
        Action(Verb.FINISH, 2),
        Action(Verb.STORE, 2),
        Action(Verb.LOAD),
    ),
)


@dataclass(frozen=True)
class Call(Trigger):
    """A kernel on all cores, or a task of ITA, with the numbers of one tile."""

    name: str
    fields: dict[str, int | str | tuple[int, ...]]

    def number(self, name: str) -> int:
        """A field that is a number."""
        value = self.fields[name]
        assert isinstance(value, int), (self.name, name)
        return value


def call(name: str, **fields: int | str | tuple[int, ...]) -> Call:
    """A call with its fields by name."""
    return Call(name, fields)


@dataclass(frozen=True)
class RowsOf:
    """How an operand's rows lie.

    Attributes:
        rows: all there are.
        row_bytes: of a row in L2, where rows follow each other.
        pitch: bytes from row to row in L1.
        buffer: bytes of a tile in L1.
        whole: whether every tile needs all of it, else its row range.
    """

    rows: int
    row_bytes: int
    pitch: int
    buffer: int
    whole: bool = False

    def operand(self, name: str, y: TileAxis, l1: int, buffers: int, resident: bool) -> Operand:
        """The operand of that name."""
        start, rows = (0, self.rows) if self.whole else (y.in_start, y.in_size)
        offset = start * self.row_bytes
        return Operand(
            name,
            offset,
            BlockOf.of_rows(rows, self.row_bytes, self.row_bytes, self.pitch),
            l1,
            self.rows * self.row_bytes if resident else self.buffer,
            buffers=1 if self.whole else buffers,
            resident=resident,
            inside=offset,
            title=name if self.whole else f"rows of {name}",
        )


def weights_of(k: TileAxis, block: int, plan: LayerPlan) -> Operand:
    """Packed weights, one block for each column range; they lie in L1, too."""
    return Operand(
        "weights",
        k.index * block,
        BlockOf.run(block),
        plan.l1_weights,
        block,
        buffers=plan.buffers,
        constant=True,
    )


def result_of(
    plan: LayerPlan,
    y: TileAxis,
    k: TileAxis,
    per_y: int,
    row_bytes: int,
    pitch: int,
    buffer: int,
    transposed: bool,
) -> Operand:
    """The result.

    Args:
        plan: of the layer.
        y, k: the axes.
        per_y: rows for each unit of y (output columns of a convolution).
        row_bytes: of a whole row, in L2 and of a resident result.
        pitch: bytes from row to row in a tile buffer.
        buffer: bytes of one.
        transposed: whether the tile's columns are the rows of the result.
    """
    rows, columns = y.out_size * per_y, k.out_size
    offset = y.out_start * per_y * row_bytes + k.out_start
    if transposed:
        rows, columns = columns, rows
        offset = k.out_start * row_bytes + y.out_start * per_y
    whole = y.size * per_y * k.size
    return Operand(
        "out",
        offset,
        BlockOf.of_rows(rows, columns, row_bytes, pitch),
        plan.l1_output,
        whole if plan.resident_output else buffer,
        buffers=plan.buffers,
        resident=plan.resident_output,
        inside=offset,
        title="result",
    )


def row_program(
    layer: Layer,
    plan: LayerPlan,
    axes: tuple[TileAxis, TileAxis],
    operands: tuple[Operand, ...],
    out: Operand,
    compute: Compute,
    in_turn: Pipeline,
    beside: Pipeline,
) -> TileProgram:
    """The program of these parts; tiles overlap where the plan has two buffers."""
    overlapped = beside if plan.buffers > 1 else None
    return TileProgram(layer.name, axes, operands, out, compute, in_turn, overlapped)


def transfer_cycles(size: int, rows: int, dma: Dma) -> int:
    """Cycles of the DMA for ``rows`` runs of ``size`` bytes: each is of whole beats."""
    return dma.call_cycles + rows * -(-size // dma.bytes_per_cycle)


def moved(block: Block, dma: Dma) -> Moved:
    """What a transfer takes the DMA."""
    commands, size = block.commands()
    return Moved(transfer_cycles(size, commands, dma))
