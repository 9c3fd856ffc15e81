"""``htvm explore``: the tiles that the tiler chooses under different options, or less memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import htvm
from byoc_dory.errors import TargetError
from byoc_dory.options import TilingOptions
from htvm.files import write_folder
from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network, read_named
from htvm.tools.cli.output import answer, folder_to_write
from htvm.tools.cli.terminal import EXIT_INTERRUPTED, echo, terminal_width
from htvm.tools.cli.words import Bytes

if TYPE_CHECKING:
    from htvm.tools.report.sweep import Exploration


@click.command(
    epilog=options.examples(
        "htvm explore zoo:resnet8 --l1 16384 --l1 65536",
        "htvm explore zoo:toyadmos --objective array --beta 'long DMA=0,400000' --out sweep",
        "htvm explore zoo:ds_cnn -t cortex_m4 --memory",
    )
)
@options.network
@options.target
@options.policy
@options.schedule
@click.option("--objective", "objectives", multiple=True, help="Which to try; all by default.")
@click.option("--l1", "l1_budgets", multiple=True, type=Bytes(), help="Bytes of L1.")
@click.option(
    "--alpha", "alphas", multiple=True, type=click.IntRange(0), help="Weight of a byte of L1."
)
@click.option("--beta", "betas", multiple=True, metavar="HEURISTIC=W[,W...]", help="Weights.")
@click.option(
    "--memory",
    is_flag=True,
    help="For CPU targets: build and run with less and less memory, by rows; none of the options "
    "above.",
)
@options.out("Folder for CSV, figures, and the winner: a file for --tiling.", folder_to_write)
@options.common
def command(
    network: Network,
    schedule: Any,
    betas: Sequence[str],
    memory: bool,
    as_json: bool,
    out: Path | None,
    **choices: Any,
) -> None:
    """Tile the layers of MODEL under every choice of objective, weights and L1 budget."""
    if memory:
        given = [name for name, value in choices.items() if value and name != "target"]
        if given or betas or schedule is not None:
            raise TargetError(
                "tiles are for accelerators, and limits of memory for targets without",
                where="--memory",
                hint="leave out the options of the tiler",
            )
        _explore_memory(network, choices["target"], as_json, out)
        return
    tiling = TilingOptions() if schedule is None else TilingOptions(schedule=schedule)
    weights = dict(map(_weights_of, betas))
    with shown_progress() as progress:
        found = htvm.explore(
            network.open(), betas=weights, tiling=tiling, progress=progress, **choices
        )
    files = [] if out is None else write_sweep(found, out)
    answer(as_json, "explore", lambda: {"tilings": found.records},
           lambda: found.table(terminal_width()))  # fmt: skip
    for path in files:
        echo(f"written: {path}", err=True)
    if found.interrupted:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)


def _explore_memory(network: Network, target: str, as_json: bool, out: Path | None) -> None:
    from htvm.tools.memory_curve import memory_curve
    from htvm.tools.plots.bars import picture
    from htvm.tools.report.table import csv_text

    with shown_progress() as progress:
        found = memory_curve(network.open(), target, progress=progress)
    files = []
    if out is not None:
        records = found.records
        table = csv_text(list(records[0]), [list(record.values()) for record in records])
        parts = {"memory.csv": table.encode(), "memory.png": picture(found.plot())}
        files = write_folder(out, parts, "the curve", f"--out {out}")
    answer(as_json, "explore", lambda: {"memory": found.records},
           lambda: found.table(terminal_width()))  # fmt: skip
    for path in files:
        echo(f"written: {path}", err=True)


def _weights_of(text: str) -> tuple[str, tuple[int, ...]]:
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
    from htvm.tiling_file import write_tiling
    from htvm.tools.plots.bars import picture
    from htvm.tools.report.table import csv_text

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
