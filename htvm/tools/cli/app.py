"""The console command: its verbs and its exit codes."""

from __future__ import annotations

import errno
import importlib
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import htvm
from byoc_dory.errors import nearest
from htvm.errors import DefectError, ExportError, HtvmError, InputError, LimitError
from htvm.processes import EXIT_CODES, lacks_memory
from htvm.public import internal_error
from htvm.tools.cli.terminal import EXIT_INTERRUPTED, Interrupts, echo, report_defect
from htvm.tools.cli.verbs import VERBS

if TYPE_CHECKING:
    from htvm.tools.confinement import Confinement

EXIT_DEFECT = 1
EXIT_USER_ERROR = 2
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _Verbs(click.Group):
    """The command group; it imports a verb only when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all verbs, in the order of the help."""
        return list(VERBS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb, with ``--confined`` in a process of its own, or what may be meant."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            ctx.fail(f"no verb {args[0]!r}: {nearest(args[0], VERBS)}`htvm --help` lists them")
        name, command, rest = super().resolve_command(ctx, args)
        if ctx.params.get("confined") and not ctx.resilient_parsing:
            return name, _confined(args, ctx.params["allowed"]), []
        return name, command, rest

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the verb of this name."""
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"htvm.tools.cli.verbs.{cmd_name}").command
        assert isinstance(command, click.Command), cmd_name
        command.name = cmd_name
        return command


def _allowed(
    context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> Confinement | None:
    if not given:
        return None
    from htvm.tools.cli.arguments import read_limits
    from htvm.tools.confinement import Confinement

    if not context.params.get("confined"):
        raise InputError(
            "limits for a verb that is not confined", where="--allow", hint="add --confined"
        )
    return read_limits(Confinement, given, "--allow")


def _confined(words: Sequence[str], limits: Confinement | None) -> click.Command:
    """Return a command that executes a command line in confinement."""

    def command() -> None:
        from htvm.tools.confinement import Confinement, supervised

        try:
            code = supervised(words, limits or Confinement())
        except KeyboardInterrupt:  # the verb has said it
            code = EXIT_INTERRUPTED
        raise click.exceptions.Exit(code)

    return click.Command(words[0], callback=command)


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--confined",
    is_flag=True,
    is_eager=True,
    help="Execute the verb in a process of its own, without network where the system allows it, "
    "with limits of processor time and memory: for files of strangers.",
)
@click.option(
    "--allow", "allowed", multiple=True, metavar="NAME=VALUE", callback=_allowed,
    help="What a confined verb may take: cpu_seconds, memory_bytes or seconds, e.g. "
    "memory_bytes=8G; may be repeated.",
)  # fmt: skip
@click.version_option(htvm.__version__)
def app(confined: bool, allowed: Confinement | None) -> None:
    """Quantized networks as self-contained C for SoCs with accelerators.

    MODEL is a quantized .tflite or .onnx file, a network for handwritten digits (zoo:digits,
    zoo:digits_ternary), or a built-in one with random weights: zoo:NAME, e.g. zoo:resnet8, with a
    scheme of weights (8-bit, ternary, mixed) zoo:resnet8:ternary, and with another seed
    zoo:resnet8@1.
    """


def exit_code(
    command: click.Command, argv: Sequence[str] | None, *, supervised: bool = False
) -> int:
    """Run a command; report errors as one message, and return an exit code.

    Args:
        command: the command to run.
        argv: its arguments; by default those of the process.
        supervised: whether another process says which of its limits was exceeded.

    Returns:
        0, or the command's own code; 2 for an error that the user can fix; 3, 124 or 152 if memory,
        time or processor time were not enough; 130 if interrupted; 1 for a defect, with a message,
        and with ``-v`` also the traceback.
    """
    interrupts = Interrupts()
    words = sys.argv[1:] if argv is None else list(argv)
    if argv is None:
        interrupts.watch()
    try:
        code = command.main(args=None if argv is None else list(argv), standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except Exception as error:  # noqa: BLE001
        # Catches everything: an interrupt during a callback of the compiler, or one that ended a
        # child first, surfaces as some other error.
        if interrupts.seen:
            return _interrupted()
        if isinstance(error, click.ClickException):
            error.show()
            return error.exit_code
        if lacks_memory(error):
            error = LimitError("there is no more memory", where=_typed(words), limit="memory_bytes")
        if isinstance(error, OSError) and error.errno in _UNWRITABLE:
            error = ExportError(f"the output cannot be written: {error.strerror}")
        if not isinstance(error, HtvmError):
            error = internal_error(_typed(words), error)
        if isinstance(error, DefectError):
            report_defect(error, words)
            return EXIT_DEFECT
        limit = error.limit if isinstance(error, LimitError) else ""
        if not (supervised and limit in EXIT_CODES):
            echo(f"htvm: error: {error}", err=True)
        return EXIT_CODES.get(limit, EXIT_USER_ERROR)
    finally:
        if argv is None:
            interrupts.ignore()
    return code if isinstance(code, int) else 0


def _typed(words: Sequence[str]) -> str:
    return f"`{shlex.join(['htvm', *words])}`"


def _interrupted() -> int:
    echo("htvm: interrupted", err=True)
    return EXIT_INTERRUPTED


def main(argv: Sequence[str] | None = None, *, supervised: bool = False) -> int:
    """The console command ``htvm``; see `exit_code`."""
    return exit_code(app, argv, supervised=supervised)
