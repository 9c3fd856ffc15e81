"""``htvm cache``: what is kept between builds, and how to be rid of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from htvm.errors import ExportError
from htvm.tools.cli import options
from htvm.tools.cli.output import print_json
from htvm.tools.cli.terminal import echo


@click.group(invoke_without_command=True, epilog=options.examples("htvm cache", "htvm cache clear"))
@options.common
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Say where compiled C and other results are kept, and how large they are."""
    from htvm.cache_folder import cache_root
    from htvm.tools.report.table import Column, Table, text

    if context.invoked_subcommand is not None:
        return
    root = cache_root()
    sizes = {each.name: _bytes(each) for each in sorted(root.iterdir()) if each.is_dir()}
    if as_json:
        print_json("cache", {"folder": str(root), "bytes": sizes})
        return
    rows = tuple((name, f"{size / 1e6:,.1f}") for name, size in sizes.items())
    total = ("all", f"{sum(sizes.values()) / 1e6:,.1f}")
    echo(text(Table((Column("kept"), Column("MB", number=True)), rows, str(root), total)))


@command.command("clear", epilog=options.examples("htvm cache clear"))
@options.common
def clear_command(as_json: bool) -> None:
    """Remove everything that is kept; later builds make it again."""
    from htvm.cache_folder import cache_root

    root = cache_root()
    freed = 0
    for each in sorted(root.iterdir()):
        if each.is_dir() and not each.is_symlink():
            freed += _bytes(each)
            shutil.rmtree(each, ignore_errors=True)
            if each.exists():
                raise ExportError(
                    "the folder cannot be removed", where=str(each), hint="check its permissions"
                )
    if as_json:
        print_json("cache clear", {"folder": str(root), "freed_bytes": freed})
    else:
        echo(f"{freed / 1e6:,.1f} MB removed from {root}")


def _bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size if not path.is_dir() else 0
        except OSError:  # removed by another process meanwhile
            continue
    return total
