"""Tile programs for the cluster: the parts that the cores and engines share, and those of maps.

A layer's result is a matrix; a tile is a range of its rows (``y``) by a range of its columns
(``k``).  Row ranges are outermost, so that the rows of an operand are loaded once for all column
ranges; operands that are needed as a whole are loaded with the first tile.

Maps are rows of pixels of channels.  Ranges of whole rows are one run of bytes; ranges of columns
are one run per row; ranges of channels one per pixel.  A range of columns and of channels has three
dimensions: it is moved row by row.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from byoc_dory.layers import Convolution, Layer, Tensor, TensorPart
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Dma
from byoc_dory.tileloop.axes import TileAxis
from byoc_dory.tileloop.cycles import Moved
from byoc_dory.tileloop.pipeline import Block, Pipeline
from byoc_dory.tileloop.program import Compute, Operand, TileProgram, input_of, result_of
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
            Block.of_rows(rows, self.row_bytes, self.row_bytes, self.pitch),
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
    block = Block.of_rows(rows, columns, row_bytes, pitch)
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
    tensors = itertools.chain(layer.inputs, itertools.repeat(None))
    operands = tuple(itertools.starmap(_in_whole, zip(operands, tensors, strict=False)))
    out = _in_whole(out, layer.output)
    return TileProgram(
        layer.name,
        axes,
        operands,
        out,
        compute,
        in_turn,
        overlapped,
        plan.preload,
        plan.leaves,
        plan.left,
    )


def _in_whole(operand: Operand, tensor: Tensor | None) -> Operand:
    """Return the operand with its offset in the tensor of which its own is a part in L2."""
    if not (isinstance(tensor, TensorPart) and tensor.inside and tensor.first):
        return operand
    return replace(operand, offset=operand.offset + tensor.first)


def transfer_cycles(size: int, rows: int, dma: Dma) -> int:
    """Return the DMA's cycles for ``rows`` runs of ``size`` bytes, each in whole beats."""
    return dma.call_cycles + rows * dma.row_cycles(size)


def transfer_cost(block: Block[int], dma: Dma, plane_cycles: int = 0) -> Moved:
    """Return the DMA's cost for a transfer.

    A block with several planes is one transfer for each of them; ``plane_cycles`` are the host's
    cycles for starting a further one.
    """
    further = block.channels - 1
    rows, size = block.runs()
    cycles = transfer_cycles(size, rows, dma)
    return Moved(block.channels * cycles, host=further * plane_cycles)


def map_tiles(
    layer: Convolution, plan: LayerPlan, y: TileAxis, x: TileAxis, k: TileAxis
) -> tuple[tuple[TileAxis, ...], tuple[Operand, ...], Operand]:
    """Return the axes in the order of the loops, the operand, and the result.

    A depthwise layer's channels are outermost, so that the constants of a range are loaded once;
    other layers load the input once for all their output channels.
    """
    across = (x,) if x.count > 1 else ()
    splits = layer.depthwise and k.count > 1
    axes = (k, y, *across) if splits else (y, *across, k)
    most_in = _largest_field(y, "in_size") * _largest_field(x, "in_size")
    most_out = _largest_field(y, "out_size") * _largest_field(x, "out_size")
    channels, first, step = (k.out_size, k.out_start, k.step) if splits else (layer.C, 0, layer.C)
    whole = x.count == 1
    source_block = Block.of_rows(y.in_size, *(layer.ix * layer.C,) * 3)
    if splits or not whole:
        source_block = _block(y.in_size, x.in_size, channels, layer.ix, layer.C, step, whole=whole)
    source = input_of(
        plan,
        0,
        "in",
        y.in_start * (layer.ix * layer.C) + x.in_start * layer.C + first,
        source_block,
        layer.iy * layer.ix * layer.C,
        most_in * step,
        title="rows of in",
    )
    out = result_of(
        plan,
        y.out_start * layer.ox * layer.K + x.out_start * layer.K + k.out_start,
        _block(y.out_size, x.out_size, k.out_size, layer.ox, layer.K, k.step, whole=whole),
        layer.oy * layer.ox * layer.K,
        most_out * k.step,
        title="result",
    )
    return axes, (source,), out


def _largest_field(axis: TileAxis, field: str) -> int:
    return max(int(getattr(span, field)) for span in axis.spans)


def _block(
    rows: Value, columns: Value, channels: Value, width: int, depth: int, step: int, *, whole: bool
) -> Block[Value]:
    """Return the block of a tile.

    Args:
        rows, columns, channels: sizes of the tile.
        width, depth: columns and channels of the map.
        step: bytes from pixel to pixel of the tile in L1.
        whole: whether tiles have all columns.
    """
    if whole:
        return Block.of_rows(rows * width, channels, depth, step)
    if step == depth:
        size = columns * depth
        return Block.of_rows(rows, size, width * depth, size)
    return Block(rows, columns, channels, width * depth, depth, columns * step, step)
