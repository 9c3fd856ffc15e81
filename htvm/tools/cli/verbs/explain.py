"""``htvm explain``: where each operator runs, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from htvm.progress_bar import shown_progress
from htvm.tools.cli import options
from htvm.tools.cli.arguments import Network
from htvm.tools.cli.output import answer
from htvm.tools.cli.terminal import terminal_width

if TYPE_CHECKING:
    from htvm.compiled import Compiled


@click.command(
    epilog=options.examples(
        "htvm explain zoo:ds_cnn",
        "htvm explain kws.tflite --target diana.digital --json",
    )
)
@options.network
@options.placed
@click.option(
    "--changes",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="How many changes to the model to look for, those that would gain most.",
)
@options.wide
@options.common
def command(
    network: Network,
    target: str,
    placed: options.Placed,
    changes: int,
    wide: bool,
    as_json: bool,
) -> None:
    """Say where each operator of MODEL runs, what it costs, why not elsewhere, and what to change.

    Cycles of accelerators are the cost model's: in its place where a layer runs, alone for those
    that would also take it.  Those of the CPU are measured once, by simulating its code, and kept.
    """
    from htvm.build_options import BuildOptions
    from htvm.pipeline import compile_model
    from htvm.stage_cache import StageCache
    from htvm.tools.explain.explanation import explanation_of
    from htvm.tools.report.explain import explain_data, explain_text

    opened = network.open()
    with shown_progress() as progress:
        # Verdicts need no C compiler, and no memory that is large enough.
        options = BuildOptions(**placed)
        cache = StageCache.of_user()

        def compiled_with(options: BuildOptions) -> Compiled:
            return compile_model(opened, target, options, progress=progress, cache=cache)

        compiled = compiled_with(options)
        with progress.stage("looking for changes"):
            found = explanation_of(compiled, changes, cache, compile_with=compiled_with)
    width = None if wide else terminal_width()
    answer(as_json, "explain", lambda: explain_data(found), lambda: explain_text(found, width))
