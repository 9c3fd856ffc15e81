"""Compiling and executing one network on one design; runs in worker processes.

`Builds` serves every target.  `Quick` is for a SoC whose regions are assembled late: networks are
compiled once for all designs (`prepared`).  What remains for a design is the late assembler and the
accelerator's simulator, both native: some milliseconds instead of the seconds that building and
simulating firmware takes.  Every region gets the inputs that the reference computes and must give
its outputs, element for element, so a design whose regions are all exact computes the network
exactly: what the host does in between is the same for all designs, and is executed once, on the
instruction-set simulator, for its cycles.
"""

from __future__ import annotations

import functools
import itertools
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import CapacityError, HtvmError, TargetError
from byoc_dory.soc.registry import resolve
from htvm.inputs import seeded_inputs
from htvm.opening import opened
from htvm.sim.native import region_runner
from htvm.tools.sweeping.row import Case, Job, Network, Networks, Row, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byoc_dory.soc.base import Target
    from byoc_dory.soc.regions import RegionRunner
    from htvm.build_options import BuildOptions
    from htvm.compiled import Compiled
    from htvm.model import Model
    from htvm.module import Module
    from htvm.tools.sweeping.row import Job, Row, Task
    from htvm.tools.sweeping.space import Space


_log = logging.getLogger(__name__)


def evaluate(job: Job, tasks: Sequence[Task]) -> list[Row]:
    """Return the rows of some tasks; no error of a design leaves this function."""
    return [_row(job, task) for task in tasks]


def _row(job: Job, task: Task) -> Row:
    row = Row(task.design, job.names[task.model], _unchecked_name(job, task), task.values)
    try:
        target = resolve(job.target, parameters=dict(task.values))
        row = replace(row, target=target.name)
        found = _evaluator(job.digest, _Hidden(job)).row(task, target, row)
        return found.priced(job.costs, {**target.soc.settings, **dict(task.values)})
    except CapacityError as error:
        return replace(
            _refused(row, error),
            limit=error.limit, demand=error.demand, smallest=error.smallest,
        )  # fmt: skip
    except TargetError as error:
        # Each value was possible alone: together they are not.
        return _refused(row, error)
    except HtvmError as error:
        return failed(row, error.what, error.where, error.hint)
    except Exception as error:  # noqa: BLE001  # one design must not end the sweep
        _log.exception("design %d, %s", task.design, row.model)
        return failed(row, f"{type(error).__name__}: {error}".rstrip(": "), "", "")


def _unchecked_name(job: Job, task: Task) -> str:
    given = ",".join(f"{name}={value}" for name, value in task.values)
    return f"{job.target}{',' if ':' in job.target else ':'}{given}"


def _refused(row: Row, error: HtvmError) -> Row:
    return replace(
        row, status="infeasible", reason=error.what, where=error.where, levers=error.hint
    )


def failed(row: Row, reason: str, where: str, levers: str) -> Row:
    """Return the row of a design that failed."""
    return replace(row, status="failed", reason=reason, where=where, levers=levers)


class _Hidden:
    """A job that does not count when cached functions compare their arguments."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hidden)

    def __hash__(self) -> int:
        return 0


# A worker process keeps what tasks share: loaded networks, references, compiled regions.
@functools.lru_cache(maxsize=2)
def _evaluator(digest: str, hidden: _Hidden) -> Builds | Quick:

    job = hidden.job
    return Builds(job) if job.networks is None else Quick(job, job.networks)


class Builds:
    """Executes designs by building firmware for each; works for every target.

    Of a core alone whose cycles are not simulated, instructions are counted.
    Beside a core whose cycles are not simulated, accelerators' predicted cycles count alone, and
    the network is executed natively, with the models of the devices.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._models: dict[int, Model] = {}
        self._references: dict[tuple[int, str], list[np.ndarray]] = {}

    def row(self, task: Task, target: Target, row: Row) -> Row:
        """Build, run and compare with the reference."""
        from htvm.firmware.build import build_host
        from htvm.module import Module
        from htvm.pipeline import compile_model, program_makers

        model = self._model(task.model)
        compiled = compile_model(model, target, self._job.options)
        host, program = target.soc.host.platform, compiled.program
        simulated = host == "rv32" or not target.accelerators
        made = program_makers()[host] if simulated else None
        built = made(program, target.soc, None) if made else build_host(program, target.soc)
        module = Module(compiled, host if simulated else "host", built)
        inputs = seeded_inputs(model.inputs, self._job.seed)
        result = module.run(inputs)
        expected = self._reference(task.model, module, inputs)
        layers = module.report().layers
        moved = sum(
            (layer.l2_read or 0) + (layer.l2_written or 0) + (layer.l2_weights or 0)
            for layer in layers
        )
        cycles, ms = result.cycles, result.latency_ms
        if not simulated:
            steps = [step for step in compiled.program.steps if step.kind == "layer"]
            cycles = sum(step.predicted_cycles for step in steps)
            ms = target.soc.cycles_to_ms(cycles)
        return replace(
            row,
            exact=all(map(np.array_equal, result.outputs, expected)),
            cycles=cycles,
            ms=ms,
            instructions=result.instructions,
            network_macs=sum(layer.macs for layer in layers),
            moved_bytes=moved if simulated else None,
        )

    def _model(self, number: int) -> Model:
        if number not in self._models:
            self._models[number] = opened(self._job.models[number], self._job.limits)
        return self._models[number]

    def _reference(self, number: int, module: Module, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Return the reference's outputs; designs with equal integer forms share them."""
        key = number, module.model.sha256
        if key not in self._references:
            self._references[key] = list(module.reference(inputs))
        return self._references[key]


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
    networks = {}
    for values in itertools.product(*choices):
        chosen = dict(zip(runner.structure, values, strict=True))
        roomy = resolve(base, parameters={**runner.roomy, **chosen})
        for number, model in enumerate(models):
            networks[number, values] = _network(model, roomy, runner, options, seed)
    return networks


def _network(
    model: Model, target: Target, runner: RegionRunner, options: BuildOptions, seed: int
) -> Network:
    from htvm.firmware.build import build_rv32
    from htvm.module import Module
    from htvm.pipeline import compile_model
    from htvm.tools.verification.verify import operator_results

    whole = replace(options, tiling=replace(options.tiling, l1_budget=None))
    compiled = compile_model(model, target, whole)
    inputs = seeded_inputs(model.inputs, seed)
    executed = compiled.retargeted.model
    known = operator_results(executed.module, inputs)
    cases = tuple(
        Case(
            runner.prepare(region),
            tuple(known[tensor.name] for tensor in region.inputs),
            tuple(known[tensor.name].reshape(-1) for tensor in region.outputs),
        )
        for region in compiled.partition.regions.values()
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


def _check(
    compiled: Compiled, actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> None:
    if not all(map(np.array_equal, actual, expected)):
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
            network_macs=network.macs,
            moved_bytes=moved,
        )
