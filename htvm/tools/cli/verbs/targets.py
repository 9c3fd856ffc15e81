"""``htvm targets``: the targets that a model can be built for, and a new one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from htvm.tools.cli import options
from htvm.tools.cli.output import answer, print_json, refuse_file_name
from htvm.tools.cli.terminal import echo, terminal_width
from htvm.tools.cli.words import complete_target

if TYPE_CHECKING:
    from byoc_dory.soc.base import Accelerator
    from byoc_dory.soc.parameters import Parameter


@click.group(
    invoke_without_command=True,
    epilog=options.examples(
        "htvm targets",
        "htvm targets list --json",
        "htvm targets show diana.digital",
        "htvm targets show siracusa:cores=4,l1=128KiB",
        "htvm targets new mychip",
    ),
)
@options.common
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List what a model can be built for, show one of these targets, or begin a new one."""
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
@click.argument("name", shell_complete=complete_target)
@options.common
def show_command(name: str, as_json: bool) -> None:
    """Show the target NAME: memories, accelerators, their rules, objectives and constants."""
    from byoc_dory.soc.registry import resolve
    from htvm.tools.report.target import target_data, target_text

    target = resolve(name)
    answer(as_json, "target", lambda: target_data(target),
           lambda: target_text(target, terminal_width()))  # fmt: skip


@command.command(
    "new", epilog=options.examples("htvm targets new mychip", "htvm targets new mychip --out soc")
)
@click.argument("name")
@options.out("Folder to write, which must not be there yet; NAME_soc by default.", name="folder")
@options.common
def new_command(name: str, folder: Path | None, as_json: bool) -> None:
    """Write a package with a SoC called NAME: complete, with its test, to be changed.

    It has a memory L1, a DMA, one accelerator for products, and a model that simulates both.
    """
    from htvm.tools.skeleton import new_soc, skeleton

    if folder is not None:
        refuse_file_name(folder, "--out")
    place = new_soc(name, folder or Path(f"{name}_soc"))
    if as_json:
        print_json("soc", {"name": name, "folder": str(place), "files": sorted(skeleton(name))})
        return
    echo(f"{place}: the SoC {name}, as complete as it is invented. What to do next:")
    echo("")
    echo(f"  python -m pip install --no-deps --editable {place}")
    echo("  python -m pip install pytest")
    echo(f"  htvm targets show {name}")
    echo(f"  python -m pytest {place / 'tests'}")


def _list(as_json: bool) -> None:
    from byoc_dory.soc.registry import loadable, resolve
    from htvm.tools.report.table import Column, table_of, text
    from htvm.tools.report.target import parameters_data

    socs, faults = loadable()
    for fault in faults:
        echo(f"htvm: warning: {fault}", err=True)
    known = [resolve(spec.name) for soc in socs for spec in soc.targets]
    if as_json:
        data = [
            {
                "target": target.name,
                "soc": target.soc.title,
                "accelerators": [accelerator.name for accelerator in target.accelerators],
                "clock_hz": target.soc.clock_hz,
                "l2_bytes": target.soc.memory("L2").size,
                "host": target.soc.host.name,
                "parameters": parameters_data(target.soc),
            }
            for target in known
        ]
        print_json("targets", {"targets": data})
        return

    def named(entries: Iterable[Accelerator | Parameter]) -> str:
        return ", ".join(entry.name for entry in entries) or "none"

    table = table_of(
        known,
        (Column("target"), lambda target: target.name),
        (Column("accelerators"), lambda target: named(target.accelerators)),
        (Column("MHz", number=True), lambda target: f"{target.soc.clock_hz / 1e6:g}"),
        (Column("L2 bytes", number=True), lambda target: target.soc.memory("L2").size),
        (Column("SoC", wraps=True), lambda target: target.soc.title),
        (Column("host", spare=True), lambda target: target.soc.host.name),
        (Column("parameters", spare=True), lambda target: named(target.soc.parameters)),
    )
    echo(text(table, terminal_width()))
    echo("\nParameters are given with the name, e.g. siracusa:cores=4,l1=128KiB;")
    echo("htvm targets show NAME says what they are and which values they can have.")
