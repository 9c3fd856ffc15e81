"""Compiling and executing one network on one design; runs in worker processes."""

from __future__ import annotations

import functools
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from byoc_dory.errors import CapacityError, HtvmError, TargetError
from byoc_dory.soc.registry import resolve
from htvm.inputs import seeded_inputs
from htvm.opening import opened
from htvm.tools.sweeping.row import Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from byoc_dory.soc.base import Target
    from htvm.model import Model
    from htvm.module import Module
    from htvm.tools.sweeping.job import Job, Task

_log = logging.getLogger(__name__)


class Evaluator(Protocol):
    """A way to execute networks on designs."""

    def row(self, task: Task, target: Target, row: Row) -> Row:
        """Return ``row`` with what is measured; raises the errors of a build and a run."""
        ...


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
def _evaluator(digest: str, hidden: _Hidden) -> Evaluator:
    from htvm.tools.sweeping.quick import Quick

    job = hidden.job
    return Builds(job) if job.networks is None else Quick(job, job.networks)


class Builds:
    """Executes designs by building firmware for each; works for every target."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._models: dict[int, Model] = {}
        self._references: dict[tuple[int, str], list[np.ndarray]] = {}

    def row(self, task: Task, target: Target, row: Row) -> Row:
        """Build, run and compare with the reference."""
        from htvm.firmware.build import build_rv32
        from htvm.module import Module
        from htvm.pipeline import compile_model

        model = self._model(task.model)
        compiled = compile_model(model, target, self._job.options)
        module = Module(compiled, "rv32", build_rv32(compiled.program, target.soc))
        inputs = seeded_inputs(model.inputs, self._job.seed)
        found = module.run(inputs)
        wanted = self._reference(task.model, module, inputs)
        layers = module.report().layers
        moved = sum(
            (layer.l2_read or 0) + (layer.l2_written or 0) + (layer.l2_weights or 0)
            for layer in layers
        )
        return replace(
            row,
            exact=all(map(np.array_equal, found.outputs, wanted)),
            cycles=found.cycles,
            ms=found.latency_ms,
            macs=sum(layer.macs for layer in layers),
            moved_bytes=moved,
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
