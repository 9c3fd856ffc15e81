"""What each step of a build costs: accelerators by the cost model, the host by measurement.

The cost model knows an accelerator's tiles, transfers and commands.  What the host does is code of
two compilers, so its steps are simulated once (`htvm.sim.host_steps`); where that is impossible,
figures per multiply-accumulate and per element stand in, and are called estimates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from byoc_dory.errors import DependencyError, L2OverflowError, SimulationError, ToolchainError
from htvm.aot.parallel import cores_of
from htvm.tools.report.verdicts import StepCost

if TYPE_CHECKING:
    from byoc_dory.cost import Basis
    from htvm.aot.steps import Step
    from htvm.compiled import Compiled


@dataclass(frozen=True)
class BuildCosts:
    """The costs of a build's steps, and of the layers on the host.

    Attributes:
        steps: one per step, in execution order.
        layers: layers on the host -> their part of the cycles of the steps that they are in.
        missing: why steps of the host could not be measured; empty if they were.
        shares: layers that an accelerator computes with others as one program -> their part of
            its predicted cycles.
    """

    steps: tuple[StepCost, ...]
    layers: Mapping[str, int]
    missing: str = ""
    shares: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def total(self) -> int | None:
        """Cycles of all steps; None if a step's are unknown."""
        known = [step.cycles for step in self.steps if step.cycles is not None]
        return sum(known) if len(known) == len(self.steps) else None

    def changed(self, name: str, before: int, after: int) -> tuple[int, int]:
        """Return the cycles of a layer on the host before and after a change.

        The estimates of both give their ratio, the layer's own cycles the scale.
        """
        now = self.layers.get(name, before)
        return now, round(now * after / before) if before else after


def build_costs(compiled: Compiled, *, measure: bool = True) -> BuildCosts:
    """Return the costs of a build's steps.

    Args:
        compiled: the build.
        measure: whether to simulate the host's steps; otherwise, they are estimated.
    """
    steps = compiled.program.steps
    found, missing = _of_the_host(compiled, measure)
    costs = []
    for step, cycles in zip(steps, found, strict=True):
        if step.kind == "layer":
            costs.append(_cost(step, step.predicted_cycles, compiled.cost.basis))
        elif cycles is not None:
            costs.append(_cost(step, cycles, "measured"))
        elif step.kind == "cpu":
            costs.append(_cost(step, _estimate(compiled, step), compiled.cost.host.basis))
        else:
            costs.append(_cost(step, step.predicted_cycles, compiled.cost.host.basis))
    shares = {
        layer.name: share.cycles
        for _, kernel in compiled.kernels.values()
        for layer, share in zip(kernel.together, kernel.shares, strict=True)
    }
    return BuildCosts(tuple(costs), _layer_shares(compiled, costs), missing, shares)


def one_core_cycles(compiled: Compiled, name: str) -> int | None:
    """Return the estimated cycles of an operator on one core of the host; None if unknown."""
    dispatch, host = compiled.dispatch, compiled.cost.host
    if name in dispatch.layers:
        return host.layer(dispatch.layers[name])
    node = compiled.retargeted.model.graph.nodes[name]
    read = node.op.elements_read([kind for _, kind in node.read], node.result)
    return host.operator(node.op.work, read, prod(node.output_shape))


def _of_the_host(compiled: Compiled, measure: bool) -> tuple[Sequence[int | None], str]:
    from htvm.sim.host_steps import host_step_cycles

    nothing = [None] * len(compiled.program.steps)
    if not measure:
        return nothing, ""
    try:
        return host_step_cycles(compiled.program, compiled.target.soc), ""
    except (DependencyError, L2OverflowError, SimulationError, ToolchainError) as error:
        return nothing, error.what


def _cost(step: Step, cycles: int | None, basis: Basis) -> StepCost:
    return StepCost(step.layers, step.accelerator, step.kind, cycles, basis)


def _estimate(compiled: Compiled, step: Step) -> int | None:
    """Return the estimated cycles of a kernel, on all cores that share it; None if unknown."""
    known = [name for name in step.layers if name in compiled.dispatch.kinds]
    first = [name for name in known if _kernels(compiled, name)[0] is step]
    each = [one_core_cycles(compiled, name) for name in first]
    if any(cycles is None for cycles in each):
        return None
    return sum(cycles or 0 for cycles in each) // _shared_by(compiled)


def _shared_by(compiled: Compiled) -> int:
    """Return how many cores run a kernel of the host together."""
    cores = cores_of(compiled.target, compiled.tiling.l1_budget)
    return 1 if cores is None else cores.count


def _kernels(compiled: Compiled, name: str) -> list[Step]:
    """Return the kernels of the host that compute an operator, the most important one first."""
    found = [step for step in compiled.program.steps if step.kind == "cpu" and name in step.layers]
    return sorted(found, key=lambda step: -step.macs)


def _layer_shares(compiled: Compiled, costs: Sequence[StepCost]) -> dict[str, int]:
    """Divide the cycles of each of the host's kernels among its operators, by their estimates."""
    shares: dict[str, int] = {}
    for cost in costs:
        if cost.kind != "cpu" or cost.cycles is None:
            continue
        known_layers = [name for name in cost.layers if name in compiled.dispatch.kinds]
        weights = {name: one_core_cycles(compiled, name) or 0 for name in known_layers}
        # A kernel of operators without estimates belongs to all alike.
        total = sum(weights.values())
        remaining = cost.cycles
        for position, name in enumerate(known_layers, 1):
            part = (
                cost.cycles * weights[name] // total if total else cost.cycles // len(known_layers)
            )
            part = remaining if position == len(known_layers) else part
            shares[name] = shares.get(name, 0) + part
            remaining -= part
    return shares
