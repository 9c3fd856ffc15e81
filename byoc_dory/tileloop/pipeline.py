"""`Pipeline`: in which order a tile loop loads, computes and stores, and what runs beside what.

A pipeline is a short list of actions that is gone through again and again.  Each has a *distance*:
in round s it is done for tile s - distance.  With distances of 0 only, tiles are executed in turn;
``store`` at distance 1 means that the result of one tile is stored while the next is computed.

Other orders (units side by side, rows of several layers through ring buffers) are other lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["HOST_BESIDE", "HOST_IN_TURN", "Action", "Pipeline", "Verb"]


class Verb(Enum):
    """What is done for one tile.

    ``LOAD`` orders the transfers of its operands, ``STORE`` that of its result; where the mover
    is the host, both are done when they return.  ``WAIT`` waits for all transfers that were
    ordered, ``ARRIVE`` for those of this tile.  ``COMPUTE`` computes it and returns when it is
    done; where a device computes beside the host, ``PREPARE`` writes its registers, ``START``
    starts it and ``FINISH`` waits for it.  ``SETTLE`` waits for its store, if there is one.
    """

    LOAD = "load"
    WAIT = "wait"
    ARRIVE = "arrive"
    PREPARE = "prepare"
    START = "start"
    FINISH = "finish"
    COMPUTE = "compute"
    STORE = "store"
    SETTLE = "settle"


@dataclass(frozen=True)
class Action:
    """What is done in each round, and for which tile: that of so many rounds before."""

    verb: Verb
    distance: int = 0


@dataclass(frozen=True)
class Pipeline:
    """The actions of a round.

    Attributes:
        name: in words.
        actions: in order.
        blocking: whether transfers are done when they were ordered.
    """

    name: str
    actions: tuple[Action, ...]
    blocking: bool = False

    @property
    def distance(self) -> int:
        """The largest distance: how many tiles are under way at a time, less one."""
        return max(action.distance for action in self.actions)

    def at(self, verb: Verb) -> int:
        """The distance of the first action of this kind."""
        return next(action.distance for action in self.actions if action.verb is verb)

    def has(self, verb: Verb) -> bool:
        """Whether something is done at all."""
        return any(action.verb is verb for action in self.actions)


HOST_IN_TURN = Pipeline(
    "the host moves a tile, then waits for the device",
    (Action(Verb.LOAD), Action(Verb.START), Action(Verb.FINISH), Action(Verb.STORE)),
    blocking=True,
)
"""Of a device without a DMA: the host copies."""

HOST_BESIDE = Pipeline(
    "the host moves tiles while the device computes one",
    (Action(Verb.LOAD), Action(Verb.FINISH, 1), Action(Verb.START), Action(Verb.STORE, 1)),
    blocking=True,
)
"""The same with two buffers: the next tile is loaded while one is computed, and one is stored while
the next is."""
