"""``htvm sweep``: networks on many designs of a SoC, each compiled and executed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.output import print_json
from htvm.tools.cli.places import PATH, file_to_write, folder_to_write
from htvm.tools.cli.terminal import EXIT_INTERRUPTED, echo

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command(
    context_settings={"ignore_unknown_options": True},
    options_metavar="[OPTIONS] --PARAMETER VALUES",
    epilog=options.examples(
        "htvm sweep zoo:digits --target siracusa --cores 1,2,4,8 --l1 64KiB,256KiB",
        "htvm sweep zoo:resnet8 zoo:ds_cnn -t diana --l1 16k,64k,256k --dma 8,16 --out designs",
        "htvm sweep zoo:digits -t snitch_ita --cores 1..16 --method latin --samples 8",
        "htvm sweep zoo:digits -t diana.digital --digital.row_cycles 0..2 --dma.granule 16,32",
    ),
)
@click.argument("words", metavar="MODEL...", nargs=-1, required=True, type=click.UNPROCESSED)
@options.targeted("Whose parameters are swept; it may set others: siracusa:l2=1MiB.")
@click.option(
    "--method",
    type=click.Choice(["grid", "random", "latin", "search"]),
    default="grid",
    show_default=True,
    help="All combinations, a random or a Latin-hypercube sample of them, or a search.",
)
@click.option("--samples", type=int, help="Number of designs, for all methods but the grid.")
@click.option(
    "--objective", "objectives", multiple=True, help="What a search minimises; cycles by default."
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@click.option(
    "--results",
    "-r",
    type=PATH,
    callback=file_to_write("the results"),
    help="Results file, .parquet or .csv; the same sweep with the same file goes on.",
)
@click.option(
    "--out",
    "-o",
    type=PATH,
    callback=folder_to_write,
    help="Folder for CSV and figures.",
)
@click.option("--jobs", "-j", type=int, help="Processes; all cores by default.")
@click.option("--scheduler", help="Address of a dask scheduler to execute on instead.")
@click.option("--mac-pj", type=float, help="Energy of a multiply-accumulate, in pJ.")
@click.option("--byte-pj", type=float, help="Energy of a byte to or from L2, in pJ.")
@click.option("--cycle-pj", type=float, help="Energy of a cycle, in pJ.")
@click.option("--area", "areas", multiple=True, metavar="PARAMETER=A", help="Area of each unit.")
@options.policy
@options.schedule
@options.limits
@options.common
def command(
    words: Sequence[str],
    as_json: bool,
    out: Path | None,
    scheduler: str | None,
    mac_pj: float | None,
    byte_pj: float | None,
    cycle_pj: float | None,
    areas: Sequence[str],
    **choices: Any,
) -> None:
    """Compile and execute each MODEL on every design of a grid of parameters.

    Values are separated by commas; 1..8 stands for all from 1 to 8 that are possible. A parameter
    is one that `htvm targets show NAME` lists, or any number of the description, such as
    --dma.queue_depth or --L1.size.
    """
    import htvm
    from htvm.tools.cli.sweep_arguments import area_of, connected, split_words

    target = choices.pop("target")
    models, grid = split_words(words, target)
    costs = htvm.Costs(mac_pj, byte_pj, cycle_pj, area_of(areas))
    objectives = choices.pop("objectives") or ("cycles",)
    with connected(scheduler) as client, shown_progress() as progress:
        found = htvm.sweep(
            models,
            target,
            grid,
            objectives=objectives,
            costs=costs,
            client=client,
            progress=progress,
            **choices,
        )
    files = [] if out is None else found.save(out)
    if as_json:
        data = {"rows": found.records, "interrupted": found.interrupted}
        print_json("sweep", data)
    else:
        echo(str(found))
    for path in files:
        echo(f"written: {path}", err=True)
    if found.interrupted:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)
