"""Planning a region: the tile of every layer, and where everything lies in L1."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from byoc_dory.errors import TargetError, UnsupportedError
from byoc_dory.layer import Layer
from byoc_dory.options import TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.accelerator import Accelerator
from byoc_dory.soc.base import Soc
from byoc_dory.tiling import LATENCY, Objective, Solution, quickest, solve
from byoc_dory.verdict import Refused

__all__ = ["alone", "plan_layers", "tile_layer"]

_LOG = logging.getLogger(__name__)


def plan_layers(
    layers: Sequence[Layer],
    homes: Mapping[str, Accelerator],
    soc: Soc,
    options: TilingOptions,
) -> tuple[LayerPlan, ...]:
    """The plan of each layer of a region.

    Args:
        layers: in execution order.
        homes: the accelerator of each layer, by the layer's name.
        soc: description of the SoC.
        options: choices of the tiler.

    Raises:
        UnsupportedError: an accelerator's rules refuse a layer.
        TargetError: the objective is unknown.
        TilingError: no tile of a layer fits.
    """
    solutions: dict[tuple[Any, ...], Solution] = {}
    plans = []
    for layer in layers:
        accelerator = homes[layer.name]
        _require_accepted(layer, accelerator, soc)
        problem = accelerator.tiling_problem(layer, soc, options.l1_budget)
        key = (accelerator.name, layer.geometry, problem.key())
        if key not in solutions:
            solutions[key] = tile_layer(layer, soc, accelerator, options)
        _LOG.debug("%s: tile %s (%s)", layer.name, solutions[key].tile, solutions[key].solver)
        plans.append(alone(layer, solutions[key], accelerator.name))
    return tuple(plans)


def tile_layer(
    layer: Layer, soc: Soc, accelerator: Accelerator, options: TilingOptions
) -> Solution:
    """The tile the options ask for.

    Raises:
        TargetError: unknown objective.
        TilingError: no tile fits.
    """
    problem = accelerator.tiling_problem(layer, soc, options.l1_budget)
    if options.objective == LATENCY:
        return quickest(
            problem,
            lambda tile: accelerator.cost(layer, tile, soc, options.schedule),
            accelerator.objectives.values(),
            options,
        )
    return solve(problem, _objective(accelerator, options.objective), options)


def alone(layer: Layer, solution: Solution, accelerator: str) -> LayerPlan:
    """The plan of a layer that has L1 for itself, single-buffered, nothing resident."""
    operands = len(layer.inputs)
    each = solution.l1_in // operands
    return LayerPlan(
        accelerator=accelerator,
        solution=solution,
        buffers=1,
        resident_inputs=(False,) * operands,
        resident_output=False,
        l1_inputs=tuple(operand * each for operand in range(operands)),
        l1_output=solution.l1_in,
    )


def _require_accepted(layer: Layer, accelerator: Accelerator, soc: Soc) -> None:
    verdict = accelerator.judge(layer, soc)
    if isinstance(verdict, Refused):
        raise UnsupportedError(
            verdict.reason,
            where=f"layer '{layer.name}' on '{accelerator.name}'",
            hint=f"rule: {verdict.rule}",
        )


def _objective(accelerator: Accelerator, name: str) -> Objective:
    known = accelerator.objectives
    if name not in known:
        raise TargetError(
            f"there is no tiling objective '{name}'",
            where=f"accelerator '{accelerator.name}'",
            hint=f"one of {', '.join([*known, LATENCY])}",
        )
    return known[name]
