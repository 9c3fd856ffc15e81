"""``htvm sweep``: networks on many designs of a SoC, each compiled and executed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from byoc_dory.soc.parameters import parse_size
from htvm.errors import TargetError
from htvm.progress_bar import shown_progress
from htvm.shown import optional
from htvm.tools.cli import options
from htvm.tools.cli.arguments import read_named
from htvm.tools.cli.output import PATH, answer, file_to_write, folder_to_write
from htvm.tools.cli.terminal import EXIT_INTERRUPTED, echo

if TYPE_CHECKING:
    from byoc_dory.soc.parameters import Parameter


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
@options.out("Folder for CSV and figures.", folder_to_write)
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

    target = choices.pop("target")
    models, grid = split_words(words, target)
    costs = htvm.Costs(mac_pj, byte_pj, cycle_pj, _area_of(areas))
    objectives = choices.pop("objectives") or ("cycles",)
    with _connected(scheduler) as client, shown_progress() as progress:
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
    data = {"rows": found.records, "interrupted": found.interrupted}
    answer(as_json, "sweep", lambda: data, lambda: str(found))
    for path in files:
        echo(f"written: {path}", err=True)
    if found.interrupted:
        raise click.exceptions.Exit(EXIT_INTERRUPTED)


_MOST = 100_000  # values of a range


def split_words(words: Sequence[str], target: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the models, and the values of each parameter.

    Args:
        words: models, and ``--NAME VALUES`` or ``--NAME=VALUES``.
        target: name of the target whose parameters they are.

    Raises:
        TargetError: a parameter has no values or is given twice, there is none, or a range is bad.
    """
    from byoc_dory.soc.numbers import known_parameters
    from byoc_dory.soc.registry import resolve

    parameters = {entry.name: entry for entry in known_parameters(resolve(target).soc)}
    models: list[str] = []
    grid: dict[str, list[str]] = {}
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            models.append(word)
            continue
        name, equals, values = word.lstrip("-").partition("=")
        if not equals:
            values = next(left, "")
        name = name.replace("-", "_")
        if not values:
            raise TargetError(
                f"{word} has no values", where="htvm sweep", hint=f"write --{name} VALUE,VALUE"
            )
        if name in grid:
            raise TargetError(
                f"--{name} is given twice", where="htvm sweep", hint="separate values by commas"
            )
        grid[name] = [
            value
            for text in values.split(",")
            for value in _values(text.strip(), parameters.get(name))
        ]
    if not models:
        raise TargetError("there is no model", where="htvm sweep", hint="name a file or zoo:NAME")
    return models, grid


def _values(text: str, parameter: Parameter | None) -> list[str]:
    """Return the values that ``LOW..HIGH`` stands for, or the text itself."""
    low, dots, high = text.partition("..")
    if not dots or parameter is None or parameter.kind not in ("integer", "bytes"):
        return [text]
    first, last = parse_size(low), parse_size(high)
    if parameter.choices:
        inside = [value for value in parameter.choices if isinstance(value, int)]
    elif first is None or last is None or (last - first) // parameter.step >= _MOST:
        inside = []
    else:
        step = parameter.step
        inside = list(range(-(-first // step) * step, last + 1, step))
    found = [
        str(value) for value in inside if first is not None and last is not None
        and first <= value <= last
    ]  # fmt: skip
    if not found:
        raise TargetError(
            f"{text} stands for no values, or for more than {_MOST:,}",
            where=f"--{parameter.name}",
            hint=f"possible are {parameter.domain}",
        )
    return found


def _area_of(texts: Sequence[str]) -> dict[str, float]:
    """Return the area of each unit of a parameter, from ``NAME=AREA``.

    Raises:
        InputError: a text has another form.
    """
    what = "parameter with an area"
    return dict(read_named(text, float, what, "--area", "pes=310") for text in texts)


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Yield a client of the dask scheduler at an address; None without an address.

    Raises:
        TargetError: nothing answers there.
        DependencyError: ``distributed`` is not installed.
    """
    if address is None:
        yield None
        return
    distributed = optional("distributed", "sweeps on a cluster", "cluster")
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise TargetError(
            f"no dask scheduler answers at {address}",
            where="--scheduler",
            hint="start one with `dask scheduler`, and workers with `dask worker`",
        ) from error
    with client:
        yield client
