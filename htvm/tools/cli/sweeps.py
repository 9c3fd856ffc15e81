"""The weights that ``htvm explore`` tries, and the files it writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from htvm.files import write_folder
from htvm.tiling_file import write_tiling
from htvm.tools.cli.limits import read_named
from htvm.tools.plots.bars import picture
from htvm.tools.report.table import csv_text

if TYPE_CHECKING:
    from htvm.tools.report.sweep import Exploration


def weights_of(text: str) -> tuple[str, tuple[int, ...]]:
    """Return a heuristic and its weights, from ``NAME=1,2``.

    Raises:
        InputError: the text has another form.
    """

    def weights(value: str) -> tuple[int, ...]:
        return tuple(map(int, value.split(",")))

    what, example = "heuristic with weights", "--beta 'long DMA=0,400000'"
    return read_named(text, weights, what, "--beta", example)


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
    files |= {name: picture(figure) for name, figure in figures.items()}
    written = write_folder(folder, files, "the sweep", f"--out {folder}")
    written.append(found.save(folder / "exploration.json"))
    if any(total.cycles is not None for total in found.totals):
        written.append(write_tiling(found.tiling(), folder / "tiling.json"))
    return written
