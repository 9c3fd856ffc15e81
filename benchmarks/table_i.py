"""HTVM (DAC 2023), Table I: latency and size of the MLPerf Tiny networks on DIANA, and ours.

The networks have the published topologies and random weights; latency and size do not depend on
their values.  Ours is simulated; the CPU columns do not compare, because the published CPU code
uses SIMD instructions which the simulated core lacks.
"""

from __future__ import annotations

import sys

import click

import htvm
from htvm import zoo
from htvm.cli.app import exit_code
from htvm.cli.arguments import read_samples
from htvm.cli.terminal import shown_progress
from htvm.progress import Progress
from htvm.report.published import published
from htvm.report.table import Column, Table, milliseconds, ratio, text
from htvm.report.types import Comparison, ComparisonRow

NETWORKS = ("ds_cnn_7x5", "mobilenet_v1", "resnet8", "toyadmos")
TARGET = "diana.digital"

COLUMNS = (
    Column("network"),
    Column("configuration"),
    Column("ms", number=True),
    Column("published ms", number=True),
    Column("ours / published", number=True),
    Column("speed-up over the CPU", number=True),
    Column("published", number=True),
    Column("code+const. kB", number=True),
    Column("published kB", number=True),
    Column("= reference"),
)


def rows(name: str, progress: Progress) -> list[tuple[str, ...]]:
    """Our configurations of one network, each beside the published one it corresponds to."""
    model = zoo.build(name)
    found = htvm.compare(model, TARGET, read_samples("random", model.inputs, 1), progress=progress)
    return [_row(found, row) for row in found.rows]


def _row(found: Comparison, row: ComparisonRow) -> tuple[str, ...]:
    cpu, digital = published(found.macs, TARGET)
    theirs = digital if row.target == TARGET else cpu
    ms = None if row.cycles is None else row.cycles * 1000.0 / found.clock_hz
    memory = row.memory
    return (
        found.network,
        row.configuration,
        row.failure or milliseconds(ms),
        milliseconds(theirs.latency_ms) or "out of memory",
        ratio(ms, theirs.latency_ms),
        ratio(found.speed_up(row), 1.0, 1),
        ratio(cpu.latency_ms, theirs.latency_ms, 1),
        "" if memory is None else f"{(memory.code + memory.constants) / 1000:.0f}",
        str(theirs.size_kb),
        {None: "", True: "yes", False: "NO"}[row.exact],
    )


@click.command()
def bench() -> None:
    """Print Table I beside ours."""
    table: list[tuple[str, ...]] = []
    with shown_progress() as progress:
        for name in NETWORKS:
            with progress.stage(name):
                table += rows(name, progress)
    click.echo(text(Table(COLUMNS, tuple(table), title=str(__doc__).strip())))
    if any(row[-1] == "NO" for row in table):
        raise click.exceptions.Exit(1)


if __name__ == "__main__":
    sys.exit(exit_code(bench, None))
