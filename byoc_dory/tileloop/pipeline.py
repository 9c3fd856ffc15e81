"""`Pipeline`: the order in which a tile loop loads, computes and stores, and what runs in parallel;
and what it gives a driver for one tile, as plain data: blocks to move, and triggers.

A pipeline is a short list of actions that is repeated in rounds.  Each has a *distance*: in round s
it is performed for tile s - distance.  With all distances 0, tiles are executed one after another;
``store`` at distance 1 means that the result of one tile is stored while the next is computed.

Other orders (units in parallel, rows of several layers through ring buffers) are other lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from byoc_dory.tileloop.values import Value

_Number = TypeVar("_Number", bound=Value)


@dataclass(frozen=True)
class Block(Generic[_Number]):
    """A block that one DMA call moves: channels x rows x bytes, strides in bytes.

    In a tile program, its numbers may depend on the tile (``Block[Value]``); a transfer has those
    of one tile (``Block[int]``).

    ``by_rows``: whether there is one command per row, even if rows are contiguous.
    """

    channels: _Number
    rows: _Number
    bytes: _Number
    l2_channel_stride: _Number
    l2_row_stride: _Number
    l1_channel_stride: _Number
    l1_row_stride: _Number
    by_rows: bool = field(default=False, kw_only=True)

    @staticmethod
    def of_rows(rows: Value, size: Value, l2_pitch: Value, l1_pitch: Value) -> Block[Value]:
        """Return ``rows`` rows of ``size`` bytes, with these distances in L2 and in L1."""
        return Block(1, rows, size, 0, l2_pitch, 0, l1_pitch)

    @staticmethod
    def run(size: Value) -> Block[Value]:
        """Return one contiguous run of bytes."""
        return Block(1, 1, size, size, size, size, size)

    @property
    def values(self) -> tuple[_Number, ...]:
        """The numbers, in the order of the fields."""
        return (
            self.channels,
            self.rows,
            self.bytes,
            self.l2_channel_stride,
            self.l2_row_stride,
            self.l1_channel_stride,
            self.l1_row_stride,
        )

    @property
    def size(self: Block[int]) -> int:
        """Total number of bytes."""
        return self.channels * self.rows * self.bytes

    def runs(self: Block[int]) -> tuple[int, int]:
        """Return (number, bytes) of the contiguous runs of one channel."""
        if self.rows == 1 or self.l2_row_stride == self.l1_row_stride == self.bytes:
            return 1, self.rows * self.bytes
        return self.rows, self.bytes

    def commands(self: Block[int]) -> tuple[int, int]:
        """Return (number, bytes) of the 1-D commands after collapsing contiguous dimensions."""
        rows, size = self.runs()
        alone = self.channels == 1
        if rows == 1 and (alone or self.l2_channel_stride == self.l1_channel_stride == size):
            return 1, size * self.channels
        return self.channels * rows, size


class Trigger:
    """The computation of one tile on an accelerator: a `Call`, or a subclass of its own."""


@dataclass(frozen=True)
class Call(Trigger):
    """A trigger of any kind: its name, and its fields by name, for one tile."""

    name: str
    fields: dict[str, int | str | tuple[int, ...]]

    def number(self, name: str) -> int:
        """A field that is a number."""
        value = self.fields[name]
        assert isinstance(value, int), (self.name, name)
        return value


class Verb(Enum):
    """An action performed for one tile.

    ``LOAD`` starts the transfers of its operands, ``STORE`` that of its result; if the host copies,
    both are complete when they return.  ``WAIT`` waits for all transfers started; ``ARRIVE`` for
    the loads of this tile, or, if tiles do not always load something, for these and for the last
    store from its result's buffer.  ``COMPUTE`` computes it and returns when it is done; if a
    device computes in parallel with the host, ``PREPARE`` writes its registers, ``START`` starts it
    and ``FINISH`` waits for it.  A device without ``PREPARE`` may be given several tiles, which it
    computes in order.  ``SETTLE`` waits for its store, if there is one.

    `byoc_dory.tileloop.order` checks that the actions of a pipeline are in an order that works.
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
    """An action performed in each round, for the tile that is ``distance`` rounds behind."""

    verb: Verb
    distance: int = 0


@dataclass(frozen=True)
class Pipeline:
    """The actions of a round.

    Attributes:
        name: description of the order.
        actions: the actions, in order.
        blocking: whether starting a transfer also completes it.
    """

    name: str
    actions: tuple[Action, ...]
    blocking: bool = False

    @property
    def distance(self) -> int:
        """The largest distance: the number of tiles under way at a time, minus one."""
        return max(action.distance for action in self.actions)

    def at(self, verb: Verb) -> int:
        """Return the distance of the first action of this kind."""
        return next(action.distance for action in self.actions if action.verb is verb)

    def has(self, verb: Verb) -> bool:
        """Whether there is an action of this kind."""
        return any(action.verb is verb for action in self.actions)


HOST_IN_TURN = Pipeline(
    "the host moves a tile, then waits for the device",
    (Action(Verb.LOAD), Action(Verb.START), Action(Verb.FINISH), Action(Verb.STORE)),
    blocking=True,
)
"""For a device without a DMA: the host copies."""

HOST_BESIDE = Pipeline(
    "the host moves tiles while the device computes one",
    (Action(Verb.LOAD), Action(Verb.FINISH, 1), Action(Verb.START), Action(Verb.STORE, 1)),
    blocking=True,
)
"""The same with two buffers: while a tile is computed, the next one is loaded, the last stored."""
