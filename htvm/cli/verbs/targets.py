"""``htvm targets``: what a model can be built for."""

from __future__ import annotations

import click

from htvm.cli import options
from htvm.cli.output import print_json

__all__ = ["command"]


@click.group(
    invoke_without_command=True,
    epilog=options.examples(
        "htvm targets", "htvm targets list --json", "htvm targets show diana.digital"
    ),
)
@options.common
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List what a model can be built for, or show one of these targets."""
    if context.invoked_subcommand is None:
        _list(as_json)


@command.command("list", epilog=options.examples("htvm targets list", "htvm targets list --json"))
@options.common
def list_command(as_json: bool) -> None:
    """List what a model can be built for."""
    _list(as_json)


@command.command(
    "show",
    epilog=options.examples("htvm targets show diana", "htvm targets show diana.analog --json"),
)
@click.argument("name", shell_complete=options.complete_target)
@options.common
def show_command(name: str, as_json: bool) -> None:
    """Show the target NAME: memories, accelerators, their rules, objectives and constants."""
    from byoc_dory.soc.registry import resolve
    from htvm.report.target import target_data, target_text

    target = resolve(name)
    if as_json:
        print_json("target", target_data(target))
    else:
        click.echo(target_text(target))


def _list(as_json: bool) -> None:
    from byoc_dory.soc.registry import resolve, targets
    from htvm.report.table import Column, Table, count, text

    known = [resolve(name) for name in targets()]
    if as_json:
        data = [
            {
                "target": target.name,
                "soc": target.soc.title,
                "accelerators": [accelerator.name for accelerator in target.accelerators],
                "clock_hz": target.soc.clock_hz,
                "l2_bytes": target.soc.memory("L2").size,
            }
            for target in known
        ]
        print_json("targets", {"targets": data})
        return
    columns = (
        Column("target"),
        Column("accelerators"),
        Column("MHz", number=True),
        Column("L2 bytes", number=True),
        Column("SoC"),
    )
    rows = tuple(
        (
            target.name,
            ", ".join(accelerator.name for accelerator in target.accelerators) or "none",
            f"{target.soc.clock_hz / 1e6:g}",
            count(target.soc.memory("L2").size),
            target.soc.title,
        )
        for target in known
    )
    click.echo(text(Table(columns, rows)))
