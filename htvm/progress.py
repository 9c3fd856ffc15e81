"""Which stage a long piece of work is in, told to whoever asked to know.

A function that may take long accepts a `Progress` and brackets its stages::

    with progress.stage("tiling"):
        ...

The base class keeps silent; a caller who wants to see something passes its own.  There is no
registry and no global state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

__all__ = ["CallbackProgress", "Progress", "StageEvent"]


@dataclass(frozen=True)
class StageEvent:
    """A stage begins or ends.

    Attributes:
        name: what is being done, a few words in the present ("tiling conv2d_3").
        kind: "begin", "end", or "failed" if an exception left the stage.
        depth: 0 for a stage of its own, 1 for one inside another, ...
        seconds: since the stage began; 0 at its begin.
        part: which one it is (from 1) of how many stages on its level, where that is known.
    """

    name: str
    kind: Literal["begin", "end", "failed"]
    depth: int
    seconds: float = 0.0
    part: tuple[int, int] | None = None


class Progress:
    """A silent reporter; also the interface of the others."""

    @contextmanager
    def stage(self, name: str, part: tuple[int, int] | None = None) -> Iterator[None]:
        """Mark the enclosed work as a stage; ``part=(i, n)``: the i-th of n."""
        yield


class CallbackProgress(Progress):
    """Hands each `StageEvent` to a function.

    Args:
        callback: called at the begin and the end of every stage, in the thread of the work.
        clock: seconds, monotonic.
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
