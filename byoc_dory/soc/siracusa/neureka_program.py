"""The tile program of a layer on N-EUREKA: the places of its tiles, their jobs, and the cycles.

The cores compute sums tile by tile, while the engine computes the next tile of an operand.

A convolution whose result an add reads next leaves the cores idle, and the add the engine.  Where
both results and the add's other operands are in L1 as a whole, the add's kernel is called for the
rows of each tile as soon as the engine has finished it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from byoc_dory.layers import Add, Convolution, Layer, Weighted
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.options import TilingOptions
from byoc_dory.plan import Follower, LayerPlan
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.cost import sum_cycles
from byoc_dory.soc.cluster.packing import constants_of, has_sum_table
from byoc_dory.soc.cluster.program import (
    ENGINE_BEHIND_COPIES,
    ENGINE_BESIDE,
    ENGINE_IN_TURN,
    sum_fields,
)
from byoc_dory.soc.cluster.rows import RowsOf, matrix_result, row_program, transfer_cost
from byoc_dory.soc.cluster.tiles import units_of
from byoc_dory.soc.siracusa.neureka_core import Neureka
from byoc_dory.soc.siracusa.neureka_jobs import Grid, TileShape, jobs_of, tile_cycles
from byoc_dory.soc.siracusa.neureka_layer import View, keeps_some, view_of
from byoc_dory.soc.siracusa.neureka_tiles import FactorBlock, block_of, channel_bytes, the_factors
from byoc_dory.tileloop.axes import TileAxis, halo_axis, plain_axis
from byoc_dory.tileloop.cycles import ComputeCost, Costs, Overheads
from byoc_dory.tileloop.pipeline import Block, Call
from byoc_dory.tileloop.program import Compute, Operand, TileProgram, result_of, weights_of
from byoc_dory.tileloop.values import Entry, Far, Place, Value, round_up
from byoc_dory.tiling.problem import Tile, solution_of

SUM = "sum"
"""The operand that is the sum, and the prefix of the fields of its kernel."""


def followed(
    soc: Soc,
    core: Neureka,
    layer: Layer,
    plan: LayerPlan,
    follower: Follower,
    options: TilingOptions,
) -> tuple[LayerPlan, int] | None:
    """Return the best plan with a sum beside the engine's tiles (see `Accelerator.followed`)."""
    cores = soc.accelerator(follower.plan.accelerator)
    if not isinstance(cores, ClusterCores) or not _may_follow(layer, plan, follower):
        return None
    ahead = replace(follower.plan, ahead=True)
    apart = core.plan_cost(soc, layer, plan, options)
    apart += cores.plan_cost(soc, follower.layer, follower.plan, options)
    rest = cores.plan_cost(soc, follower.layer, ahead, options)
    problem = core.tiling_problem(soc, layer, options)
    found = None
    for rows in _heights(core, layer, plan):
        tile = Tile(layer.K, layer.C, rows, plan.solution.tile.x)
        own = replace(
            plan,
            solution=solution_of(problem, tile),
            buffers=2,
            input_buffers=0,
            follower=Follower(follower.layer, ahead),
        )
        saved = apart - rest - core.plan_cost(soc, layer, own, options)
        if saved > 0 and (found is None or saved > found[1]):
            found = own, saved
    return found


def _may_follow(layer: Layer, plan: LayerPlan, follower: Follower) -> bool:
    """Whether rows of the sum are those of the layer's result, and everything is in L1."""
    next_layer, next_plan = follower.layer, follower.plan
    return (
        isinstance(layer, Convolution)
        and isinstance(next_layer, Add)
        and plan.resident_output
        and all(next_plan.resident_inputs)
        and next_plan.solution.tile.y >= units_of(next_layer)[0]
        and layer.output.name in [tensor.name for tensor in next_layer.inputs]
        and view_of(layer).row_step == 1
        and not keeps_some(layer)
    )


def _heights(core: Neureka, layer: Layer, plan: LayerPlan) -> Iterator[int]:
    """Yield the heights of tiles to try: whole blocks, and that of the plan."""
    yield from range(core.block, layer.oy, core.block)
    own = plan.solution.tile.y
    if own < layer.oy and own % core.block:
        yield own


def constants_behind(plan: LayerPlan) -> bytes:
    """Return the constants of a follower's kernel, which are loaded behind those of the layer."""
    if plan.follower is None:
        return b""
    return bytes(constants_of(plan.follower.layer, simd=True))


def operands_of(layer: Convolution, plan: LayerPlan, y: TileAxis) -> tuple[Operand, ...]:
    """Return the sum, and its operands but for the layer's result; all of them are resident."""
    if plan.follower is None:
        return ()
    next_layer, next_plan = plan.follower.layer, plan.follower.plan
    row = layer.ox * layer.K

    def whole(name: str, l1: int) -> Operand:
        inside = y.out_start * row
        block = Block.run(y.out_size * row)
        return Operand(name, inside, block, l1, layer.oy * row, resident=True, inside=inside)

    terms = [
        whole(f"term{number}", next_plan.l1_inputs[number])
        for number, tensor in enumerate(next_layer.inputs)
        if tensor.name != layer.output.name
    ]
    return (*terms, whole(SUM, next_plan.l1_output))


def sum_of(layer: Convolution, plan: LayerPlan, y: TileAxis, behind: int) -> dict[str, Entry]:
    """Return the fields of the sum of a tile; its table lies ``behind`` the layer's constants."""
    if plan.follower is None:
        return {}
    next_layer = plan.follower.layer
    assert isinstance(next_layer, Add)
    terms = tuple(
        Place("out" if tensor.name == layer.output.name else f"term{number}")
        for number, tensor in enumerate(next_layer.inputs)
    )
    table = Place("weights") + behind if has_sum_table(next_layer) else None
    elements = y.out_size * (layer.ox * layer.K)
    fields = sum_fields(next_layer, terms, Place(SUM), elements, table)
    return {f"{SUM}.{name}": entry for name, entry in fields.items()}


PACKED = "packed"
"""Name of the array of weights that stays in the weight memory."""


def neureka_program(core: Neureka, layer: Weighted, plan: LayerPlan) -> TileProgram:
    """Return the tile program of a layer under a plan."""
    y, k = axes_of(layer, plan.solution.tile)
    tile_k = plan.solution.tile.k
    height = layer.iy if isinstance(layer, Convolution) else layer.oy
    row_bytes = layer.ix * layer.C
    most_rows = max(span.in_size for span in y.spans)
    rows = RowsOf(height, row_bytes, row_bytes, most_rows * row_bytes)
    block = block_of(core, layer, tile_k, len(job_kinds(core, layer, y, tile_k)))
    size = block.bytes + len(constants_behind(plan))
    operands: tuple[Operand, ...] = (
        rows.operand("in", y, plan, 0),
        weights_of(plan, k.index * size, Block.run(size), size),
    )
    out = _result(layer, plan, y, k)
    fields = _fields(core, layer, y, k, block, out)
    beside = frozenset[str]()
    if isinstance(layer, Convolution):
        further = operands_of(layer, plan, y)
        beside = frozenset(operand.name for operand in further)
        operands += further
        fields |= sum_of(layer, plan, y, block.bytes)
    # The engine itself reads the constants, which are loaded once if all channels are; and a
    # buffer of the result would have to be stored before the next load is waited for.
    ahead = view_of(layer).copied and k.count == 1 and plan.resident_output
    copied = frozenset({"in"}) if ahead else frozenset[str]()
    compute = Compute("jobs", fields, beside=beside, copied=copied)
    overlapped = ENGINE_BEHIND_COPIES if ahead else ENGINE_BESIDE
    return row_program(layer, plan, (y, k), operands, out, compute, ENGINE_IN_TURN, overlapped)


def _result(layer: Weighted, plan: LayerPlan, y: TileAxis, k: TileAxis) -> Operand:
    """Return the result; in a tile's buffer, all pixels or all windows may be behind it."""
    view, most = view_of(layer), max(span.out_size for span in y.spans)
    row, step = layer.ox * layer.K, view.row_step
    if step > 1 and not keeps_some(layer):
        block = Block.of_rows(y.out_size, row, row, step * row)
        buffer = step * most * row
        return result_of(plan, y.out_start * row, block, layer.oy * row, buffer, title="result")
    buffer = most * layer.ox * k.step * (5 if keeps_some(layer) else 1)
    if view.copied:
        buffer += (most + view.blocks) * view.row
    return matrix_result(
        plan,
        y,
        k,
        per_y=layer.ox,
        row_bytes=layer.K,
        pitch=k.step,
        buffer=buffer,
        transposed=False,
    )


def axes_of(layer: Weighted, tile: Tile) -> tuple[TileAxis, TileAxis]:
    """Return the axes of rows and of output channels."""
    height = layer.iy if isinstance(layer, Convolution) else layer.oy
    y = halo_axis("y", "rows", layer.oy, tile.y, height, layer.fy, layer.stride[0], layer.pad[0])
    return y, plain_axis("k", "output channels", layer.K, tile.k)


@dataclass(frozen=True)
class JobKind:
    """A job of all tiles of a kind.

    Attributes:
        kind: number of the kind of tile, by their rows.
        job: the job.
        shape: sizes of the tile.
    """

    kind: int
    job: Grid
    shape: TileShape


def job_axis(layer: Weighted, y: TileAxis) -> TileAxis:
    """Return the rows that the engine reads: those of the input, or those that the cores copy."""
    if not view_of(layer).copied:
        return y
    return plain_axis(y.name, y.title, y.size, y.step)


def job_kinds(core: Neureka, layer: Weighted, y: TileAxis, outputs: int) -> tuple[JobKind, ...]:
    """Return the jobs of each kind of tile with this many output channels, in the kinds' order."""
    kinds = []
    rows, view = job_axis(layer, y), view_of(layer)
    for kind, first in enumerate(rows.kinds[0]):
        span = rows.spans[first]
        shape = TileShape(span.out_size, span.in_size + view.blocks, span.pad + view.top, outputs)
        kinds += [JobKind(kind, job, shape) for job in jobs_of(core, layer, shape)]
    return tuple(kinds)


def _fields(
    core: Neureka, layer: Weighted, y: TileAxis, k: TileAxis, block: FactorBlock, out: Operand
) -> dict[str, Entry]:
    weights: Entry = Place("weights") + max(block.weights, 0)
    if core.weight_memory:
        weights = Far(PACKED) + k.index * (k.step * channel_bytes(core, layer))
    view = view_of(layer)
    source: Value = Place("in")
    rows, top, before = y.in_size, y.pad, dict[str, Entry]()
    if view.copied:
        source, rows, top = _copied(layer, y, out, view), y.out_size + int(view.blocks), view.top
        before = (_blocks if view.blocks else _windows)(layer, y, source, view)
    return {
        "weights": weights,
        "input": source,
        "output": _all_pixels(layer, y, out),
        "factors": Place("weights"),
        "rows": y.out_size,
        "inputs": rows,
        "top": top,
        "outputs": k.out_size,
        "pitch": layer.K if out.resident else k.step,
        **before,
        **_after(layer, y, k, out),
    }


def _copied(layer: Weighted, y: TileAxis, out: Operand, view: View) -> Value:
    """Return the place of what the cores copy: behind a tile's result, or behind all of it."""
    row = layer.ox * layer.K
    if not out.resident:
        return Place("out") + max(span.out_size for span in y.spans) * row
    behind = round_up(layer.oy * row, ALIGNMENT)
    place = Place("out") + behind + y.out_start * (max(row, view.row) - row)
    return place + y.index * view.row if view.blocks else place


def _windows(layer: Weighted, y: TileAxis, source: Value, view: View) -> dict[str, Entry]:
    """Return the windows that the cores copy before a tile's jobs are started."""
    return {
        "windows.in": Place("in"),
        "windows.to": source,
        "windows.rows": y.out_size,
        "windows.columns": layer.ox,
        "windows.iy": y.in_size,
        "windows.ix": layer.ix,
        "windows.c": layer.C,
        "windows.fy": layer.fy,
        "windows.fx": layer.fx,
        "windows.stride_y": layer.stride[0],
        "windows.stride_x": layer.stride[1],
        "windows.pad_top": y.pad,
        "windows.pad_left": layer.pad[1],
        "windows.pitch": view.pixel,
    }


def _blocks(layer: Weighted, y: TileAxis, source: Value, view: View) -> dict[str, Entry]:
    """Return the blocks that the cores copy before a tile's jobs are started."""
    return {
        "blocks.in": Place("in"),
        "blocks.to": source,
        "blocks.rows": y.out_size + 1,
        "blocks.columns": view.row // view.pixel,
        "blocks.iy": y.in_size,
        "blocks.ix": layer.ix,
        "blocks.c": layer.C,
        "blocks.pad_top": y.pad + layer.pad[0] % 2,  # they begin in even rows of the map
    }


def _all_pixels(layer: Weighted, y: TileAxis, out: Operand) -> Value:
    """Return the place of what the engine computes: behind the pixels that are kept, if some are.

    Of a tile, or, if the result stays, of the layer.
    """
    row = layer.ox * layer.K
    if not keeps_some(layer):
        return Place("out")
    if not out.resident:
        return Place("out") + max(span.out_size for span in y.spans) * row
    return Place("out") + round_up(layer.oy * row, ALIGNMENT) + y.out_start * (3 * row)


def _after(layer: Weighted, y: TileAxis, k: TileAxis, out: Operand) -> dict[str, Entry]:
    """Return what the cores do with a tile's result: the fields of a kernel, or none."""
    relu = the_factors(layer).relu
    if keeps_some(layer):
        return {
            "keep.from": _all_pixels(layer, y, out),
            "keep.rows": y.out_size,
            "keep.columns": layer.ox,
            "keep.bytes": layer.K,
            "keep.from_row": view_of(layer).columns * layer.K,
            "keep.relu": int(relu),
        }
    return _relu(layer, y, k, out) if relu else {}


def _relu(layer: Weighted, y: TileAxis, k: TileAxis, out: Operand) -> dict[str, Entry]:
    """Return the rows of a tile's result that the cores clip at 0: one if it is contiguous."""
    step, row, pixels = view_of(layer).row_step, layer.ox * layer.K, y.out_size * layer.ox
    if step > 1:
        return {"relu.rows": y.out_size, "relu.bytes": row, "relu.pitch": step * row}
    if k.count == 1:
        return {"relu.rows": 1, "relu.bytes": pixels * layer.K, "relu.pitch": 0}
    pitch = layer.K if out.resident else k.step
    return {"relu.rows": pixels, "relu.bytes": k.out_size, "relu.pitch": pitch}


def costs_of(soc: Soc, core: Neureka, layer: Weighted) -> Costs:
    """Return the costs of a layer's jobs and transfers."""
    dma = soc.dma
    assert dma is not None
    overheads = Overheads(
        order=core.order_cycles,
        latency=core.latency_cycles,
        wait=core.wait_cycles,
        start=core.program_cycles,
        call=core.call_cycles,
    )

    def compute(call: Call) -> ComputeCost:
        shape = shape_of(call)
        # The host gives the engine a further job while the first one runs.
        more = (len(jobs_of(core, layer, shape)) - 1) * core.program_cycles
        return ComputeCost(
            max(tile_cycles(core, layer, shape), more),
            before=_cycles_before(core, call),
            after=_cycles_after(core, call) + _beside(soc, core, call),
        )

    return Costs(compute=compute, move=lambda block: transfer_cost(block, dma), overheads=overheads)


def _cycles_before(core: Neureka, call: Call) -> int:
    """Return the cycles in which the cores copy a tile's windows or blocks."""
    if "blocks.rows" in call.fields:
        quarters = -(-8 * call.number("blocks.rows") // core.window_cores)
        lines, pairs = -(-quarters // 4), -(-quarters * call.number("blocks.columns") // 4)
        cycles = lines * core.block_line_cycles + pairs * core.block_pair_cycles
        return core.block_call_cycles + cycles
    if "windows.rows" not in call.fields:
        return 0

    def of(name: str) -> int:
        return call.number(f"windows.{name}")

    rows, columns, line = of("fy"), of("columns"), of("fx") * of("c")
    pixels = of("rows") * columns
    down = _inside(of("rows"), of("stride_y"), of("pad_top"), rows, of("iy"))
    across = _inside(columns, of("stride_x"), of("pad_left"), of("fx"), of("ix"))
    aligned = line % 4 == of("c") % 4 == 0
    word = core.window_word_cycles if aligned else core.window_odd_word_cycles
    window = core.window_cycles + rows * (core.window_row_cycles + -(-line // 4) * word)
    work = pixels * window + of("rows") * (columns - across) * core.window_edge_cycles
    work += (of("rows") - down) * across * core.window_clear_cycles
    # All cores have the same odd number of windows, but for the last.
    most = min(pixels, -(-pixels // core.window_cores) | 1)
    return core.window_call_cycles + work * most // pixels


def _inside(outputs: int, stride: int, pad: int, taps: int, size: int) -> int:
    """Return how many windows along one side leave the map on neither end."""
    first = -(-pad // stride)
    return max(0, min(outputs, (size + pad - taps) // stride + 1) - first)


def _cycles_after(core: Neureka, call: Call) -> int:
    """Return the cycles in which the cores clip a tile's result at 0, or copy what is kept."""
    if "keep.rows" in call.fields:
        pixels, size = (
            call.number("keep.rows") * call.number("keep.columns"),
            call.number("keep.bytes"),
        )
        words = -(-size // 4) if size % 4 == 0 else size
        work = pixels * (words * core.keep_word_cycles + core.relu_row_cycles)
        return core.relu_cycles + -(-work // 16)
    if "relu.rows" not in call.fields:
        return 0
    rows = call.number("relu.rows")
    work = rows * -(-call.number("relu.bytes") // 4) * core.relu_word_cycles
    if rows > 1:
        work += rows * core.relu_row_cycles
    return core.relu_cycles + -(-work // 16)


def _beside(soc: Soc, core: Neureka, call: Call) -> int:
    """Return the cycles in which the cores compute a tile's sum."""
    if f"{SUM}.elements" not in call.fields:
        return 0
    cores = next(each for each in soc.accelerators if isinstance(each, ClusterCores))
    cycles = sum_cycles(cores, call, f"{SUM}.")
    return cores.fork_cycles + cycles + cycles * core.beside_percent // 100


def shape_of(call: Call) -> TileShape:
    """Return the sizes of a tile, given its call."""
    sizes = (call.number(name) for name in ("rows", "inputs", "top", "outputs"))
    return TileShape(*sizes)
