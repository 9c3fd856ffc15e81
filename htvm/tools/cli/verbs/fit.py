"""``htvm fit``: whether a model fits a target."""

from __future__ import annotations

from typing import Any

import click

from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network
from htvm.tools.cli.output import answer
from htvm.tools.cli.terminal import terminal_width


@click.command(
    epilog=options.examples(
        "htvm fit zoo:resnet8",
        "htvm fit kws.tflite --target diana.digital --l1 65536",
        "htvm fit zoo:mobilenet_v1 --target generic.cpu --l2 262144 --json",
        "htvm fit zoo:ds_cnn --board nucleo-l4r5zi --cc arm-none-eabi-gcc",
    )
)
@options.network
@options.target
@options.policy
@options.tiling
@options.l2
@options.cc
@options.common
def command(network: Network, as_json: bool, **choices: Any) -> None:
    """Say whether MODEL fits: each memory's demand and limit, what dominates, what would help.

    The program is compiled, also where it does not fit, and its code is measured; only where that
    is impossible is it estimated.  The exit code is 1 if the model does not fit.
    """
    from htvm.tools.fitting import fit
    from htvm.tools.report.fit import fit_data, fit_text

    with shown_progress() as progress:
        found = fit(network.open(), progress=progress, **choices)
    answer(as_json, "fit", lambda: fit_data(found), lambda: fit_text(found, terminal_width()))
    if found.fits == "no":
        raise click.exceptions.Exit(1)
