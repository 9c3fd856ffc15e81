"""The cores that compute a layer where L1 has no room for the scratch memory of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from byoc_dory.layers import Convolution, Layer, Matmul
from byoc_dory.options import TilingOptions
from byoc_dory.plan import alone
from byoc_dory.soc.base import Soc
from byoc_dory.soc.cluster.core import ClusterCores
from byoc_dory.soc.cluster.cost import costs_of
from byoc_dory.soc.cluster.program import cluster_program
from byoc_dory.soc.cluster.tiles import is_narrow, scratch_bytes, tiling_problem
from byoc_dory.tileloop.cycles import predicted_cycles
from byoc_dory.tiling import Tile, TilingProblem, quickest, shortage_of
from byoc_dory.tiling.problem import solution_of


@lru_cache(maxsize=1024)
def working(soc: Soc, core: ClusterCores, layer: Layer, l1_budget: int) -> ClusterCores:
    """Return the cores that compute a layer: all, if whole rows and their scratch memory fit.

    Otherwise fewer cores compute larger tiles, or more cores smaller ones, with less scratch memory
    each: what is predicted to be quickest.
    """

    if not scratch_bytes(core, layer) and not isinstance(layer, Matmul):
        return core
    found = list(_ways(soc, core, layer, l1_budget))
    if len(found) == 1 or found[0] is core or not isinstance(layer, Convolution):
        return found[0]
    return min(
        found,
        key=lambda way: _cycles(soc, way, core, layer, tiling_problem(soc, way, layer, l1_budget)),
    )


def _ways(soc: Soc, core: ClusterCores, layer: Layer, l1_budget: int) -> Iterator[ClusterCores]:
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
        yield from _ways(soc, replace(core, columns=True), layer, l1_budget)
    elif not any_fits:
        yield list(_variants(replace(core, cores=1), layer))[-1]


def _variants(core: ClusterCores, layer: Layer) -> Iterator[ClusterCores]:
    """Yield ways in which so many cores compute a layer, with less and less of L1."""
    yield core
    if isinstance(layer, Convolution) and not layer.depthwise:
        yield replace(core, windows=1)
    if isinstance(layer, Matmul) and layer.batch > 1:
        yield replace(core, apart=True)


def _cycles(
    soc: Soc, way: ClusterCores, core: ClusterCores, layer: Layer, problem: TilingProblem
) -> int:
    """Return the predicted cycles of the quickest tile, one after another."""
    costs = costs_of(soc, way, layer)

    def cycles(tile: Tile) -> int:
        plan = alone(layer, solution_of(problem, tile), core.name, problem)
        return predicted_cycles(cluster_program(way, layer, plan, core.cores), costs)

    return quickest(problem, cycles, (), TilingOptions()).objective
