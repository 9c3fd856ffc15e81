"""``htvm verify``: compares every step on the simulated SoC with the reference."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

import htvm
from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network
from htvm.tools.cli.output import PATH, answer


@click.command(
    epilog=options.examples(
        "htvm verify zoo:resnet8",
        "htvm verify kws.tflite --input sample.npy --golden outputs.npz",
        "htvm verify zoo:digits --target diana.digital --schedule published --json",
        "htvm verify kws.tflite --target generic.cpu --memory least",
    )
)
@options.network
@options.build
@options.given_input
@click.option(
    "--golden",
    "-g",
    type=PATH,
    help="An .npz file with your own outputs for this input, by the outputs' names.",
)
@options.common
def command(
    network: Network,
    target: str,
    build: options.Build,
    given: str,
    golden: Path | None,
    as_json: bool,
) -> None:
    """Run MODEL layer by layer against the reference, and say what differs first.

    Names the first layer, tile (or row, in a chain of rows) and element that differ, both values,
    and the line of C that wrote the element.  Exit code 1 if anything differs, from the reference
    or from the golden.
    """
    from byoc_dory.soc.registry import resolve
    from htvm.tools.verification.verify import bind_golden, simulated

    simulated(resolve(target).soc)  # before anything is built
    opened, inputs = network.open_with(given)
    own = None if golden is None else bind_golden(opened.outputs, golden)
    with shown_progress() as progress:
        module = htvm.build(opened, target, **build, progress=progress)
        found = module.verify(inputs, own, progress=progress)
    verdict = {name: getattr(found, name) for name in ("equal", "contained", "agrees")}
    answer(as_json, "verify", lambda: {**verdict, **asdict(found)}, lambda: str(found))
    if not all(verdict.values()):
        raise click.exceptions.Exit(1)
