"""``htvm explain``: where each operator runs, and why."""

from __future__ import annotations

import json
from typing import Any

import click

from htvm.cli import options
from htvm.cli.arguments import open_model
from htvm.cli.output import print_json
from htvm.cli.terminal import shown_progress

__all__ = ["command"]


@click.command(
    epilog=options.examples(
        "htvm explain zoo:ds_cnn",
        "htvm explain kws.tflite --target diana.digital --json",
    )
)
@options.model
@options.target
@options.policy
@options.schedule
@options.common
def command(model: str, target: str, policy: str | None, schedule: Any, as_json: bool) -> None:
    """Say where each operator of MODEL runs, and why not elsewhere."""
    from byoc_dory.options import TilingOptions
    from htvm.describe import explanation_of
    from htvm.pipeline import BuildOptions, compile_model
    from htvm.report.explain import explain_json

    opened = open_model(model)
    with shown_progress() as progress:
        # Verdicts need no C compiler, and no memory that is large enough.
        tiling = TilingOptions() if schedule is None else TilingOptions(schedule=schedule)
        options = BuildOptions(tiling=tiling, policy=policy)
        found = explanation_of(compile_model(opened, target, options, progress=progress))
    if as_json:
        print_json("explain", {"operators": json.loads(explain_json(found.rows))})
    else:
        click.echo(str(found))
