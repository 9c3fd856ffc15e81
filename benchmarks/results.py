"""Every published table and figure beside ours, gathered into docs/results.md.

Run with ``make bench``.  Each benchmark writes text, JSON and PNG into ``docs/results``, with the
digests of what they are made of; the page has the texts and the pictures.  Pages that quote the
figures are written in the end.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

import click

from benchmarks.made_of import record
from htvm.progress_bar import shown_progress
from htvm.tools.cli.app import exit_code
from tests.docs.outputs import QUOTING, write

BENCHMARKS = (
    "table_i", "table_ii", "fig2", "fig4", "fig5", "tiling", "digits", "predicted",
    "step_costs", "snitch_table_i", "siracusa", "siracusa_units", "siracusa_l1", "llama",
    "dla", "dla_balance", "boards",
)  # fmt: skip
"""Modules of this package, in the order of the page."""

_DOCS = Path(__file__).parents[1] / "docs"


def page(folder: Path = _DOCS / "results") -> str:
    """The page: a heading, and the text and the picture that each benchmark wrote last."""
    parts = [
        "# Results",
        "Published figures and ours, made by `make bench`. All of ours come from runs of the "
        "generated C on the simulated SoC, or, where a table says so, from the cycle model. "
        "Simulated cycles are no measurements on the chip: what is published, derived and assumed "
        "about it stands in the `description.py` of `byoc_dory/soc/diana`, "
        "`byoc_dory/soc/snitch_ita`, `byoc_dory/soc/siracusa` and `byoc_dory/soc/dla`.",
    ]
    for name in BENCHMARKS:
        title, _, text = (folder / f"{name}.txt").read_text(encoding="utf-8").partition("\n\n")
        parts += [f"## {title}", f"```text\n{text.rstrip()}\n```"]
        if (folder / f"{name}.png").exists():
            parts.append(f"![{name}](results/{name}.png)")
    return "\n\n".join(parts) + "\n"


@click.command(help=__doc__)
@click.option("--only", multiple=True, help="Benchmarks to run; others' sections stay as they are.")
def bench(only: tuple[str, ...]) -> None:
    """Run the benchmarks and write the page."""
    with shown_progress() as progress:
        for name in only or BENCHMARKS:
            module = importlib.import_module(f"benchmarks.{name}")
            with progress.stage(name):
                artefact = module.run(_DOCS / "results", progress)
            with progress.stage(f"{name}: what it is made of"):
                record(name, module.made_of())
            (_DOCS / "results.md").write_text(page(), encoding="utf-8")
            click.echo(f"{artefact.title}\n\n{artefact.text}\n")
        for quoting in QUOTING:
            with progress.stage(quoting), tempfile.TemporaryDirectory() as empty:
                write(_DOCS.parent / quoting, Path(empty))


if __name__ == "__main__":
    sys.exit(exit_code(bench, None))
