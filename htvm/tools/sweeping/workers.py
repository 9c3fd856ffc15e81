"""Handing tasks to processes of this machine, or to a dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeAlias

from byoc_dory.errors import TargetError
from htvm.shown import optional
from htvm.tools.sweeping.evaluate import evaluate, failed
from htvm.tools.sweeping.job import Job, Task
from htvm.tools.sweeping.row import Row

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
    left = list(chunks)
    while left:
        done = set[int]()
        calls = (joblib.delayed(_numbered)(n, job, chunk, work) for n, chunk in enumerate(left))
        pool = joblib.Parallel(
            n_jobs=jobs, backend="loky", return_as="generator_unordered", batch_size=1
        )
        try:
            for number, rows in pool(calls):
                done.add(number)
                yield rows
            return
        except (loky.TerminatedWorkerError, BrokenProcessPool):
            # One of the chunks under way ended its process, and with it the others'.
            undone = [chunk for number, chunk in enumerate(left) if number not in done]
            for chunk in undone[: 3 * jobs]:
                yield from _alone(job, chunk, work)
            left = undone[3 * jobs :]


def _numbered(number: int, job: Job, chunk: Chunk, work: Work) -> tuple[int, list[Row]]:
    return number, work(job, chunk)


def _alone(job: Job, chunk: Chunk, work: Work) -> Iterator[list[Row]]:
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
        yield from _alone(job, (task,), work)


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
    futures = {
        client.submit(work, shared, chunk, pure=False, retries=_RETRIES): chunk for chunk in chunks
    }
    try:
        for future in distributed.as_completed(list(futures)):
            try:
                yield future.result()
            except distributed.KilledWorker:
                # Several workers died of it, one after the other.
                yield [_dead(job, task) for task in futures[future]]
    finally:
        client.cancel(list(futures))
