"""``htvm boards``: the boards that a model can be built for, and a new one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from htvm.errors import ExportError
from htvm.tools.cli import options
from htvm.tools.cli.output import print_json
from htvm.tools.cli.terminal import echo, terminal_width
from htvm.tools.cli.words import complete_board


@click.group(
    invoke_without_command=True,
    epilog=options.examples(
        "htvm boards",
        "htvm boards show nucleo-f446re",
        "htvm boards new my-board --like nucleo-f446re",
        "htvm fit zoo:digits --board my-board.json",
    ),
)
@options.common
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the boards that a model can be built for, show one, or begin a new one."""
    if context.invoked_subcommand is None:
        _list(as_json)


@command.command("list", epilog=options.examples("htvm boards list", "htvm boards list --json"))
@options.common
def list_command(as_json: bool) -> None:
    """List the boards that a model can be built for."""
    _list(as_json)


@command.command("show", epilog=options.examples("htvm boards show pico-2 --json"))
@click.argument("name", shell_complete=complete_board)
@options.common
def show_command(name: str, as_json: bool) -> None:
    """Show the board NAME, or that in a file: its numbers, and where each is from."""
    from byoc_dory.soc.board import board_called
    from byoc_dory.soc.registry import board_target
    from htvm.tools.report.table import Column, Table, text

    board, target = board_called(name), board_target(name)
    if as_json:
        print_json("board", {**asdict(board), "target": target})
        return
    values = {
        "core": board.core,
        "fpu": board.fpu,
        "clock_hz": f"{board.clock_hz:,}",
        "flash": f"{board.flash.size:,} B at {board.flash.base}",
        "ram": f"{board.ram.size:,} B at {board.ram.base}",
        "npu": board.npu,
        "npu_macs": f"{board.npu_macs} per cycle" if board.npu else "",
        "npu_clock_hz": f"{board.npu_clock_hz:,}" if board.npu else "",
        "console": board.console,
    }
    if board.platformio is not None:
        values["platformio"] = ", ".join(asdict(board.platformio).values())
    columns = (Column("what"), Column("value", wraps=True), Column("source", wraps=True))
    rows = tuple((what, value, board.sources[what]) for what, value in values.items() if value)
    echo(f"{board.title} ({board.chip}): --board {name}, target {target}\n")
    echo(text(Table(columns, rows), terminal_width()))


@command.command(
    "new",
    epilog=options.examples(
        "htvm boards new my-board --like nucleo-f446re",
        "htvm boards new my-board --like pico-2 --out boards",
    ),
)
@click.argument("name")
@click.option(
    "--like",
    default="nucleo-l4r5zi",
    show_default=True,
    shell_complete=complete_board,
    help="Board, or a board's file, whose numbers the new one begins with.",
)
@options.out("Folder for NAME.json.", name="folder", default=".")
@options.common
def new_command(name: str, like: str, folder: Path, as_json: bool) -> None:
    """Write NAME.json, the description of a board: complete, to be corrected."""
    from byoc_dory.soc.board import new_board

    text, path = new_board(name, like), folder / f"{name}.json"
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise ExportError(
            f"cannot write the board: {error.strerror}",
            where=str(path),
            hint="name a folder that exists and has no such file",
        ) from error
    if as_json:
        print_json("board", {"name": name, "file": str(path)})
        return
    echo(f"{path}: the numbers of {like}, none verified. Correct them and their sources, then")
    echo("")
    echo(f"  htvm boards show {path}")
    echo(f"  htvm fit zoo:digits --board {path}")


def _list(as_json: bool) -> None:
    from byoc_dory.soc.board import boards
    from htvm.tools.report.table import Column, table_of, text

    if as_json:
        print_json("boards", {"boards": [asdict(board) for board in boards().values()]})
        return
    table = table_of(
        boards().values(),
        (Column("board"), lambda board: board.name),
        (Column("core"), lambda board: board.core),
        (Column("NPU"), lambda board: f"{board.npu}, {board.npu_macs}" if board.npu else ""),
        (Column("MHz", number=True), lambda board: f"{board.clock_hz / 1e6:g}"),
        (Column("flash B", number=True), lambda board: board.flash.size),
        (Column("RAM B", number=True), lambda board: board.ram.size),
        (Column("chip", spare=True), lambda board: board.chip),
        (Column("not verified", spare=True), lambda board: ", ".join(board.unverified)),
    )
    echo(text(table, terminal_width()))
    echo("\nhtvm boards show NAME says where each number is from; boards new writes a file for")
    echo("another board, which --board takes as well as a name.")
