"""Cycles of one tile on N-EUREKA, without those for starting transfers and jobs."""

from __future__ import annotations

from byoc_dory.layers import Weighted
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.cost import sum_cycles
from byoc_dory.soc.cluster.rows import moved
from byoc_dory.soc.siracusa.neureka_core import Neureka
from byoc_dory.soc.siracusa.neureka_jobs import TileShape, jobs_of, tile_cycles
from byoc_dory.soc.siracusa.neureka_program import SUM
from byoc_dory.tileloop.cycles import ComputeCost, Costs, Overheads
from byoc_dory.tileloop.pipeline import Call


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
            before=_before(core, call),
            after=_after(core, call) + _beside(soc, core, call),
        )

    return Costs(compute=compute, move=lambda block: moved(block, dma), overheads=overheads)


def _before(core: Neureka, call: Call) -> int:
    """Return the cycles in which the cores copy a tile's windows."""
    if "windows.rows" not in call.fields:
        return 0

    def of(name: str) -> int:
        return call.number(f"windows.{name}")

    pixels, rows, line = of("rows") * of("columns"), of("fy"), of("fx") * of("c")
    down = _inside(of("rows"), of("stride_y"), of("pad_top"), rows, of("iy"))
    across = _inside(of("columns"), of("stride_x"), of("pad_left"), of("fx"), of("ix"))
    aligned = line % 4 == of("c") % 4 == 0
    word = core.window_word_cycles if aligned else core.window_odd_word_cycles
    window = core.window_cycles + rows * (core.window_row_cycles + -(-line // 4) * word)
    work = pixels * window + (pixels - down * across) * core.window_edge_cycles
    # All cores have the same odd number of windows, but for the last.
    most = min(pixels, -(-pixels // core.window_cores) | 1)
    return core.window_call_cycles + work * most // pixels


def _inside(outputs: int, stride: int, pad: int, taps: int, size: int) -> int:
    """Return how many windows along one side leave the map on neither end."""
    first = -(-pad // stride)
    return max(0, min(outputs, (size + pad - taps) // stride + 1) - first)


def _after(core: Neureka, call: Call) -> int:
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
    sizes = (call.number(f"{SUM}.elements"), call.number(f"{SUM}.operands"))
    looked_up = f"{SUM}.table" in call.fields
    cycles = sum_cycles(*sizes, cores, looked_up=looked_up)
    return cores.fork_cycles + cycles + cycles * core.beside_percent // 100


def shape_of(call: Call) -> TileShape:
    """Return the sizes of a tile, given its call."""
    sizes = (call.number(name) for name in ("rows", "inputs", "top", "outputs"))
    return TileShape(*sizes)
