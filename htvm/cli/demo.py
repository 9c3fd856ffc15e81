"""The main job, once, start to end: ResNet-8 on the simulated DIANA, beside plain TVM.

``python -m htvm.cli.demo [MODEL]``; without a model file, the zoo's ResNet-8 is taken.
"""

from __future__ import annotations

import sys
import time

import click
import numpy as np

import htvm
from htvm.cli.app import exit_code
from htvm.cli.arguments import open_model, read_samples
from htvm.cli.terminal import shown_progress
from htvm.progress import Progress

__all__ = ["main"]

TARGET = "diana"
INPUTS = 8


@click.command()
@click.argument("model", default="zoo:resnet8")
def demo(model: str) -> None:
    """Compare MODEL on the simulated DIANA with plain TVM, and show where the time goes."""
    begin = time.monotonic()
    with shown_progress() as progress:
        exact = _show(model, progress)
    click.echo(f"\ndone in {time.monotonic() - begin:.0f} s")
    if not exact:
        raise click.exceptions.Exit(1)


def _show(name: str, progress: Progress) -> bool:
    """Print everything; return whether every output was the reference's, bit for bit."""

    with progress.stage("opening the model"):
        model = open_model(name)
    samples = read_samples("random", model.inputs, INPUTS)
    _title(f"1. {name} on the CPU and on {TARGET}, {INPUTS} random inputs, simulated")
    comparison = htvm.compare(model, TARGET, samples, progress=progress)
    click.echo(comparison)

    _title(f"2. where the time goes on {TARGET}")
    with progress.stage(f"building for {TARGET}"):
        module = htvm.build(model, TARGET, progress=progress)
    with progress.stage("simulating"):
        result = module.run(samples[0])
    click.echo(module.report())

    _title("3. where each operator runs, and why")
    click.echo(module.explain())

    _title("4. is it right?")
    with progress.stage("running the same C natively"):
        native = htvm.build(model, TARGET, "host", progress=progress).run(samples[0])
    same = all(map(np.array_equal, result.outputs, native.outputs))
    exact = all(row.exact for row in comparison.rows if row.exact is not None)
    click.echo(
        f"outputs equal the integer reference on all {INPUTS} inputs, every configuration: "
        f"{'yes' if exact else 'NO'}\n"
        f"the same C compiled natively gives the same outputs: {'yes' if same else 'NO'}"
    )
    return exact and same


def _title(text: str) -> None:
    click.echo(f"\n{text}\n{'=' * len(text)}\n")


def main() -> int:
    """Run the demo; exit codes as of the command ``htvm``."""
    click.echo(f"htvm {htvm.__version__}")
    return exit_code(demo, None)


if __name__ == "__main__":
    sys.exit(main())
