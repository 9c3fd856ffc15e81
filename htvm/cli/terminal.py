"""Progress, log and error messages on the terminal."""

from __future__ import annotations

import logging
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

import click
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Display

from htvm.progress import CallbackProgress, Progress, StageEvent

__all__ = [
    "EXIT_INTERRUPTED",
    "Interrupts",
    "log_to_stderr",
    "report_defect",
    "shown_progress",
    "terminal_width",
]

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells: 128 plus the number of the signal."""

# Nothing is shown during the first seconds, so that quick commands stay quiet.
_PATIENCE_SECONDS = 1.0

_NARROWEST = 60


class _Bar:
    """Shows the current stage on a terminal once the work has taken a while.

    The bar shows the outermost stages with a known number of steps; without any, it only moves.
    """

    def __init__(self, console: Console) -> None:
        self._display = Display(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._display.add_task("working", total=None)
        self._timer = threading.Timer(_PATIENCE_SECONDS, self._show)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._stages: list[StageEvent] = []
        self._done = False

    def start(self) -> None:
        self._timer.start()

    def _show(self) -> None:
        with self._lock:
            if not self._done:
                self._display.start()

    def on_event(self, event: StageEvent) -> None:
        del self._stages[event.depth :]
        if event.kind == "begin":
            self._stages.append(event)
        words = ": ".join(stage.name for stage in self._stages) or "working"
        counted = next((stage for stage in self._stages if stage.part is not None), None)
        if counted is None or counted.part is None:
            # Between two stages the bar does not change.
            self._display.update(self._task, description=words)
            return
        number, total = counted.part
        self._display.update(self._task, description=words, completed=number - 1, total=total)

    def stop(self) -> None:
        with self._lock:
            self._done = True
            self._timer.cancel()
            self._display.stop()


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Yield a `Progress` shown on stderr, if this is a terminal and the work takes a while."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Progress()
        return
    bar = _Bar(console)
    bar.start()
    try:
        yield CallbackProgress(bar.on_event)
    finally:
        bar.stop()


def terminal_width() -> int:
    """Return the characters of a line of the terminal: at least 60, 80 without a terminal."""
    return max(_NARROWEST, shutil.get_terminal_size().columns)


def log_to_stderr(verbosity: int) -> None:
    """Show the library's log: warnings; with ``-v`` what it does, with ``-vv`` everything."""
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbosity, logging.DEBUG)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
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


def report_defect(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """A `sys.excepthook` for unexpected errors: one message, and how to see more."""
    if any(argument in ("-v", "-vv", "--verbose") for argument in sys.argv[1:]):
        sys.__excepthook__(kind, error, trace)
        return
    text = f"{kind.__name__}: {error}".rstrip(": ")
    click.echo(
        f"htvm: internal error: {text}\n"
        "This is a defect of htvm, not of your input; run the command again with -v to see where.",
        err=True,
    )
