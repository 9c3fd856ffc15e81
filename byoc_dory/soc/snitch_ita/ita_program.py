"""Tiles and tile programs of layers on ITA: packed weights, places of tiles, tasks, cycles.

The sizes of ITA's matrices are multiples of 64.  Other sizes are padded in L1: rows of an operand
are loaded to rows of a multiple of 64 bytes, weights have zeros there, and results for the padding
are not stored.  A layer with padding reads and writes its tensors in L2.

A sum is a product, too: rows of 64 elements of its operands, loaded side by side, times identities
below each other, ``[a b] [I; I]``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from byoc_dory.layers import Add, Array, Attend, Gemm, Layer, rounded_half_up
from byoc_dory.layers.rowwise import ItaGelu
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.cluster.program import ENGINE_BESIDE, ENGINE_IN_TURN
from byoc_dory.soc.cluster.requant import mul_shift
from byoc_dory.soc.cluster.rows import RowsOf, matrix_result, row_program, transfer_cost
from byoc_dory.soc.snitch_ita.ita_core import Ita, ItaRequant, ita_requant
from byoc_dory.tileloop.axes import TileAxis, halo_axis, plain_axis
from byoc_dory.tileloop.cycles import ComputeCost, Costs, Overheads
from byoc_dory.tileloop.pipeline import Block, Call
from byoc_dory.tileloop.program import Compute, Operand, TileProgram, weights_of
from byoc_dory.tileloop.values import Entry, Own, Place, Value
from byoc_dory.tileloop.values import round_up as rounded
from byoc_dory.tiling.problem import (
    Axis,
    FixedBytes,
    InputWindow,
    Rounding,
    TileWeights,
    TilingProblem,
)


def aligned(core: Ita, layer: Layer) -> bool:
    """Whether nothing of the layer is padded."""
    sizes = [layer.oy, layer.K, layer.C]
    if isinstance(layer, Attend):
        sizes = [layer.oy, layer.head_size, layer.keys]
    return all(size % core.tile == 0 for size in sizes)


def tiling_problem(soc: Soc, core: Ita, layer: Layer, l1_budget: int) -> TilingProblem:
    """Return a tile's use of L1, with the limit.

    Products are tiled by rows and columns; a transposed result has rows where others have columns.
    Attention is tiled by queries; keys and values are in L1 as a whole.  Sums are tiled by rows; as
    their operands are side by side, the first one's buffers are those of all.
    """
    if isinstance(layer, Add):
        return _sum_problem(soc, core, layer, l1_budget)
    is_aligned = aligned(core, layer)
    shared_fields: dict[str, Any] = {
        "name": layer.name,
        "l1_limit": min(l1_budget, soc.memory(core.l1).size),
        "inputs_once": True,
        "x": Axis(1, tiled=False),
        "window": InputWindow(layer.oy, 1),
        "rounding": Rounding(k=core.tile, c=core.tile, y=core.tile),
        "may_find": is_aligned,
        "may_stay": is_aligned,
    }
    channels = Axis(layer.C, tiled=False)
    if isinstance(layer, Attend):
        keys = round_up(layer.keys, core.tile)
        each = keys * round_up(layer.K, core.tile)
        return TilingProblem(
            k=Axis(layer.K, tiled=False),
            c=channels,
            y=Axis(layer.oy, step=core.tile),
            weights=TileWeights(in_l1=True),
            fixed=FixedBytes((each, each), scratch=core.tile * keys),
            **shared_fields,
        )
    return TilingProblem(
        k=Axis(layer.K, step=core.tile),
        c=channels,
        y=Axis(layer.oy, tiled=not _transposed(layer), step=core.tile),
        weights=TileWeights(
            block=core.tile * (round_up(layer.C, core.tile) + core.bias_bytes), in_l1=True
        ),
        **shared_fields,
    )


def _sum_problem(soc: Soc, core: Ita, layer: Add, l1_budget: int) -> TilingProblem:
    rows, inner = sum_rows(core, layer), len(layer.inputs) * core.tile
    return TilingProblem(
        name=layer.name,
        l1_limit=min(l1_budget, soc.memory(core.l1).size),
        k=Axis(core.tile, tiled=False),
        c=Axis(inner, tiled=False),
        y=Axis(rows, step=core.tile),
        x=Axis(1, tiled=False),
        window=InputWindow(rows, 1),
        rounding=Rounding(k=core.tile, c=core.tile, y=core.tile),
        weights=TileWeights(block=core.tile * inner, in_l1=True),
        fixed=FixedBytes((0,) * (len(layer.inputs) - 1)),
        inputs_once=True,
        may_find=False,
        may_stay=rows % core.tile == 0,
        rows_apart=True,
    )


def sum_rows(core: Ita, layer: Add) -> int:
    """Return the number of rows of ``tile`` elements that a sum has."""
    return -(-layer.output.elements // core.tile)


def _transposed(layer: Layer) -> bool:
    """Whether the result is stored column by column."""
    return isinstance(layer, Gemm) and layer.transposed


def block_bytes(core: Ita, layer: Gemm, tile_k: int) -> int:
    """Return the bytes of the packed weights and biases of ``tile_k`` columns."""
    return round_up(tile_k, core.tile) * (round_up(layer.C, core.tile) + core.bias_bytes)


def bias_at(core: Ita, layer: Layer, tile_k: int) -> int:
    """Return the byte offset of the biases in a block: after the weights."""
    return round_up(tile_k, core.tile) * round_up(layer.C, core.tile)


def identities(core: Ita, layer: Add) -> Array:
    """Return the weights ``[k][c]`` of a sum: an identity for each operand; uint8."""
    one = np.eye(core.tile, dtype=np.uint8)
    return np.hstack([one] * len(layer.inputs)).reshape(-1)


def pack(core: Ita, layer: Gemm, tile_k: int) -> Array:
    """Weights ``[k][c]`` and 24-bit biases in blocks of ``tile_k`` columns, padded; uint8."""
    columns, channels = round_up(tile_k, core.tile), round_up(layer.C, core.tile)
    blocks, layer = [], rounded_half_up(layer)
    for start in range(0, layer.K, tile_k):
        size = min(tile_k, layer.K - start)
        weights = np.zeros((columns, channels), np.int8)
        weights[:size, : layer.C] = layer.weight[start : start + size, :, 0, 0]
        biases = np.zeros(columns, "<i4")
        if layer.bias is not None:
            biases[:size] = layer.bias[start : start + size]
        blocks.append(weights.view(np.uint8).reshape(-1))
        blocks.append(biases.view(np.uint8).reshape(-1, 4)[:, : core.bias_bytes].reshape(-1))
    return np.concatenate(blocks)


_IDENTITY = {"mult": 1, "shift": 0, "add": 0}


def ita_program(core: Ita, layer: Layer, plan: LayerPlan) -> TileProgram:
    """Return the tile program of a layer under a plan."""
    assert isinstance(layer, Gemm | Attend | Add), layer  # judged before
    if isinstance(layer, Add):
        return _sum_program(core, layer, plan)
    tile = plan.solution.tile
    y = halo_axis("y", "rows", layer.oy, tile.y, layer.oy)
    k = plain_axis("k", "columns", layer.K, tile.k)
    rows, columns = round_up(tile.y, core.tile), round_up(tile.k, core.tile)
    operands = _operands(core, layer, plan, y, rows)
    transposed = isinstance(layer, Gemm) and layer.transposed
    out = matrix_result(
        plan,
        y,
        k,
        per_y=1,
        row_bytes=layer.oy if transposed else layer.K,
        pitch=rows if transposed else columns,
        buffer=rows * columns,
        transposed=transposed,
    )
    if isinstance(layer, Gemm):
        block = block_bytes(core, layer, tile.k)
        operands += (weights_of(plan, k.index * block, Block.run(block), block),)
        compute = _product(core, layer, y, k, tile.k, operands[0], out)
    else:
        compute = _attend(core, layer, y, operands)
    return row_program(layer, plan, (y, k), operands, out, compute, ENGINE_IN_TURN, ENGINE_BESIDE)


def _sum_program(core: Ita, layer: Add, plan: LayerPlan) -> TileProgram:
    """Return the tile program of a sum: rows of all operands side by side, times identities."""
    tile, size = plan.solution.tile, core.tile
    height, pitch = sum_rows(core, layer), len(layer.inputs) * size
    y = halo_axis("y", "rows", height, tile.y, height)
    k = plain_axis("k", "columns", size, tile.k)
    rows = round_up(tile.y, size)
    operands = [
        RowsOf(height, size, pitch, rows * pitch).operand(f"in{number}", y, plan, number)
        for number in range(len(layer.inputs))
    ]
    first = operands[0]
    operands[1:] = [
        replace(operand, l1=first.l1 + number * size, beside=first.name)
        for number, operand in enumerate(operands[1:], 1)
    ]
    out = matrix_result(
        plan, y, k, per_y=1, row_bytes=size, pitch=size, buffer=rows * size, transposed=False
    )
    data = (Place(first.name), pitch, rounded(y.out_size, size))
    weights = (Place("weights"), pitch, size)
    compute = _task(core, layer, data, weights, pitch, out)
    block = size * pitch
    return row_program(
        layer,
        plan,
        (y, k),
        (*operands, weights_of(plan, 0, Block.run(block), block)),
        out,
        compute,
        ENGINE_IN_TURN,
        ENGINE_BESIDE,
    )


def _operands(
    core: Ita, layer: Gemm | Attend, plan: LayerPlan, y: TileAxis, rows: int
) -> tuple[Operand, ...]:
    names = ("query", "key", "value") if isinstance(layer, Attend) else ("in",)
    operands = []
    for number, (name, tensor) in enumerate(zip(names, layer.inputs, strict=True)):
        width, height, _ = tensor.shape
        pitch = round_up(width, core.tile)
        held = round_up(height, core.tile) if number else rows
        operand = RowsOf(height, width, pitch, held * pitch, whole=number > 0)
        operands.append(operand.operand(name, y, plan, number))
    return tuple(operands)


def requant_fields(field: str, requant: ItaRequant, name: str = "") -> dict[str, Entry]:
    """Return the fields of a requantization; ``name`` is the prefix of its numbers' names."""
    numbers = {"mult": requant.mult, "shift": requant.shift, "add": requant.add}
    return {f"{field}.{key}": Own(f"{name}{key}", number) for key, number in numbers.items()}


def _product(
    core: Ita,
    layer: Gemm,
    y: TileAxis,
    k: TileAxis,
    tile_k: int,
    operand: Operand,
    out: Operand,
) -> Compute:
    """Return the task of a product; if transposed, the weights are its left operand."""
    data = (Place("in"), operand.block.l1_row_stride, rounded(y.out_size, core.tile))
    inner = round_up(layer.C, core.tile)
    weights = (Place("weights"), inner, rounded(k.out_size, core.tile))
    left, right = (weights, data) if layer.transposed else (data, weights)
    kind = "SNITCH_ITA_BIAS_ROWS" if layer.transposed else "SNITCH_ITA_BIAS_COLS"
    bias = Place("weights") + bias_at(core, layer, tile_k)
    return _task(core, layer, left, right, inner, out, kind, bias)


def _task(
    core: Ita,
    layer: Gemm | Add,
    left: tuple[Value, Value, Value],
    right: tuple[Value, Value, Value],
    inner: int,
    out: Operand,
    bias_kind: str = "SNITCH_ITA_BIAS_NONE",
    bias: Value | None = None,
) -> Compute:
    """Return the task of a product with its requantization and activation.

    Args:
        core: the accelerator.
        layer: the layer.
        left, right: place, bytes from row to row, and number of rows of both matrices.
        inner: number of elements that are summed.
        out: the result.
        bias_kind, bias: whether there are biases, for rows or columns, and their place.
    """
    requant = mul_shift(rounded_half_up(layer))
    assert requant is not None
    ita_numbers = ita_requant(requant.mul[0], requant.shift[0], requant.add[0], core.max_shift)
    assert isinstance(ita_numbers, ItaRequant), ita_numbers
    fields: dict[str, Entry] = {
        "rows": left[2],
        "cols": right[2],
        "inner": inner,
        "operation": "SNITCH_ITA_OP_LINEAR",
        "bias_kind": bias_kind,
        **requant_fields("requant", ita_numbers),
    }
    if isinstance(layer, Gemm) and isinstance(layer.function, ItaGelu):
        gelu = layer.function
        fields["activation"] = "SNITCH_ITA_ACT_GELU"
        after = ItaRequant(gelu.mul, gelu.shift, gelu.add)
        fields |= requant_fields("act_requant", after, "act_")
        fields["gelu_b"], fields["gelu_c"] = Own("gelu_b", gelu.b), Own("gelu_c", gelu.c)
    elif layer.relu:
        fields["activation"] = "SNITCH_ITA_ACT_RELU"
        fields |= {f"act_requant.{key}": number for key, number in _IDENTITY.items()}
    else:
        fields["activation"] = "SNITCH_ITA_ACT_IDENTITY"
    fields |= {
        "left": left[0],
        "left_stride": left[1],
        "right": right[0],
        "right_stride": right[1],
        **({} if bias is None else {"bias": bias}),
        "out": Place("out"),
        "out_stride": pitch_of(out),
    }
    return Compute(
        "product",
        fields,
        struct="snitch_ita_task_t",
        function="snitch_ita_program(&{})",
    )


def pitch_of(out: Operand) -> Value:
    """Return the bytes from row to row of a tile's result."""
    return out.block.l2_row_stride if out.resident else out.block.l1_row_stride


def _attend(core: Ita, layer: Attend, y: TileAxis, operands: tuple[Operand, ...]) -> Compute:
    """Return the tasks of attention; `ita_emit` has their text, as there are two per 64 rows."""
    fields: dict[str, Entry] = {operand.name: Place(operand.name) for operand in operands}
    for name, numbers in (("scores", layer.scores.scores), ("context", layer.scores.context)):
        found = ita_requant(*numbers, core.max_shift)
        assert isinstance(found, ItaRequant), found
        fields |= requant_fields(f"{name}.requant", found, f"{name}_")
    return Compute("attend", {"rows": y.out_size, **fields, "out": Place("out")})


def costs_of(soc: Soc, core: Ita, layer: Layer, program: TileProgram) -> Costs:
    """Return the costs of a layer's tasks and transfers."""
    dma = soc.dma
    assert dma is not None
    overheads = Overheads(
        order=core.order_cycles,
        latency=core.latency_cycles,
        wait=core.wait_cycles,
        start=core.program_cycles if _varies(program) else core.constant_cycles,
        call=core.call_cycles,
    )
    # A task that waits in the second context has its first weights loaded already.
    fill = core.fill_cycles + core.drain_cycles
    return Costs(
        compute=lambda call: ComputeCost(_task_cycles(core, layer, call), fill=fill),
        move=lambda block: transfer_cost(block, dma),
        overheads=overheads,
    )


def _varies(program: TileProgram) -> bool:
    """Whether tiles are in different places in L1."""
    resident = any(operand.resident for operand in (*program.operands, program.result))
    return program.tiles > 1 and (program.pipelined or resident)


def _task_cycles(core: Ita, layer: Layer, call: Call) -> int:
    """Return the cycles of a tile."""
    if isinstance(layer, Attend):
        keys, size = round_up(layer.keys, core.tile), round_up(layer.head_size, core.tile)
        turns = round_up(call.number("rows"), core.tile) // core.tile * layer.heads
        return turns * core.attention_turn_cycles(keys, size)
    return core.product_cycles(call.number("rows"), call.number("cols"), call.number("inner"))
