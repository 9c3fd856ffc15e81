"""Instructions of the MLPerf Tiny networks on RISC-V cores with vectors, and without.

    python -m benchmarks.riscv_vectors          prints the table
    python -m benchmarks.riscv_vectors --write  writes it into docs/guides/riscv-vectors.md, too

Each network runs once for each target, with outputs equal to the reference's or the command fails.
Networks whose files are not at hand are an error.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
import numpy as np

import htvm
from benchmarks.boards import FILES, file_of
from htvm.inputs import seeded_inputs
from htvm.tools.cli.app import exit_code

__all__ = ["TARGETS", "counted", "table"]

TARGETS = (
    "rv32imc",
    "rv32imcv",
    "rv32imcv:vlen=256",
    "rv64gcv",
    "rv64gcv:vlen=256",
)
"""The scalar core first; its simulator counts cycles, which are more than its instructions."""

_PAGE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "riscv-vectors.md"
_BLOCK = re.compile(r"(<!-- python -m benchmarks.riscv_vectors -->\n).*?(<!-- end -->)", re.S)


def counted(name: str, target: str) -> tuple[int, int]:
    """Return instructions (cycles of the scalar core) and multiply-accumulates of a network.

    Raises:
        RuntimeError: an output differs from the reference's.
    """
    module = htvm.build(htvm.load(file_of(name)), target)
    inputs = seeded_inputs(module.compiled.source.inputs)
    result = module.run(inputs)
    for output, reference in zip(result.outputs, module.reference(inputs), strict=True):
        if not np.array_equal(output, reference):
            raise RuntimeError(f"{name} on {target}: an output differs from the reference")
    number = result.cycles if result.instructions is None else result.instructions
    assert number is not None
    return number, sum(step.macs for step in module.compiled.program.steps)


def table(found: dict[str, dict[str, tuple[int, int]]]) -> str:
    """Return the table in Markdown.

    Args:
        found: by network and target, instructions and multiply-accumulates.
    """
    lines = [
        "| network | " + " | ".join(f"`{target}`" for target in TARGETS) + " |",
        "| --- |" + " --: |" * len(TARGETS),
    ]
    rows = {**found, "all": {target: _total(found, target) for target in TARGETS}}
    for name, row in rows.items():
        cells = (f"{number:,} ({number / macs:.2f})" for number, macs in map(row.get, TARGETS))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _total(found: dict[str, dict[str, tuple[int, int]]], target: str) -> tuple[int, int]:
    numbers = [row[target] for row in found.values()]
    return sum(number for number, _ in numbers), sum(macs for _, macs in numbers)


@click.command(help=__doc__)
@click.option("--write", is_flag=True, help="Write the table into the guide.")
def main(write: bool) -> None:
    """Count and print."""
    missing = [name for name in FILES if not file_of(name).is_file()]
    if missing:
        raise click.ClickException(f"{', '.join(missing)}: no such file: {file_of(missing[0])}")
    found = {name: {target: counted(name, target) for target in TARGETS} for name in FILES}
    text = table(found)
    click.echo(text)
    if write:
        page = _PAGE.read_text("utf-8")
        _PAGE.write_text(_BLOCK.sub(lambda m: f"{m[1]}\n{text}\n\n{m[2]}", page), "utf-8")


if __name__ == "__main__":
    sys.exit(exit_code(main, None))
