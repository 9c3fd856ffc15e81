"""``htvm print``: the value after a stage of a build, as text."""

from __future__ import annotations

import click

from htvm.errors import HtvmError
from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network
from htvm.tools.cli.output import print_json
from htvm.tools.cli.terminal import echo


@click.command(
    epilog=options.examples(
        "htvm print zoo:ds_cnn --after dispatch",
        "htvm print kws.tflite --target cortex_m4 --after assemble",
    )
)
@options.network
@options.placed
@click.option(
    "--after",
    default="dispatch",
    show_default=True,
    metavar="STAGE",
    help="Stage whose value is printed: import (operators), place (planned cores, with the reasons "
    "of refusals), retarget (operators in the cores' numbers), dispatch (cores, with the reasons), "
    "partition (regions), generate (tiles, L1), lower (CPU kernels) or assemble (steps, L2).  "
    "Tiles are planned in generate: there fails a layer whose smallest tile exceeds L1.",
)
@options.common
def command(
    network: Network,
    target: str,
    placed: options.Placed,
    after: str,
    as_json: bool,
) -> None:
    """Print what a stage of the build of MODEL returned, as text.

    The text is for reading and comparing; it is no input of any verb.  If the build fails before
    the end of the stage, the values of all stages that it reached are printed, then the error.
    """
    from htvm.build_options import BuildOptions
    from htvm.tools.printing.stages import STAGES, printed_stages

    opened, options = network.open(), BuildOptions(**placed)
    texts: list[str] = []
    failure: HtvmError | None = None
    with shown_progress() as progress:
        try:
            for text in printed_stages(opened, target, after, options=options, progress=progress):
                texts.append(text)
        except HtvmError as error:
            failure = error
    if failure is not None and not texts:
        raise failure
    # Of a build that fails, every stage that it reached.
    shown = "\n".join(texts[-1:] if failure is None else texts).rstrip("\n")
    fields: dict[str, object] = {"after": STAGES[len(texts) - 1], "lines": shown.splitlines()}
    if failure is not None:
        failing = STAGES[len(texts)]
        fields |= {"failed": failing, "error": str(failure)}
        shown += f"\n\nThe stage {failing} fails."
    if as_json:
        print_json("print", fields)
    else:
        echo(shown)
    if failure is not None:
        raise failure
