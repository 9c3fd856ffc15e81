"""Helper: plans for single layers: every kind of schedule, number of buffers and residency."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from byoc_dory.layers import Layer
from byoc_dory.options import ScheduleKind, TilingOptions
from byoc_dory.plan import LayerPlan
from byoc_dory.soc.diana.core_programs import digital_loop, digital_program
from byoc_dory.soc.diana.description import DIGITAL
from byoc_dory.soc.diana.packing import stored_bytes
from byoc_dory.tileloop.program import TileProgram
from byoc_dory.tiling import Solution

LANES = 16


def program_of(
    layer: Layer,
    plan: LayerPlan,
    kind: ScheduleKind = "overlapped",
    order: Literal["yxk", "kyx"] = "yxk",
) -> TileProgram:
    """The tile program of a layer on the digital core."""
    options = TilingOptions(schedule=kind, loop_order=order)
    return digital_program(DIGITAL, digital_loop(DIGITAL, layer, plan, options))


KINDS: tuple[ScheduleKind, ...] = get_args(ScheduleKind)


def may_stay(layer: Layer, solution: Solution) -> bool:
    """Whether rows and columns are untiled, so that tensors may stay in L1."""
    columns = layer.K if layer.op == "add" and len(layer.output.shape) == 1 else layer.ox
    return solution.tile.y == layer.oy and solution.tile.x == columns


def plan_of(
    layer: Layer,
    solution: Solution,
    buffers: int = 1,
    resident_inputs: tuple[bool, ...] | None = None,
    resident_output: bool = False,
    gap: int = 32,
) -> LayerPlan:
    """A plan with everything one after another in L1, ``gap`` bytes (a multiple of 16) apart."""
    operands = len(layer.inputs)
    resident_inputs = resident_inputs or (False,) * operands
    at, places = gap, []
    for tensor, resident in zip(layer.inputs, resident_inputs, strict=True):
        places.append(at)
        whole = stored_bytes(tensor.shape, 16)
        at += gap + (whole if resident else buffers * (solution.l1_in // operands))
    return LayerPlan(
        accelerator="digital",
        solution=solution,
        buffers=buffers,
        resident_inputs=resident_inputs,
        resident_output=resident_output,
        l1_inputs=tuple(places),
        l1_output=at,
    )


def all_plans(layer: Layer, solution: Solution) -> list[LayerPlan]:
    """The plans of the overlapped schedule: buffers and residency in every combination."""
    plans = []
    for buffers in (1, 2):
        plans.append(plan_of(layer, solution, buffers))
        if not may_stay(layer, solution):
            continue
        choices = [(True,), (False,)]
        if len(layer.inputs) == 2:
            choices = [(True, True), (True, False), (False, True), (False, False)]
        for chosen in choices:
            for output in (True, False):
                if any(chosen) or output:
                    plans.append(plan_of(layer, solution, buffers, chosen, output))
    return plans


def moved(plan: LayerPlan, by: int) -> LayerPlan:
    """The same plan ``by`` bytes further up in L1."""
    return replace(
        plan,
        l1_inputs=tuple(at + by for at in plan.l1_inputs),
        l1_output=plan.l1_output + by,
    )
