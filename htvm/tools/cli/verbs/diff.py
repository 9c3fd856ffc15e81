"""``htvm diff``: what changed between two reports that were saved as JSON."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htvm.tools.cli import options
from htvm.tools.cli.output import PATH, answer, fail_if_any

if TYPE_CHECKING:
    from htvm.tools.report.difference import Condition


@click.command(
    epilog=options.examples(
        "htvm report kws.tflite -o before.json",
        "htvm diff before.json after.json",
        "htvm diff before.json after.json --fail-if 'cycles > 2%'",
    )
)
@click.argument("before", type=PATH)
@click.argument("after", type=PATH)
@options.fail_if_changed
@options.common
def command(before: Path, after: Path, conditions: tuple[Condition, ...], as_json: bool) -> None:
    """Say what changed from the report BEFORE to the report AFTER, both saved as .json."""
    import htvm.tools.report
    from htvm.tools.report.difference import difference_of, figures_of

    old, new = htvm.report.load(before), htvm.report.load(after)
    found = difference_of(old, new)
    answer(as_json, "diff", lambda: asdict(found), lambda: str(found))
    fail_if_any(conditions, figures_of(new), figures_of(old))
