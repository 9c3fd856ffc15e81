"""TFLite Micro with CMSIS-NN beside ours: cycles (estimated), instructions, flash and RAM.

    python -m benchmarks.tflm SOURCES                  what is left of the matrix, then the page
    python -m benchmarks.tflm SOURCES -n DS-CNN -c cortex_m4 -C gcc:-O2   these cells, by layer

SOURCES is a folder with the projects as they are published, one folder each: ``tflm``,
``cmsis_nn``, ``cmsis``, ``flatbuffers``, ``gemmlowp``, ``ruy``; ``tflm@VERSION`` names a version for
the page.  Results are kept in ``build/tflm``: what is interrupted goes on where it stopped.  Ours
are measured anew after any change of the code, theirs if their compiler or sources changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks.boards import FILES
from benchmarks.tflm.cells import FAST, OURS, Store, cells, network_of
from benchmarks.tflm.compilers import LEVELS, NAMES
from benchmarks.tflm.firmware import Sources
from benchmarks.tflm.layers import side_by_side
from htvm.tools.cli.app import exit_code

_ROOT = Path(__file__).parents[2]
_CORES = ("cortex_m0plus", "cortex_m4", "cortex_m7", "cortex_m33", "cortex_m55")
_SETTINGS = tuple(f"{name}:{level}" for name in NAMES for level in LEVELS)


@click.command(help=__doc__)
@click.argument("sources", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--network", "-n", multiple=True, type=click.Choice([*FILES]))
@click.option("--core", "-c", multiple=True, type=click.Choice(_CORES))
@click.option("--compiler", "-C", multiple=True, metavar="NAME:LEVEL", help="Such as gcc:-O3.")
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    default=_ROOT.parent / "shared" / "models" / "tflite",
    help="Folder of MLPerf Tiny's files, each in a folder with its golden.",
)
@click.option(
    "--store", type=click.Path(path_type=Path), default=_ROOT / "build" / "tflm", help="Results."
)
def main(
    sources: Path,
    network: tuple[str, ...],
    core: tuple[str, ...],
    compiler: tuple[str, ...],
    models: Path,
    store: Path,
) -> None:
    """Measure, and show."""
    settings = [each.partition(":")[::2] for each in compiler or _SETTINGS]
    wanted = [*cells(network or [*FILES], core or _CORES, settings)]
    kept = Store(store, Sources.below(sources), lambda name: network_of(name, models))
    for cell in wanted:
        kept.measure(cell)
    for cell in wanted:
        if cell.by == OURS:
            others = [c for c in wanted if c.by == FAST and c.place == cell.place]
            click.echo(side_by_side(cell, kept.results, others))


if __name__ == "__main__":
    sys.exit(exit_code(main, None))
