"""Width, log and error messages of the terminal."""

from __future__ import annotations

import logging
import shutil
import signal
import traceback
from collections.abc import Sequence
from types import FrameType

import click

from byoc_dory.plain import plain
from htvm.errors import HtvmError

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells: 128 plus the number of the signal."""

_NARROWEST = 60


def echo(text: str = "", *, err: bool = False) -> None:
    """Print lines, on stderr if asked; what they hold of names and paths does nothing there."""
    click.echo("\n".join(map(plain, text.split("\n"))), err=err)


def terminal_width() -> int:
    """Return the characters of a line of the terminal: at least 60, 80 without a terminal."""
    return max(_NARROWEST, shutil.get_terminal_size().columns)


class _PlainFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # of the base
        return plain(super().formatMessage(record))


def log_to_stderr(verbosity: int) -> None:
    """Show the library's log: warnings; with ``-v`` what it does, with ``-vv`` everything."""
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG)
    handler = logging.StreamHandler()
    handler.setFormatter(_PlainFormatter("%(name)s: %(message)s"))
    for name in ("htvm", "patterns", "byoc_dory"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)


class Interrupts:
    """Remembers that the user pressed Ctrl-C.

    An interrupt during one of the compiler's callbacks surfaces as some other error; having
    recorded the signal, one can tell it from a defect.

    Attributes:
        seen: whether there was an interrupt.
    """

    def __init__(self) -> None:
        self.seen = False

    def watch(self) -> None:
        """Start recording interrupts of this process before they are raised."""
        signal.signal(signal.SIGINT, self._note)

    def ignore(self) -> None:
        """Ignore interrupts from now on, so that the process can end undisturbed."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        signal.default_int_handler(number, frame)


def report_defect(error: HtvmError, words: Sequence[str]) -> None:
    """Print one message, and the traceback, or how to see it.

    Args:
        error: the defect.
        words: the arguments of the command.
    """
    if any(word in ("-v", "-vv", "--verbose") for word in words):
        echo("".join(traceback.format_exception(error)).rstrip("\n"), err=True)
        return
    echo(f"htvm: internal error: {error}", err=True)
    echo("run the command again with -v to see the traceback", err=True)
