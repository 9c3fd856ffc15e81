"""``htvm zoo``: the networks that need no file."""

from __future__ import annotations

import click

from htvm.tools.cli import options
from htvm.tools.cli.output import print_json
from htvm.tools.cli.terminal import echo, terminal_width


@click.command(epilog=options.examples("htvm zoo", "htvm run zoo:digits"))
@options.common
def command(as_json: bool) -> None:
    """List the networks that need no file: MODEL is zoo:NAME."""
    from htvm.tools.report.table import Column, Table, text
    from htvm.tools.zoo import DESCRIBED

    if as_json:
        print_json("zoo", {"networks": [{"name": n, "what": w} for n, w in DESCRIBED.items()]})
        return
    rows = tuple((f"zoo:{name}", what) for name, what in DESCRIBED.items())
    echo(text(Table((Column("network"), Column("what it is", wraps=True)), rows), terminal_width()))
    echo(
        "\nwith random weights also ternary or mixed, and from another seed:\n"
        "zoo:resnet8:ternary, zoo:resnet8@1"
    )
