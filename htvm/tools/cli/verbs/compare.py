"""``htvm compare``: compares a target with plain TVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import htvm
from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network, read_samples
from htvm.tools.cli.output import answer, picture_to_write, save_figure
from htvm.tools.cli.terminal import echo, terminal_width


@click.command(
    epilog=options.examples(
        "htvm compare zoo:resnet8",
        "htvm compare kws.tflite --target diana.digital --count 100 --input samples.npz",
    )
)
@options.network
@options.labels
@options.target
@options.policy
@options.schedule
@options.given_input
@click.option(
    "--count",
    "-n",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Inputs to try: seeds from SEED on, or entries of the file.",
)
@options.out("Draw the times as .png, .svg or .pdf.", picture_to_write)
@options.common
def command(
    network: Network, given: str, count: int, out: Path | None, as_json: bool, **choices: Any
) -> None:
    """Compare MODEL on a target with plain TVM, and with a cluster's cores, on the same SoC."""
    from htvm.tools.report.compare import comparison_data, comparison_text

    opened = network.open()
    samples = read_samples(given, opened.inputs, count)
    with shown_progress() as progress:
        found = htvm.compare(opened, inputs=samples, progress=progress, **choices)
    if out is not None:
        save_figure(found.plot_latency(), out)
    answer(as_json, "compare", lambda: comparison_data(found),
           lambda: comparison_text(found, terminal_width()))  # fmt: skip
    if out is not None:
        echo(f"written: {out}", err=True)
