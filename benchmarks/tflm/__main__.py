"""TFLite Micro with CMSIS-NN beside ours: cycles (estimated), instructions, flash and RAM.

    python -m benchmarks.tflm SOURCES      what is left of the matrix, then the page
    python -m benchmarks.tflm SOURCES -n DS-CNN -c cortex_m4 -C gcc:-O2    these, by kernel

SOURCES is a folder with the projects as they are published, one folder each: ``tflm``,
``cmsis_nn``, ``cmsis``, ``flatbuffers``, ``gemmlowp``, ``ruy``; ``tflm@VERSION`` says a version.
Results are kept in ``build/tflm``: what is interrupted goes on where it stopped, and with
``--known`` the page is written of what there is.  Ours are measured anew if their C changed, or
what builds and counts it; theirs if their sources or compilers have other versions.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click

from benchmarks import boards
from benchmarks.boards import FILES
from benchmarks.made_of import RowSource, record
from benchmarks.tflm.cells import OURS, Store, cells, data_of, network_of
from benchmarks.tflm.compilers import LEVELS, NAMES, kit_of
from benchmarks.tflm.firmware import Sources
from benchmarks.tflm.layers import side_by_side
from benchmarks.tflm.page import LEFT, headline, page
from byoc_dory.errors import ToolchainError
from byoc_dory.soc.registry import resolve
from htvm.progress_bar import shown_progress
from htvm.tools.cli.app import exit_code

__all__ = ["BLOCK", "QUOTING", "main", "made_of"]

ROOT = Path(__file__).parents[2]
CORES = (
    "cortex_m0plus", "cortex_m4", "cortex_m7", "cortex_m33", "cortex_m55", "cortex_m85",
)  # fmt: skip
_OTHER_CORES = ("cortex_m3", "cortex_m52")
SETTINGS = ("gcc:-O2", "gcc:-O3", "clang:-O2", "zig:-O2")

QUOTING = ("README.md", "docs/guides/boards.md")
"""Files that quote the page's first sentence."""
BLOCK = re.compile(r"(<!-- python -m benchmarks.tflm -->\n).*?(\n<!-- end -->)", re.S)


@click.command(help=__doc__)
@click.argument("sources", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--network", "-n", multiple=True, type=click.Choice([*FILES]))
@click.option("--core", "-c", multiple=True, type=click.Choice([*CORES, *_OTHER_CORES]))
@click.option(
    "--compiler",
    "-C",
    multiple=True,
    type=click.Choice([f"{name}:{level}" for name in NAMES for level in LEVELS]),
)
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    default=ROOT.parent / "shared" / "models" / "tflite",
    help="Folder of MLPerf Tiny's files, each in a folder with its golden.",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    default=ROOT / "build" / "tflm",
    help="Folder of results and object files.",
)
@click.option("--known", is_flag=True, help="Measure nothing, and leave out what is not kept.")
def main(
    sources: Path,
    network: tuple[str, ...],
    core: tuple[str, ...],
    compiler: tuple[str, ...],
    models: Path,
    store: Path,
    known: bool,
) -> None:
    """Measure; show kernels, or write the page and its data."""
    kept = Store(store, Sources.below(sources), lambda name: network_of(name, models))
    versions, left = {}, []
    with shown_progress() as progress:
        for target in core or CORES:
            for setting in compiler or SETTINGS:
                name, _, level = setting.partition(":")
                try:
                    kit = kit_of(name, level, resolve(target).soc)
                except ToolchainError as error:
                    left.append(str(error))
                    continue
                versions[kit.compiler.name] = None
                for each in network or FILES:
                    wanted = [*cells([each], [target], [(name, level)])]
                    if known and not all(kept.is_known(cell) for cell in wanted):
                        left.append(f"{each} on {target} by {setting}, not measured yet")
                        continue
                    with progress.stage(f"{each}, {target}, {setting}"):
                        for cell in wanted:
                            kept.measure(cell)
    if network or core or compiler:
        shown = [side_by_side(cell, kept.results) for cell in kept.results if cell.by == OURS]
        click.echo("\n".join([*shown, *left]))
        return
    said = [*kept.versions, *versions]
    said += [f"{name} {version(name)}" for name in ("unicorn", "htvm")]
    said += [f"{LEFT}{line}" for line in left]
    place = ROOT / "docs" / "results" / "tflm.json"
    place.write_text(data_of(kept.results, said), "utf-8")
    (ROOT / "docs" / "tflm.md").write_text(page(kept.results, said), "utf-8")
    sentence = headline(kept.results)
    for name in QUOTING:
        text = (ROOT / name).read_text("utf-8")
        (ROOT / name).write_text(BLOCK.sub(lambda m: f"{m[1]}{sentence}{m[2]}", text), "utf-8")
    record("tflm", made_of())


def made_of() -> Iterator[RowSource]:
    """Our programs."""
    return boards.made_of(CORES, ())


if __name__ == "__main__":
    sys.exit(exit_code(main, None))
