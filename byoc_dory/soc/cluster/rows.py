"""Tile programs for the cluster: the parts that the cores and engines share.

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
from byoc_dory.tileloop.pipeline import Pipeline
from byoc_dory.tileloop.planned import input_of, result_of
from byoc_dory.tileloop.program import BlockOf, Compute, Operand, TileProgram
from byoc_dory.tileloop.steps import Block
from byoc_dory.tileloop.values import Value


@dataclass(frozen=True)
class RowsOf:
    """The layout of an operand's rows.

    Attributes:
        rows: total number of rows.
        row_bytes: bytes of a row in L2, where rows are contiguous.
        pitch: bytes from row to row in L1.
        buffer: bytes of a tile in L1.
        whole: whether every tile needs all rows, instead of its own range.
    """

    rows: int
    row_bytes: int
    pitch: int
    buffer: int
    whole: bool = False

    def operand(self, name: str, y: TileAxis, plan: LayerPlan, number: int) -> Operand:
        """Return the operand with this name, which is the layer's input ``number``."""
        start, rows = (0, self.rows) if self.whole else (y.in_start, y.in_size)
        return input_of(
            plan,
            number,
            name,
            start * self.row_bytes,
            BlockOf.of_rows(rows, self.row_bytes, self.row_bytes, self.pitch),
            self.rows * self.row_bytes,
            self.buffer,
            every_tile=self.whole,
            title=name if self.whole else f"rows of {name}",
        )


def matrix_result(
    plan: LayerPlan,
    y: TileAxis,
    k: TileAxis,
    per_y: int,
    row_bytes: int,
    pitch: Value,
    buffer: int,
    transposed: bool,
) -> Operand:
    """Return the result.

    Args:
        plan: plan of the layer.
        y, k: axes of rows and columns.
        per_y: number of rows per unit of y (output columns of a convolution).
        row_bytes: bytes of a whole row, in L2 and in a resident result.
        pitch: bytes from row to row in a tile buffer.
        buffer: bytes of a tile buffer.
        transposed: whether the tile's columns are the rows of the result.
    """
    rows, columns = y.out_size * per_y, k.out_size
    offset = y.out_start * per_y * row_bytes + k.out_start
    if transposed:
        rows, columns = columns, rows
        offset = k.out_start * row_bytes + y.out_start * per_y
    block = BlockOf.of_rows(rows, columns, row_bytes, pitch)
    return result_of(plan, offset, block, y.size * per_y * k.size, buffer, title="result")


def row_program(
    layer: Layer,
    plan: LayerPlan,
    axes: tuple[TileAxis, ...],
    operands: tuple[Operand, ...],
    out: Operand,
    compute: Compute,
    in_turn: Pipeline,
    beside: Pipeline,
) -> TileProgram:
    """Return the program with these parts; tiles overlap if the plan has two buffers."""
    overlapped = beside if plan.buffers > 1 else None
    return TileProgram(layer.name, axes, operands, out, compute, in_turn, overlapped)


def transfer_cycles(size: int, rows: int, dma: Dma) -> int:
    """Return the DMA's cycles for ``rows`` runs of ``size`` bytes, each in whole beats."""
    return dma.call_cycles + rows * dma.row_cycles(size)


def moved(block: Block, dma: Dma, plane_cycles: int = 0) -> Moved:
    """Return the DMA's cost for a transfer.

    A block with several planes is one transfer for each of them; ``plane_cycles`` are the host's
    cycles for starting a further one.
    """
    further = block.channels - 1
    rows, size = block.runs()
    cycles = transfer_cycles(size, rows, dma)
    return Moved(block.channels * cycles, host=further * plane_cycles)
