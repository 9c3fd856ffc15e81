"""Every published table and figure beside ours, gathered into docs/results.md.

Run with ``make bench``.  Each benchmark writes text, JSON and PNG into ``docs/results``; the page
has the texts and the pictures.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

from benchmarks.artefact import Artefact
from htvm.cli.app import exit_code
from htvm.progress_bar import shown_progress

BENCHMARKS = (
    "table_i", "table_ii", "fig2", "fig4", "fig5", "tiling", "digits", "predicted",
    "step_costs", "snitch_table_i", "siracusa", "siracusa_units", "siracusa_l1", "llama",
    "dla", "dla_balance", "boards",
)  # fmt: skip
"""Modules of this package, in the order of the page."""

_DOCS = Path(__file__).parents[1] / "docs"


def page(artefacts: list[Artefact]) -> str:
    """The page: a heading, the text and the pictures of each artefact."""
    parts = [
        "# Results",
        "Published figures and ours, made by `make bench`. All of ours come from runs of the "
        "generated C on the simulated SoC, or, where a table says so, from the cycle model. "
        "Simulated cycles are no measurements on the chip: what is published, derived and assumed "
        "about it stands in the `description.py` of `byoc_dory/soc/diana`, "
        "`byoc_dory/soc/snitch_ita`, `byoc_dory/soc/siracusa` and `byoc_dory/soc/dla`.",
    ]
    return "\n\n".join([*parts, *map(section, artefacts)]) + "\n"


def section(artefact: Artefact) -> str:
    """The section of an artefact: its heading, text and pictures."""
    pictures = [f"![{name}](results/{name}.png)" for name in artefact.figures]
    text = f"```text\n{artefact.text.rstrip()}\n```"
    return "\n\n".join([f"## {artefact.title}", text, *pictures])


def with_sections(old: str, artefacts: list[Artefact]) -> str:
    """A page with these sections in place of those with the same headings.

    Raises:
        ValueError: it has no section with the heading of one of them.
    """
    parts = old.rstrip("\n").split("\n\n## ")
    places = {part.partition("\n")[0]: number for number, part in enumerate(parts) if number}
    for artefact in artefacts:
        if artefact.title not in places:
            raise ValueError(
                f"docs/results.md has no section '{artefact.title}'; make the whole page"
            )
        parts[places[artefact.title]] = section(artefact).removeprefix("## ")
    return "\n\n## ".join(parts) + "\n"


@click.command(help=__doc__)
@click.option("--only", multiple=True, help="Benchmarks to run; others' sections stay as they are.")
def bench(only: tuple[str, ...]) -> None:
    """Run the benchmarks and write the page."""
    artefacts = []
    with shown_progress() as progress:
        for name in only or BENCHMARKS:
            with progress.stage(name):
                module = importlib.import_module(f"benchmarks.{name}")
                artefacts.append(module.run(_DOCS / "results", progress))
    for artefact in artefacts:
        click.echo(f"{artefact.title}\n\n{artefact.text}\n")
    path = _DOCS / "results.md"
    text = with_sections(path.read_text(encoding="utf-8"), artefacts) if only else page(artefacts)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(exit_code(bench, None))
