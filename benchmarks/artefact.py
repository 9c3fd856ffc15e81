"""`Artefact`: what a benchmark hands over, as text, as data and as figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from htvm.progress import Progress
from htvm.progress_bar import shown_progress
from htvm.tools.cli.app import exit_code

__all__ = ["Artefact", "main", "write"]


@dataclass(frozen=True)
class Artefact:
    """One published table or figure beside ours.

    Attributes:
        name: of its files.
        title: one line.
        text: to be read, tables included.
        data: the same figures for programs: what JSON can hold.
        figures: matplotlib figures by the name of their files.
    """

    name: str
    title: str
    text: str
    data: Any
    figures: Mapping[str, Any] = field(default_factory=dict[str, Any])


def write(artefact: Artefact, folder: Path) -> tuple[Path, ...]:
    """Write ``<name>.txt``, ``<name>.json`` and ``<figure>.png`` into a folder, made if need be.

    Returns:
        The files, the same bytes for the same artefact.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text, data = folder / f"{artefact.name}.txt", folder / f"{artefact.name}.json"
    text.write_text(f"{artefact.title}\n\n{artefact.text.rstrip()}\n", encoding="utf-8")
    data.write_text(json.dumps(artefact.data, indent=1) + "\n", encoding="utf-8")
    files = [text, data]
    for name, figure in artefact.figures.items():
        files.append(folder / f"{name}.png")
        # Without the library's version, which differs where the picture does not.
        figure.savefig(files[-1], dpi=110, metadata={"Software": None})
    return tuple(files)


def main(run: Callable[[Path, Progress], Artefact]) -> int:
    """The command line of a benchmark: run it, print its text; returns the exit code."""

    @click.command(help=run.__doc__)
    @click.option(
        "--out", "-o", default=Path("build/bench"), show_default=True,
        type=click.Path(path_type=Path, file_okay=False), help="Folder for text, JSON and PNG.",
    )  # fmt: skip
    def command(out: Path) -> None:
        with shown_progress() as progress:
            artefact = run(out, progress)
        click.echo(f"{artefact.title}\n\n{artefact.text}")

    return exit_code(command, None)
