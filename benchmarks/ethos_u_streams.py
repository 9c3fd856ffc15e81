"""Streams for the Ethos-U's model, drawn for single operations, and damaged: what becomes of them.

    python -m benchmarks.ethos_u_streams [--streams 2000] [--damaged 10000]

Convolutions are given to Vela's interface for single operations with addresses, layouts,
multipliers and shifts drawn here, for all five configurations and 8 and 16 bits, and the model's
results compared with numpy's.  Damaged are streams of layers, with all weights of them, and one
written word by word: a register changed, a wait removed, a length cut.  Each ends with a complaint,
an equal or a different result; the program has sanitizers of addresses and undefined behaviour, and
a limit of time, so that a crash, a hang or an access outside ends the count.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from htvm.progress_bar import shown_progress
from tests.runtime_c.ethos_u import library
from tests.runtime_c.test_ethos_u_convolutions import check
from tests.runtime_c.test_ethos_u_mutations import built, layer_cases, own_case, run

_FIRST = 1000
"""Number of the first stream, its seed."""


@click.command(help=__doc__)
@click.option("--streams", type=click.IntRange(min=1), default=2000, show_default=True)
@click.option("--damaged", type=click.IntRange(min=8), default=10_000, show_default=True)
@click.option("--compiler", type=click.Choice(["gcc", "clang"]), default="gcc", show_default=True)
def main(streams: int, damaged: int, compiler: str) -> None:
    """Count; an exception is a difference, with what was drawn, or what a sanitizer said."""
    lib, drawn, equal = library(), 0, 0
    with shown_progress() as progress, tempfile.TemporaryDirectory() as name:
        while equal < streams:
            with progress.stage(f"{equal:,} of {streams:,} streams"):
                for seed in range(_FIRST + drawn, _FIRST + drawn + min(100, streams - equal)):
                    equal += check(lib, seed)
                    drawn += 1
        click.echo(f"{equal:,} streams are equal, 0 differ; Vela has none for {drawn - equal} more")
        folder = Path(name)
        program, layers = built(folder, compiler), layer_cases(folder, lib)
        click.echo(f"{'damaged':26}{'streams':>10}{'complaint':>11}{'equal':>8}{'different':>11}")
        for what, files in (
            ("streams of layers", layers),
            ("written word by word", [own_case(folder)]),
        ):
            with progress.stage(what):
                complaints, same, other = run(program, damaged // len(files), files)
            total = complaints + same + other
            click.echo(f"{what:26}{total:>10,}{complaints:>11,}{same:>8,}{other:>11,}")


if __name__ == "__main__":
    main()
