"""Words on the command line: sizes, models, targets and boards, checked and completed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from byoc_dory.errors import TargetError
from byoc_dory.soc.parameters import parse_size

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    _Text = click.ParamType[str]
    _Number = click.ParamType[int]
else:
    # Older ones take no argument.
    _Text = _Number = click.ParamType


class Bytes(_Number):
    """A number of bytes: ``65536``, ``64k`` or ``64KiB``."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of bytes, at least 1."""
        found = parse_size(str(value))
        if not found or found < 1:
            self.fail(f"{value!r} is no size; give bytes, or e.g. 64k", param, ctx)
        return found


class Memory(Bytes):
    """A number of bytes, or ``least``."""

    name = "bytes|least"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of bytes, or "least"."""
        found = parse_size(str(value))
        if value != "least" and (not found or found < 1):
            self.fail(f"{value!r} is no size; give bytes, e.g. 64k, or least", param, ctx)
        return "least" if value == "least" else found


_BOARD = "htvm.board"
_OF_ACCELERATORS = ("policy", "schedule", "objective", "l1_budget", "l1_budgets", "tiling_file")
"""Names of parameters whose options say something about accelerators only."""


def refuse_unused(context: click.Context) -> None:
    """Refuse options that say nothing about the target.

    Raises:
        TargetError: an option for accelerators is given, and the target has none.
    """
    from byoc_dory.soc.registry import resolve

    name = context.params.get("target")
    source = click.core.ParameterSource.COMMANDLINE
    options = {each.name: each.opts[0] for each in context.command.params}
    given = [
        options[parameter]
        for parameter in _OF_ACCELERATORS
        if parameter in options and context.get_parameter_source(parameter) == source
    ]
    if name is None or not given or resolve(name).accelerators:
        return
    raise TargetError(
        f"{given[0]} says nothing about {name}, which has no accelerators",
        where=given[0],
        hint="leave it out, or give a target with accelerators",
    )


def known_target(context: click.Context, option: click.Parameter, name: str) -> str:
    """Return the full name of a target, or that of the board if one is given.

    Raises:
        TargetError: it is not known, or a board of another target is given in addition.
    """
    from byoc_dory.soc.registry import resolve

    board = context.meta.get(_BOARD)
    source = context.get_parameter_source(option.name or "")
    if board is None:
        return resolve(name).name
    if source == click.core.ParameterSource.COMMANDLINE and resolve(name).name != board:
        raise TargetError(
            f"the board {board} and the target {name} are two answers to one question",
            hint=f"leave out --target; the board's is {board}",
        )
    return str(board)


def known_board(context: click.Context, _option: click.Parameter, name: str | None) -> None:
    """Keep the target of a board, for `known_target`."""
    from byoc_dory.soc.registry import board_target, resolve

    if name is not None:
        context.meta[_BOARD] = resolve(board_target(name)).name


def complete_board(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Complete names of boards, for the shell."""
    from byoc_dory.soc.board import boards

    return [name for name in boards() if name.startswith(begun)]


def complete_target(_context: click.Context, _option: click.Parameter, begun: str) -> list[str]:
    """Complete names of targets, and of parameters after ``NAME:``, for the shell."""
    from byoc_dory.soc.registry import resolve, targets

    base, colon, given = begun.partition(":")
    if not colon or base not in targets():
        return [name for name in targets() if name.startswith(begun)]
    done, _, last = given.rpartition(",")
    head = f"{base}:{done}," if done else f"{base}:"
    names = (entry.name for entry in resolve(base).soc.parameters)
    return [f"{head}{name}=" for name in names if name.startswith(last)]


class ModelName(_Text):
    """A file or ``zoo:NAME``; this type only serves the shell's completion."""

    name = "model"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete names of the zoo after ``zoo:``, and files otherwise."""
        from click.shell_completion import CompletionItem

        if incomplete and "zoo:".startswith(incomplete[:4]):
            from htvm.tools.zoo import TRAINED, names

            known = [f"zoo:{name}" for name in (*names(), *TRAINED)]
            return [CompletionItem(name) for name in known if name.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file")]
