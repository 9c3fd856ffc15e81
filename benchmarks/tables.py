"""The committed tables: what makes each, how long that takes, and which are stale.

    python -m benchmarks.tables             every table, its command and its minutes
    python -m benchmarks.tables --check     names the rows that are stale
    python -m benchmarks.tables --stale     makes the tables with stale rows anew

Names of tables restrict both.  A table that was made is written with its digests at once, so that
what is interrupted goes on where it stopped.  In the end, pages that quote tables are written.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import click

from benchmarks.made_of import RowSource, recorded
from benchmarks.results import BENCHMARKS
from htvm.progress import Progress
from htvm.progress_bar import shown_progress
from htvm.tools.cli.app import exit_code

__all__ = ["TABLES", "Table", "stale"]


@dataclass(frozen=True)
class Table:
    """A committed table.

    Attributes:
        name: of the table.
        minutes: of processor time that its command takes, with empty caches.
        command: what ``python -m`` makes it with; ``...`` stands for what has to be given.
        module: says what it is made of; empty if nothing but its ``test`` does.
        test: the test that makes the whole table or page anew, if there is one.
    """

    name: str
    minutes: float
    command: str
    module: str = ""
    test: str = ""

    def rows(self) -> Iterator[RowSource]:
        """What it is made of."""
        if self.module:
            yield from importlib.import_module(self.module).made_of()

    @property
    def remedy(self) -> str:
        """The command that makes it anew."""
        return f"python -m {self.command}"


_MINUTES = {
    "table_i": 4, "table_ii": 0.5, "fig2": 0.5, "fig4": 0.5, "fig5": 0.5, "tiling": 3, "digits": 3,
    "predicted": 4, "step_costs": 8, "snitch_table_i": 4, "siracusa": 1, "siracusa_units": 0.5,
    "siracusa_l1": 10, "llama": 10, "dla": 1, "dla_balance": 3, "boards": 4,
}  # fmt: skip
TABLES = (
    *(
        Table(name, _MINUTES[name], f"benchmarks.results --only {name}", f"benchmarks.{name}")
        for name in BENCHMARKS
    ),
    Table(
        "tflm", 12, "benchmarks.tflm SOURCES", "benchmarks.tflm.__main__"
    ),
    Table("peers", 5, "benchmarks.peers", "benchmarks.peers.__main__"),
    Table("estimators", 6, "benchmarks.estimators", "benchmarks.estimators.__main__"),
    Table(
        "exporter-cases", 2, "benchmarks.exporters.cases --write docs/exporter-cases.md",
        "benchmarks.exporters.cases",
    ),
    Table(
        "exporter-cores", 3, "benchmarks.exporters.cores --write docs/exporter-cores.md",
        "benchmarks.exporters.cores",
    ),
    Table(
        "mutations", 10, "benchmarks.mutations --seed 17 --write docs/mutations.md",
        "benchmarks.mutations",
    ),
    Table(
        "onnx-cases", 3, "benchmarks.onnx_cases --write docs/onnx-cases.md",
        test="tests/benchmarks/test_onnx_cases.py",
    ),
    Table(
        "operators", 1, "benchmarks.operators_page --write",
        test="tests/docs/test_operators_page.py",
    ),
    Table(
        "exporters", 8, "benchmarks.exporters --write docs/exporters.md",
        test="tests/benchmarks/test_exporters.py",
    ),
    Table("large", 10, "benchmarks.large --out docs/results"),
    Table("retarget_time", 7, "benchmarks.retarget_time --out docs/results"),
    Table("load_time", 5, "benchmarks.load_time --out docs/results"),
    Table("passes", 1, "benchmarks.passes --out docs/results"),
    Table("house", 2, "benchmarks.house --out docs/results"),
)  # fmt: skip
"""Seconds of `large` and what follows are those of a machine, `house` counts one commit, and the
files of `large` come from onnxruntime's quantizer, which rounds otherwise on other machines:
nothing tells when they are stale."""


def stale(table: Table, progress: Progress) -> Iterator[str]:
    """Yield the rows of a table that are not made of what they were, with both digests."""
    known = recorded().get(table.name, {})
    rows = [row for row in table.rows() if row.is_makeable]
    for number, row in enumerate(rows, 1):
        if row.name not in known:
            yield f"{row.name}: was never made"
            continue
        with progress.stage(f"{table.name}: {row.name}", (number, len(rows))):
            today = row.digest()
        if known[row.name] != today:
            yield f"{row.name}: made of {known[row.name]}, today {today}"


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--check", is_flag=True, help="Name the rows that are stale.")
@click.option("--stale", "make", is_flag=True, help="Make tables with stale rows anew.")
def main(names: tuple[str, ...], check: bool, make: bool) -> None:
    """List, check or make tables."""
    unknown = set(names) - {table.name for table in TABLES}
    if unknown:
        raise click.UsageError(f"no such table: {', '.join(sorted(unknown))}")
    tables = [table for table in TABLES if not names or table.name in names]
    if not (check or make):
        for table in tables:
            click.echo(f"{table.name:16}{table.minutes:>5g} min  {table.remedy:64}{table.test}")
        return
    bad = False
    for table in tables:
        with shown_progress() as progress:
            # One is enough to make the table anew.
            rows = list(islice(stale(table, progress), 1 if make else None))
        click.echo("\n  ".join([f"{table.name}: {'stale' if rows else 'fresh'}", *rows]))
        if rows and make and "..." not in table.command:
            click.echo(f"{table.name}: {table.remedy}, about {table.minutes:g} min")
            _run(table.command)
        elif rows:
            click.echo(f"{table.name}: to be made with {table.remedy}")
            bad = True
    if make:
        _run("tests.docs.outputs docs/comparison.md")
    sys.exit(int(bad))


def _run(command: str) -> None:
    line = [sys.executable, "-m", *command.split()]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, cwd=Path(__file__).parents[1])


if __name__ == "__main__":
    sys.exit(exit_code(main, None))
