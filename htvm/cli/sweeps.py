"""The arguments of ``htvm explore``, and the files it writes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import htvm
from byoc_dory.options import ScheduleKind, TilingOptions
from htvm.errors import ExportError, TargetError
from htvm.files import write_whole
from htvm.progress import Progress
from htvm.report.table import csv_text
from htvm.tiling_file import write_tiling

if TYPE_CHECKING:
    from htvm.model import Model
    from htvm.report.sweep import Exploration

__all__ = ["explored", "write_sweep"]


def explored(
    model: Model,
    target: str,
    policy: str | None,
    objectives: Sequence[str],
    budgets: Sequence[int],
    alphas: Sequence[int],
    betas: Sequence[str],
    schedule: ScheduleKind | None,
    progress: Progress,
) -> Exploration:
    """Carry out the sweep; raises the errors of `htvm.explore`."""
    tiling = TilingOptions()
    return htvm.explore(
        model,
        target,
        objectives=objectives,
        alphas=alphas,
        betas=dict(map(_weights, betas)),
        l1_budgets=budgets,
        policy=policy,
        tiling=tiling if schedule is None else replace(tiling, schedule=schedule),
        progress=progress,
    )


def _weights(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a heuristic and its weights, from ``NAME=1,2``.

    Raises:
        TargetError: the text has another form.
    """
    name, equals, weights = text.rpartition("=")
    try:
        if not equals:
            raise ValueError
        return name, tuple(int(weight) for weight in weights.split(","))
    except ValueError as error:
        raise TargetError(
            f"{text!r} is not a heuristic with weights",
            where="--beta",
            hint="e.g. --beta 'long DMA=0,400000'",
        ) from error


def write_sweep(found: Exploration, folder: Path) -> list[Path]:
    """Write the table, the figures, all of it as JSON, and the winner's ``tiling.json``.

    Returns the files' paths.  There is no ``tiling.json`` if no budget has tiles of all layers.

    Raises:
        DependencyError: matplotlib is not installed; nothing is written.
        ExportError: the folder cannot be written.
    """
    figures = {
        "latency.png": found.plot_latency(),
        "memory.png": found.plot_memory(),
        "pareto.png": found.plot_pareto(),
    }
    records = found.records
    columns = list(records[0]) if records else []
    table = csv_text(columns, [list(record.values()) for record in records])
    files = {"tilings.csv": table.encode()}
    for name, figure in figures.items():
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=110)
        files[name] = drawn.getvalue()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # an impossible name
        raise ExportError(
            f"cannot write the sweep: {getattr(error, 'strerror', None) or error}",
            where=f"--out {folder}",
            hint="name a folder that is writable",
        ) from error
    where = f"--out {folder}"
    written = [write_whole(folder / name, data, "the sweep", where) for name, data in files.items()]
    written.append(found.save(folder / "exploration.json"))
    if any(total.cycles is not None for total in found.totals):
        written.append(write_tiling(found.tiling(), folder / "tiling.json"))
    return written
