"""A bar for work that takes a while: on a terminal, and below the cell of a notebook."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from typing import Any, ParamSpec, Protocol, TypeVar

from rich.console import Console
from rich.errors import LiveError
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Display

from htvm.progress import CallbackProgress, Progress, StageEvent

# Nothing is shown during the first seconds, so that quick commands stay quiet.
_PATIENCE_SECONDS = 1.0
_SECONDS_BETWEEN = 0.2  # changes of a notebook's bar, each of which is a message to the browser

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class _Stages:
    """The stages that work is in."""

    def __init__(self) -> None:
        self._open: list[StageEvent] = []

    def on_event(self, event: StageEvent) -> None:
        """Take note of the beginning or end of a stage."""
        del self._open[event.depth :]
        if event.kind == "begin":
            self._open.append(event)

    @property
    def words(self) -> str:
        """What is going on."""
        return ": ".join(stage.name for stage in self._open) or "working"

    @property
    def part(self) -> tuple[int, int] | None:
        """(number, of how many) of the outermost stage whose number is known."""
        return next((stage.part for stage in self._open if stage.part is not None), None)


class TerminalBar:
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
        self._stages = _Stages()
        self._done = False

    def start(self) -> None:
        """Begin to wait until it is shown."""
        self._timer.start()

    def _show(self) -> None:
        with self._lock:
            if not self._done:
                try:
                    self._display.start()
                except LiveError:
                    self._done = True  # another bar is shown

    def on_event(self, event: StageEvent) -> None:
        """Show the beginning or end of a stage."""
        self._stages.on_event(event)
        words, part = self._stages.words, self._stages.part
        if part is None:
            # Between two stages the bar does not change.
            self._display.update(self._task, description=words)
            return
        number, total = part
        self._display.update(self._task, description=words, completed=number - 1, total=total)

    def stop(self) -> None:
        """Take it away."""
        with self._lock:
            self._done = True
            self._timer.cancel()
            self._display.stop()


class _Handle(Protocol):
    """IPython's handle of what is displayed."""

    def update(self, data: Any) -> None:
        """Show other data instead."""


class NotebookBar:
    """Shows the current stage below a notebook's cell once the work has taken a while.

    Args:
        display: shows HTML and returns a handle that changes it.
        clock: returns the time in seconds, monotonic.
    """

    def __init__(
        self, display: Callable[[str], _Handle], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._display = display
        self._clock = clock
        self._began = clock()
        self._last = self._began + _PATIENCE_SECONDS - _SECONDS_BETWEEN
        self._stages = _Stages()
        self._handle: _Handle | None = None

    def on_event(self, event: StageEvent) -> None:
        """Show the beginning or end of a stage."""
        self._stages.on_event(event)
        now = self._clock()
        if now < self._last + _SECONDS_BETWEEN:
            return
        self._last = now
        shown = self._html(now)
        if self._handle is None:
            self._handle = self._display(shown)
        else:
            self._handle.update(_Html(shown))

    def stop(self) -> None:
        """Take it away."""
        if self._handle is not None:
            self._handle.update(_Html(""))

    def _html(self, now: float) -> str:
        part = self._stages.part
        bar = "" if part is None else f' value="{part[0] - 1}" max="{part[1]}"'
        seconds = f"{now - self._began:.0f} s"
        return f"<progress{bar}></progress> {escape(self._stages.words)}, {seconds}"


class _Html:
    """HTML for IPython's displays."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Yield a `Progress` that is shown if the work takes a while.

    It is shown in a notebook, and on stderr if this is a terminal; otherwise nothing is.
    """
    console = Console(stderr=True)
    bar: NotebookBar | TerminalBar
    if _in_notebook():
        bar = NotebookBar(_displayed)
    elif console.is_terminal:
        bar = TerminalBar(console)
        bar.start()
    else:
        yield Progress()
        return
    try:
        yield CallbackProgress(bar.on_event)
    finally:
        bar.stop()


def with_progress(
    function: Callable[_Arguments, _Result],
    shown: Callable[[], AbstractContextManager[Progress]] = shown_progress,
) -> Callable[_Arguments, _Result]:
    """Give a function that takes ``progress`` a bar where its caller gave none.

    ``progress=htvm.progress.Progress()`` shows nothing.
    """

    @functools.wraps(function)
    def wrapped(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        if kwargs.get("progress") is not None:
            return function(*args, **kwargs)
        with shown() as progress:
            kwargs["progress"] = progress
            return function(*args, **kwargs)

    return wrapped


def _in_notebook() -> bool:
    """Whether this is a Jupyter kernel; IPython on a terminal is not."""
    if "ipykernel" not in sys.modules:
        return False
    shell = importlib.import_module("IPython").get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _displayed(html: str) -> _Handle:
    display: Any = importlib.import_module("IPython.display")
    handle: _Handle = display.display(_Html(html), display_id=True)
    return handle
