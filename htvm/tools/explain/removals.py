"""Operators whose removal would make a model faster.

These are conversions from and to reals at its inputs and outputs, and operators between two
regions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from htvm.policy import CPU
from htvm.tools.report.verdicts import Improvement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from htvm.compiled import Compiled
    from htvm.tools.explain.step_costs import BuildCosts

_SAME = "the network computes the same; --io int8 does it"


def removals(compiled: Compiled, costs: BuildCosts) -> Iterator[Improvement]:
    """Yield each operator of these kinds, with the gain of removing it."""
    yield from _conversions(compiled, costs)
    yield from _between_regions(compiled, costs)


def _conversions(compiled: Compiled, costs: BuildCosts) -> Iterator[Improvement]:
    """Yield conversions from and to reals at inputs and outputs, which the host does in software.

    They can be removed if a sensor or a caller provides integers anyway.
    """
    from patterns.ops.float32.quantize import Dequantize, Quantize

    graph = compiled.retargeted.model.graph
    for step in compiled.program.steps:
        if step.kind != "cpu" or not step.layers:
            continue
        ends = {operand.kind for operand in step.args}
        first, last = step.layers[0], step.layers[-1]
        if "input" in ends and graph.made_by(first, Quantize):
            yield _conversion(costs, first, "feed int8, quantized where the data are made")
        if "output" in ends and graph.made_by(last, Dequantize):
            yield _conversion(costs, last, "hand out int8, and scale it where it is read")


def _conversion(costs: BuildCosts, name: str, change: str) -> Improvement:
    own = costs.layers.get(name, 0)
    return Improvement((name,), change, own, own, 0, CPU, CPU, _SAME)


def _between_regions(compiled: Compiled, costs: BuildCosts) -> Iterator[Improvement]:
    """Yield one-input, shape-preserving operators on the host between layers on accelerators.

    Removing one saves its cycles and the conversions of layout on both sides.
    """
    dispatch = compiled.dispatch
    nodes = compiled.retargeted.model.graph.nodes
    steps = [step for step in costs.steps if step.kind != "copy"]
    for before, step, after in zip(steps, steps[1:], steps[2:], strict=False):
        if (before.kind, step.kind, after.kind) != ("epilogue", "cpu", "prologue"):
            continue
        if len(step.layers) != 1 or step.layers[0] not in nodes:
            continue
        (name,) = step.layers
        # What changes the shape, such as a transposition, cannot be left out by itself.
        kept = nodes[name].input_shapes == (nodes[name].output_shape,)
        if not kept or name in dispatch.layers:
            continue
        gain = sum(part.cycles or 0 for part in (before, step, after))
        change = f"remove the {dispatch.kinds[name]} between two regions"
        yield Improvement((name,), change, gain, gain, 0, CPU, CPU)
