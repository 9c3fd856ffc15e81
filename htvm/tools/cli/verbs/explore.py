"""``htvm explore``: the tiles that the tiler chooses under different options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import htvm
from byoc_dory.options import TilingOptions
from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network
from htvm.tools.cli.output import print_json
from htvm.tools.cli.places import PATH, folder_to_write
from htvm.tools.cli.terminal import EXIT_INTERRUPTED, echo, terminal_width


@click.command(
    epilog=options.examples(
        "htvm explore zoo:resnet8 --l1 16384 --l1 65536",
        "htvm explore zoo:toyadmos --objective array --beta 'long DMA=0,400000' --out sweep",
    )
)
@options.network
@options.target
@options.policy
@options.schedule
@click.option("--objective", "objectives", multiple=True, help="Which to try; all by default.")
@click.option("--l1", "l1_budgets", multiple=True, type=options.Bytes(), help="Bytes of L1.")
@click.option(
    "--alpha", "alphas", multiple=True, type=click.IntRange(0), help="Weight of a byte of L1."
)
@click.option("--beta", "betas", multiple=True, metavar="HEURISTIC=W[,W...]", help="Weights.")
@click.option(
    "--out",
    "-o",
    type=PATH,
    callback=folder_to_write,
    help="Folder for CSV, figures, and the winner: a file for --tiling.",
)
@options.common
def command(
    network: Network,
    schedule: Any,
    betas: Sequence[str],
    as_json: bool,
    out: Path | None,
    **choices: Any,
) -> None:
    """Tile the layers of MODEL under every choice of objective, weights and L1 budget."""
    from htvm.tools.cli.sweeps import weights_of, write_sweep

    tiling = TilingOptions() if schedule is None else TilingOptions(schedule=schedule)
    weights = dict(map(weights_of, betas))
    with shown_progress() as progress:
        found = htvm.explore(
            network.open(), betas=weights, tiling=tiling, progress=progress, **choices
        )
    files = [] if out is None else write_sweep(found, out)
    if as_json:
        print_json("explore", {"tilings": found.records})
    else:
        echo(found.table(terminal_width()))
    for path in files:
        echo(f"written: {path}", err=True)
    if found.interrupted:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
