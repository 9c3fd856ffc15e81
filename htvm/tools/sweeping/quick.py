"""Sweeps over a SoC whose regions are assembled late: networks are compiled once for all designs.

What remains for a design is the late assembler and the accelerator's simulator, both native: some
milliseconds instead of the seconds that building and simulating firmware takes.  Every region gets
the inputs that the reference computes and must give its outputs, element for element, so a design
whose regions are all exact computes the network exactly: what the host does in between is the same
for all designs, and is executed once, on the instruction-set simulator, for its cycles.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import TargetError
from byoc_dory.soc.registry import resolve
from htvm.inputs import seeded_inputs
from htvm.sim.native import region_runner
from htvm.tools.sweeping.job import Case, Job, Network, Networks, Task

if TYPE_CHECKING:
    from byoc_dory.soc.base import Target
    from byoc_dory.soc.regions import RegionRunner
    from htvm.compiled import BuildOptions, Compiled
    from htvm.model import Model
    from htvm.tools.sweeping.row import Row
    from htvm.tools.sweeping.space import Space


def prepared(
    target: Target, space: Space, models: Sequence[Model], options: BuildOptions, seed: int
) -> Networks | None:
    """Return every network compiled for each structure that a design of the space can have.

    Returns:
        The networks by number and values of `RegionRunner.structure`; None if the target cannot
        execute regions by themselves.

    Raises:
        The errors of `htvm.build`.
    """
    runner = region_runner(target)
    declared = {entry.name for entry in target.soc.parameters}
    axes = {axis.parameter.name: axis.values for axis in space.axes}
    # The runner knows what its own parameters change, not what any number of a description does.
    if runner is None or target.soc.numbers or not declared.issuperset(axes):
        return None
    settings = target.soc.settings
    choices = [axes.get(name, (settings[name],)) for name in runner.structure]
    base = target.name.partition(":")[0]
    found = {}
    for values in itertools.product(*choices):
        chosen = dict(zip(runner.structure, values, strict=True))
        roomy = resolve(base, parameters={**runner.roomy, **chosen})
        for number, model in enumerate(models):
            found[number, values] = _network(model, roomy, runner, options, seed)
    return found


def _network(
    model: Model, target: Target, runner: RegionRunner, options: BuildOptions, seed: int
) -> Network:
    from htvm.firmware.build import build_rv32
    from htvm.module import Module
    from htvm.pipeline import compile_model
    from htvm.tools.verification.reference import operator_results
    from patterns.byoc.partition import partition

    whole = replace(options, tiling=replace(options.tiling, l1_budget=None))
    compiled = compile_model(model, target, whole)
    inputs = seeded_inputs(model.inputs, seed)
    executed = compiled.retargeted.model
    parts = partition(executed.graph, compiled.dispatch, target.soc, target.accelerators)
    known = operator_results(executed.module, _interface(executed, inputs))
    cases = tuple(
        Case(
            runner.prepare(region),
            tuple(known[tensor.name] for tensor in region.inputs),
            tuple(known[tensor.name].reshape(-1) for tensor in region.outputs),
        )
        for region in parts.regions.values()
    )
    module = Module(compiled, "rv32", build_rv32(compiled.program, target.soc))
    found = module.run(inputs)
    _check(compiled, found.outputs, list(module.reference(inputs)))
    report = module.report()
    accelerators = {entry.name for entry in target.accelerators}
    on_host = [
        row for row in report.layers if row.kind != "layer" or row.accelerator not in accelerators
    ]
    layers = [row for row in report.layers if row not in on_host]
    return Network(
        cases,
        (found.cycles or 0) - sum(row.cycles or 0 for row in layers),
        sum((row.l2_read or 0) + (row.l2_written or 0) + (row.l2_weights or 0) for row in on_host),
        sum(row.macs for row in report.layers),
    )


def _interface(model: Model, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the inputs for the parameters of ``main``."""
    return [np.asarray(array, order="C") for array in inputs]


def _check(compiled: Compiled, found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> None:
    if not all(map(np.array_equal, found, wanted)):
        raise TargetError(
            "the network's outputs are wrong on a design with room for everything",
            where=f"target '{compiled.target.name}'",
            hint="this is a defect: htvm verify finds the first wrong element",
        )


class Quick:
    """Executes prepared networks on designs."""

    def __init__(self, job: Job, networks: Networks) -> None:
        self._options = job.options.tiling
        self._networks = networks
        runner = region_runner(resolve(job.target))
        assert runner is not None
        self._runner = runner

    def row(self, task: Task, target: Target, row: Row) -> Row:
        """Assemble and execute all regions on the design."""
        settings = target.soc.settings
        key = tuple(settings[name] for name in self._runner.structure)
        network = self._networks[task.model, key]
        cycles, moved, exact = network.host_cycles, network.host_bytes, True
        for case in network.cases:
            outputs, count = self._runner.run(case.region, target.soc, self._options, case.inputs)
            cycles += count.device + count.host
            moved += count.bytes
            exact = exact and all(map(np.array_equal, outputs, case.outputs))
        return replace(
            row,
            exact=exact,
            cycles=cycles,
            ms=target.soc.cycles_to_ms(cycles),
            macs=network.macs,
            moved_bytes=moved,
        )
