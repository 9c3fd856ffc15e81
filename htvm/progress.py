"""Progress of long-running work, reported stage by stage.

A function that may take long accepts a `Progress` and brackets its stages::

    with progress.stage("tiling"):
        ...

The base class does nothing; a caller who wants to see progress passes its own subclass.  Where
none is passed, `htvm.progress_bar` shows a bar.  There is no registry and no global state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class StageEvent:
    """The beginning or end of a stage.

    Attributes:
        name: the activity, a few words in the present ("tiling conv2d_3").
        kind: "begin", "end", or "failed" if an exception left the stage.
        depth: nesting depth: 0 for an outermost stage, 1 for a stage inside it, and so on.
        seconds: seconds since the stage began; 0 at its beginning.
        part: (number of this stage from 1, number of stages on its level), if known.
    """

    name: str
    kind: Literal["begin", "end", "failed"]
    depth: int
    seconds: float = 0.0
    part: tuple[int, int] | None = None


class Progress:
    """A reporter that does nothing, and the interface of all reporters."""

    @contextmanager
    def stage(self, name: str, part: tuple[int, int] | None = None) -> Iterator[None]:
        """Mark the enclosed work as a stage; ``part=(i, n)``: the i-th of n."""
        yield


class CallbackProgress(Progress):
    """Hands each `StageEvent` to a function.

    Args:
        callback: called at the beginning and the end of every stage, in the thread of the work.
        clock: returns the time in seconds, monotonic.
    """

    def __init__(
        self,
        callback: Callable[[StageEvent], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._callback = callback
        self._clock = clock
        self._depth = 0

    @contextmanager
    def stage(self, name: str, part: tuple[int, int] | None = None) -> Iterator[None]:
        """Mark the enclosed work as the stage called ``name``; stages nest."""
        depth = self._depth
        begin = self._clock()
        self._callback(StageEvent(name, "begin", depth, part=part))
        self._depth = depth + 1
        kind: Literal["end", "failed"] = "failed"
        try:
            yield
            kind = "end"
        finally:
            self._depth = depth
            self._callback(StageEvent(name, kind, depth, self._clock() - begin, part))
