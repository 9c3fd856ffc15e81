"""Cycles of one tile on the cores, and the cores that compute a layer.

The core with the most work determines the time.  Where L1 has no room for the scratch memory of
all cores, fewer compute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import ceil

from byoc_dory.layers import (
    Add,
    CachedAttention,
    Combination,
    Convolution,
    Dense,
    Gemm,
    Layer,
    Matmul,
    MulShift,
    Pool,
    Rows,
    Weighted,
)
from byoc_dory.layers.rowwise import AffineNorm, ItaSoftmax, LayerNorm, RmsNorm, TableSoftmax
from byoc_dory.options import TilingOptions
from byoc_dory.plan import plan_alone
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster import simd_work
from byoc_dory.soc.cluster.attention import attention_work
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.packing import per_channel
from byoc_dory.soc.cluster.program import cluster_program, is_ahead, is_apart
from byoc_dory.soc.cluster.requant import HALF, Division, division_of, leaves_32_bits, mul_shift
from byoc_dory.soc.cluster.rows import transfer_cost
from byoc_dory.soc.cluster.tiles import is_narrow, scratch_bytes, tiling_problem
from byoc_dory.soc.cluster.work import (
    ConvolutionTile,
    Cycles,
    Work,
    convolution,
    elementwise,
    product,
    products,
    rowwise,
    slowest,
)
from byoc_dory.tileloop.cycles import ComputeCost, Costs, Overheads, predicted_cycles
from byoc_dory.tileloop.pipeline import Call
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling import Tile, TilingProblem, quickest, shortage_of
from byoc_dory.tiling.problem import solution_of


def costs_of(soc: Soc, core: ClusterCores, layer: Layer, program: TileProgram) -> Costs:
    """Return the costs of a layer's kernels and transfers.

    Args:
        soc: description of the SoC.
        core: the cores that compute it.
        layer: the layer.
        program: its tile program: whether its tiles are computed together with the layer before,
            or without the core in control.
    """
    dma = soc.dma
    assert dma is not None
    ahead = is_ahead(program)
    if is_apart(program):
        core = replace(core, cores=core.cores - 1)
    overheads = Overheads(
        order=core.order_cycles,
        latency=core.latency_cycles,
        wait=core.wait_cycles,
        start=0 if ahead else core.fork_cycles + core.tile_cycles,
        call=core.call_cycles,
    )
    requant_cycles = _requant_cycles(core, layer)
    return Costs(
        compute=lambda call: ComputeCost(
            0 if ahead else _kernel_cycles(core, layer, call, requant_cycles),
        ),
        move=lambda block: transfer_cost(block, dma, core.plane_cycles),
        overheads=overheads,
    )


def computing(program: TileProgram, costs: Costs) -> int:
    """Return the cycles of the kernels of all tiles."""
    return sum(costs.compute(program.call(tile)).cycles for tile in program.order())


def split_cycles(program: TileProgram, costs: Costs, hidden: int) -> tuple[int, int]:
    """Return the cycles of starting a layer, and of waiting for it of which some are hidden."""
    overheads, finish = costs.overheads, costs.overheads.wait
    if not program.result.resident:
        (tile,) = program.order()
        moved = costs.move(program.block(program.result, tile))
        finish += overheads.order + overheads.latency + moved.cycles
    cycles = predicted_cycles(program, costs) - computing(program, costs)
    return cycles - finish, finish + computing(program, costs) - hidden


def _kernel_cycles(core: ClusterCores, layer: Layer, call: Call, requant_cycles: Cycles) -> int:
    """Return the cycles of a tile, without fork and join."""
    if isinstance(layer, Weighted | Matmul):
        works, cycles = _product_work(core, layer, call)
        works = tuple(
            {**work, **{flag: work.get("result", 0) for flag, _ in requant_cycles}}
            for work in {id(work): work for work in works}.values()
        )
        return ceil(slowest(works, (*cycles, *requant_cycles)))
    if isinstance(layer, CachedAttention):
        works = attention_work(layer, call.number("heads"), core.cores)
        return ceil(slowest(works, core.attention))
    if isinstance(layer, Combination):
        elements, tables = call.number("elements"), sum(each is not None for each in layer.tables)
        share = -(-elements // core.cores)
        return ceil(slowest([{"call": 1, "element": share, "table": share * tables}], core.combine))
    if isinstance(layer, Add):
        return sum_cycles(core, call)
    if isinstance(layer, Pool):
        windows, size = call.number("oy") * layer.ox, (layer.fy, layer.fx)
        works = simd_work.averages(windows, layer.C, size, layer.ix, core.cores)
        return ceil(slowest(works, core.average))
    element_work = simd_work.elementwise if core.simd else elementwise
    assert isinstance(layer, Rows)
    cycles = _row_function(core, layer)
    if cycles is core.map:
        return ceil(slowest(element_work(call.number("elements"), core.cores), cycles))
    division = division_of(layer)
    works = rowwise(
        call.number("rows"),
        layer.K,
        core.cores,
        divided=division == Division.SLOW,
        long=division == Division.LONG,
    )
    return ceil(slowest(works, cycles))


def sum_cycles(core: ClusterCores, call: Call, prefix: str = "") -> int:
    """Return the cycles of the kernel of a sum, without fork and join.

    Args:
        core: the cores.
        call: of a tile; it has the fields of `sum_fields`.
        prefix: before the names of these fields.
    """
    elements, operands = (call.number(f"{prefix}{name}") for name in ("elements", "operands"))
    if core.simd:
        looked_up, halved = f"{prefix}table" in call.fields, False
        if operands == 2:
            names = (f"{prefix}requant.{name}" for name in ("mul", "shift", "add"))
            halved = MulShift(*((call.number(name),) for name in names)) == HALF
        way = simd_work.sum_way(operands, looked_up=looked_up, halved=halved)
        works = simd_work.elementwise(elements, core.cores, operands, way)
    else:
        works = elementwise(elements, core.cores, operands)
    return ceil(slowest(works, core.add))


def _product_work(
    core: ClusterCores, layer: Weighted | Matmul, call: Call
) -> tuple[tuple[Work, ...], Cycles]:
    number = call.number
    if isinstance(layer, Gemm | Dense):
        if core.simd:
            transposed = isinstance(layer, Gemm) and layer.transposed
            sizes = (number("rows"), number("k"), layer.C, core.cores)
            return simd_work.product(*sizes, transposed=transposed), core.gemm
        return product(number("rows"), number("k"), layer.C, core.cores), core.gemm
    if isinstance(layer, Matmul):
        cycles = core.matmul_rows if layer.transposed else core.matmul
        matrices = (number("batch"), number("rows"), number("k"), layer.C, core.cores)
        if core.simd:
            return simd_work.products(*matrices, by_rows=layer.transposed), cycles
        return products(*matrices), cycles
    assert isinstance(layer, Convolution)
    tile = ConvolutionTile(
        number("c"),
        number("k"),
        number("iy"),
        number("ix"),
        number("oy"),
        number("ox"),
        layer.fy,
        layer.fx,
        layer.stride,
        (number("pad_top"), number("pad_left")),
        depthwise=layer.depthwise,
        windows=core.windows,
        simple=_is_simple(layer),
    )
    works = (simd_work.convolution if core.simd else convolution)(tile, core.cores)
    return works, core.depthwise if tile.depthwise else core.conv2d


def _is_simple(layer: Convolution) -> bool:
    """Whether results are scaled in 32 bits, to the limits that depthwise kernels prefer."""
    requant, kinds = mul_shift(layer), (layer.inputs[0].dtype, *layer.clip)
    preferred = {("int8", -128, 127), ("int8", 0, 127), ("uint8", 0, 255)}
    return requant is not None and kinds in preferred and not leaves_32_bits(layer, requant)


def _requant_cycles(core: ClusterCores, layer: Layer) -> Cycles:
    """Return the cycles of requantizing a result, beyond those of a single scale in 32 bits."""
    requant, cycles = mul_shift(layer), dict(core.gemm)
    flags = []
    if requant is not None and leaves_32_bits(layer, requant):
        flags.append("wide")
    elif isinstance(layer, Weighted) and per_channel(layer) and not core.simd:
        flags.append("per_channel")
    if isinstance(layer, Gemm) and layer.function is not None:
        flags.append("table")
    return tuple((flag, cycles[flag]) for flag in flags)


def _row_function(core: ClusterCores, layer: Rows) -> Cycles:
    match layer.function:
        case ItaSoftmax():
            return core.ita_softmax
        case TableSoftmax():
            return core.table_softmax
        case LayerNorm():
            return core.layer_norm
        case RmsNorm():
            return core.rms_norm
        case AffineNorm():
            return core.affine_norm
        case _:
            return core.map


@lru_cache(maxsize=1024)
def working(soc: Soc, core: ClusterCores, layer: Layer, l1_budget: int) -> ClusterCores:
    """Return the cores that compute a layer: all, if whole rows and their scratch memory fit.

    Otherwise fewer cores compute larger tiles, or more cores smaller ones, with less scratch memory
    each: what is predicted to be quickest.
    """

    if not scratch_bytes(core, layer) and not isinstance(layer, Matmul):
        return core
    candidates = list(_fitting_cores(soc, core, layer, l1_budget))
    if len(candidates) == 1 or candidates[0] is core or not isinstance(layer, Convolution):
        return candidates[0]
    return min(
        candidates,
        key=lambda way: _quickest_tile_cycles(
            soc, way, core, layer, tiling_problem(soc, way, layer, l1_budget)
        ),
    )


def _fitting_cores(
    soc: Soc, core: ClusterCores, layer: Layer, l1_budget: int
) -> Iterator[ClusterCores]:
    """Yield fewer and fewer cores for which a tile fits; one core if none does.

    Of each number, those with most scratch memory, unless only less leaves room for whole rows.
    """
    number, any_fits = core.cores, False
    while number:
        fitting = []
        few = core if number == core.cores else replace(core, cores=number)
        for way in _variants(few, layer):
            problem = tiling_problem(soc, way, layer, l1_budget)
            if shortage_of(problem) is None:
                fitting.append((is_narrow(problem), way))
        if fitting:
            any_fits = True
            yield min(fitting, key=lambda each: each[0])[1]
        if number == 1:
            break
        number = 1 << (number - 1).bit_length() - 1
    if not any_fits and isinstance(layer, Matmul) and layer.batch == 1 and not core.columns:
        yield from _fitting_cores(soc, replace(core, columns=True), layer, l1_budget)
    elif not any_fits:
        yield list(_variants(replace(core, cores=1), layer))[-1]


def _variants(core: ClusterCores, layer: Layer) -> Iterator[ClusterCores]:
    """Yield ways in which these cores compute a layer, with less and less of L1."""
    yield core
    if isinstance(layer, Convolution) and not layer.depthwise:
        yield replace(core, windows=1)
    if isinstance(layer, Matmul) and layer.batch > 1:
        yield replace(core, apart=True)


def _quickest_tile_cycles(
    soc: Soc, variant: ClusterCores, core: ClusterCores, layer: Layer, problem: TilingProblem
) -> int:
    """Return the predicted cycles of the quickest tile, one after another."""

    def cycles(tile: Tile) -> int:
        plan = plan_alone(layer, solution_of(problem, tile), core.name, problem)
        program = cluster_program(variant, layer, plan, core.cores)
        return predicted_cycles(program, costs_of(soc, variant, layer, program))

    return quickest(problem, cycles, (), TilingOptions()).objective
