"""`sweep`: networks on many designs of a SoC, each compiled and executed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from byoc_dory.errors import ModelError, TargetError
from byoc_dory.options import TilingOptions
from byoc_dory.soc.registry import resolve
from htvm.build_options import BuildOptions
from htvm.model import Model
from htvm.opening import opened
from htvm.progress import Progress
from htvm.progress_bar import with_progress
from htvm.public import public
from htvm.shown import optional
from htvm.tools.sweeping.designs import Designs
from htvm.tools.sweeping.evaluate import evaluate, failed, prepared
from htvm.tools.sweeping.row import Costs, Job, Row, Task
from htvm.tools.sweeping.space import METHODS, Search, check_samples, space_of
from htvm.tools.sweeping.store import SCHEMA, Store, check_results, fingerprint
from htvm.version import __version__

if TYPE_CHECKING:
    from byoc_dory.options import ScheduleKind
    from byoc_dory.soc.base import Target
    from byoc_dory.soc.parameters import Value
    from htvm.frontend.limits import Limits
    from htvm.policy import Policy


@public
@with_progress
def sweep(
    model: str | Path | Model | Sequence[str | Path | Model],
    target: str | Target,
    grid: Mapping[str, object],
    *,
    method: Literal["grid", "random", "latin", "search"] = "grid",
    samples: int | None = None,
    objectives: Sequence[str] = ("cycles",),
    costs: Costs | None = None,
    results: str | Path | None = None,
    seed: int = 0,
    schedule: ScheduleKind | None = None,
    tiling: TilingOptions | None = None,
    policy: Policy | None = None,
    jobs: int | None = None,
    client: Any = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Designs:
    """Compile and execute networks on many designs of a SoC.

    Each row of the result is a program that ran on the simulated SoC with that design, and whose
    outputs were compared with the reference, element for element.  A design whose memories are too
    small is a row that says so, with limit, demand and what would help; one that fails for any
    other reason is a row with the reason.  Ctrl-C ends the sweep early with the rows so far.

    Args:
        model: a file or ``zoo:NAME``, or several of them; a `Model` only within one process.
        target: the target whose numbers are swept, possibly with values of others in its name.
        grid: lists of values, or single values, by name: of a parameter that the target declares,
            such as ``"l1"``, or of any number in the description of its SoC, such as
            ``"digital.row_cycles"``, ``"L1.size"`` or ``"dma.queue_depth"``.
        method: ``"grid"``: all combinations; ``"random"``, ``"latin"`` (hypercube): ``samples`` of
            them; ``"search"``: ``samples`` designs chosen by a multi-objective search (optuna).
        samples: number of designs, for all methods but the grid.
        objectives: for a search, the columns to minimise, each summed over the networks: a figure
            (``"cycles"``, ``"energy_uj"``, ``"area"``, ``"moved_bytes"``) or a swept number.
        costs: coefficients of energy and area; none by default.
        results: file to write, ``.parquet`` or ``.csv``.  Rows are appended to ``NAME.part`` beside
            it as they come; the same sweep with the same file goes on where it ended.
        seed: seed of samples, search and inputs.
        schedule, tiling, policy: as for `htvm.build`.
        jobs: number of processes; by default all cores, or one for a `Model` in memory.
        client: a ``dask.distributed.Client`` to execute on instead.
        limits: what reading a file may take, as for `htvm.load`.
        progress: receives the designs as they are done; by default a bar on a terminal
            and in a notebook, if it takes a while.

    Returns:
        All rows, ordered by design and network.

    Raises:
        TargetError: the target, a number's name (the message has the nearest one, and all that
            there are), a value or an option is not possible.
        ModelError, UnsupportedError: a network cannot be read.
        ExportError: the results file cannot be written, or holds another sweep's results.
        DependencyError: an optional package is missing.
    """
    place = resolve(target)
    space = space_of(place, grid)
    _check(method, jobs)
    costs = costs or Costs()
    costs.check((*place.soc.parameters, *(axis.parameter for axis in space.axes)))
    check_results(results)
    search = method == "search" and Search(space, check_samples(samples), seed, tuple(objectives))
    designs = [] if search else space.designs(method, samples, seed)
    models = _several_models(model)
    processes = _processes(models, jobs, client)
    loaded = [opened(each, limits) for each in models]
    options = BuildOptions("scheduled", _tiling(tiling, schedule), None, policy)
    names = _names(loaded)
    what = {
        "schema": SCHEMA,
        "version": __version__,
        "target": place.name,
        "models": [[name, each.sha256] for name, each in zip(names, loaded, strict=True)],
        "axes": [[axis.parameter.name, list(axis.values)] for axis in space.axes],
        "method": [method, samples, seed, list(objectives) if method == "search" else []],
        "options": [asdict(options.tiling), repr(policy)],
        "costs": asdict(costs),
    }
    digest = fingerprint(what)
    with (progress or Progress()).stage("compiling networks for all designs"):
        networks = prepared(place, space, loaded, options, seed)
    job = Job(digest, place.name, tuple(models), names, options, costs, seed, networks, limits)
    sweeper = _Sweeper(job, processes, client, progress or Progress())
    axes = tuple(axis.parameter.name for axis in space.axes)
    with Store(results, digest, axes) as store:
        if search:
            interrupted = not sweeper.run(search.batches(), search.samples, store, search.tell)
        else:
            interrupted = not sweeper.run([list(enumerate(designs))], len(designs), store)
        rows = sorted(store.rows.values(), key=lambda row: (row.design, names.index(row.model)))
        found = Designs(tuple(rows), space, interrupted)
        if not interrupted:
            store.finish(found.frame)
    return found


def _check(method: str, jobs: int | None) -> None:
    if method not in METHODS:
        raise TargetError(
            f"there is no method {method!r}",
            where="option 'method'",
            hint=f"one of {', '.join(METHODS)}",
        )
    if jobs is not None and (not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1):
        raise TargetError(
            f"{jobs} is not a number of processes", where="option 'jobs'", hint="give at least 1"
        )


def _processes(models: Sequence[str | Path | Model], jobs: int | None, client: Any) -> int:
    """Return the number of processes: one by default if a network is in memory."""
    in_memory = any(isinstance(each, Model) for each in models)
    if in_memory and (client is not None or (jobs or 1) > 1):
        raise TargetError(
            "a Model in memory cannot be handed to other processes",
            where="option 'jobs'",
            hint="give its file or zoo:NAME instead, or jobs=1",
        )
    return jobs or (1 if in_memory else usable_cores())


def _several_models(models: Any) -> list[str | Path | Model]:
    listed = [models] if isinstance(models, str | Path | Model) else models
    if not isinstance(listed, Iterable) or not (several := list(listed)):
        raise ModelError("there is no network to run", hint="give a file, zoo:NAME, or a list")
    return several


def _names(models: Sequence[Model]) -> tuple[str, ...]:
    """Return the networks' names; equal ones get a number."""
    names: list[str] = []
    for model in models:
        before = sum(name.split("#")[0] == model.name for name in names)
        names.append(f"{model.name}#{before + 1}" if before else model.name)
    return tuple(names)


def _tiling(tiling: TilingOptions | None, schedule: ScheduleKind | None) -> TilingOptions:
    from dataclasses import replace

    options = tiling or TilingOptions()
    return options if schedule is None else replace(options, schedule=schedule)


@dataclass(frozen=True)
class _Sweeper:
    """Executes designs that have no row yet."""

    job: Job
    jobs: int
    client: Any
    progress: Progress

    def run(
        self,
        batches: Iterable[Sequence[tuple[int, Mapping[str, Value]]]],
        designs: int,
        store: Store,
        tell: Callable[[int, Sequence[Row]], None] | None = None,
    ) -> bool:
        """Add the rows of all designs; return whether the sweep was completed.

        Args:
            batches: numbers and values of designs; those of the next one are asked for when a
                batch has its rows.
            designs: how many there are.
            store: where rows are kept.
            tell: receives the rows of each design.
        """
        try:
            for batch in batches:
                self._add(batch, store, designs * len(self.job.names))
                if tell is not None:
                    for number, _ in batch:
                        tell(number, [store.rows[number, name] for name in self.job.names])
        except KeyboardInterrupt:
            return False
        return True

    def _add(
        self, designs: Sequence[tuple[int, Mapping[str, Value]]], store: Store, total: int
    ) -> None:
        chunks = list(self._chunks(designs, store))
        running = executed(self.job, chunks, self.jobs, self.client)
        remaining = sum(len(chunk) for chunk in chunks)
        while remaining:  # a chunk whose process died comes back in several parts
            part = (len(store.rows) + 1, total)
            with self.progress.stage(f"design {part[0]} of {total}", part):
                rows = next(running)
                store.add(rows)
            remaining -= len(rows)

    def _chunks(
        self, designs: Sequence[tuple[int, Mapping[str, Value]]], store: Store
    ) -> Iterator[Chunk]:
        """Yield the tasks that are still to do; quick ones together, by network."""
        remaining = [
            Task(number, model, tuple(values.items()))
            for number, values in designs
            for model, name in enumerate(self.job.names)
            if (number, name) not in store.rows
        ]
        if self.job.networks is None:
            yield from ((task,) for task in remaining)
            return
        for model in range(len(self.job.names)):
            tasks = [task for task in remaining if task.model == model]
            size = max(1, min(_CHUNK, -(-len(tasks) // (4 * self.jobs))))
            for first in range(0, len(tasks), size):
                yield tuple(tasks[first : first + size])


_CHUNK = 25  # quick tasks that are handed out together


Chunk: TypeAlias = "tuple[Task, ...]"
Work: TypeAlias = "Callable[[Job, Chunk], list[Row]]"

_DIED = "the process that executed it died"
_AGAIN = "run this design alone, with htvm run, to see why; or give the machine more memory"
_RETRIES = 3


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def executed(
    job: Job, chunks: Sequence[Chunk], jobs: int, client: Any, work: Work = evaluate
) -> Iterator[list[Row]]:
    """Yield the rows of each chunk as they come, in any order.

    Args:
        job: what the tasks have in common.
        chunks: tasks that belong together.
        jobs: number of processes; 1 for this one.
        client: a ``dask.distributed.Client``, or None for this machine.
        work: executes the tasks of a chunk, a function of a module that processes can import.
    """
    if client is not None:
        yield from _on_dask(job, chunks, client, work)
    elif jobs == 1 or len(chunks) < 2:
        for chunk in chunks:
            yield work(job, chunk)
    else:
        yield from _on_this_machine(job, chunks, jobs, work)


def _on_this_machine(
    job: Job, chunks: Sequence[Chunk], jobs: int, work: Work
) -> Iterator[list[Row]]:
    joblib = optional("joblib", "several processes", "sweep")
    loky = optional("joblib.externals.loky.process_executor", "several processes", "sweep")
    remaining = list(chunks)
    while remaining:
        finished = set[int]()
        calls = (
            joblib.delayed(_numbered)(n, job, chunk, work) for n, chunk in enumerate(remaining)
        )
        pool = joblib.Parallel(
            n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1
        )
        try:
            for number, rows in pool(calls):
                finished.add(number)
                yield rows
            return
        except (loky.TerminatedWorkerError, BrokenProcessPool):
            # One of the chunks under way ended its process, and with it the others'.
            undone = [chunk for number, chunk in enumerate(remaining) if number not in finished]
            for chunk in undone[: 3 * jobs]:
                yield from _one_by_one(job, chunk, work)
            remaining = undone[3 * jobs :]


def _numbered(number: int, job: Job, chunk: Chunk, work: Work) -> tuple[int, list[Row]]:
    return number, work(job, chunk)


def _one_by_one(job: Job, chunk: Chunk, work: Work) -> Iterator[list[Row]]:
    """Execute a chunk in a process of its own; a task that ends it is a failed one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            yield pool.submit(work, job, chunk).result()
            return
        except BrokenProcessPool:
            pass
    if len(chunk) == 1:
        yield [_dead(job, chunk[0])]
        return
    for task in chunk:
        yield from _one_by_one(job, (task,), work)


def _dead(job: Job, task: Task) -> Row:
    row = Row(task.design, job.names[task.model], job.target, task.values)
    return failed(row, _DIED, "", _AGAIN)


def _same(job: Job) -> Job:
    return job


def _on_dask(job: Job, chunks: Sequence[Chunk], client: Any, work: Work) -> Iterator[list[Row]]:
    distributed = optional("distributed", "sweeps on a cluster", "cluster")
    if not isinstance(client, distributed.Client):
        raise TargetError(
            f"a {type(client).__name__} is not a client of a cluster",
            where="option 'client'",
            hint="give a dask.distributed.Client",
        )
    # As the result of a task, workers share it, and it comes back if all that have it die.
    shared = client.submit(_same, job, pure=False)

    def submitted(sent: Any, chunk: Chunk) -> Any:
        return client.submit(work, sent, chunk, pure=False, retries=_RETRIES)

    futures = {submitted(shared, chunk): chunk for chunk in chunks}
    suspected = list[Task]()
    try:
        for future in distributed.as_completed(list(futures)):
            try:
                yield future.result()
            except distributed.KilledWorker:
                # Several workers died with it, one after the other: of it, or of another chunk
                # behind which it, or what is shared, was waiting for the same workers.
                suspected += futures[future]
        for task in suspected:
            future = submitted(job, (task,))
            futures[future] = (task,)
            try:
                yield future.result()
            except distributed.KilledWorker:  # alone, so of it
                yield [_dead(job, task)]
    finally:
        client.cancel(list(futures))
