"""An exact search for arena offsets: it finds better ones, or proves that there are none.

Its limit is a number of nodes, not a time, so that results are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_BRANCH_AND_BOUND_NODES = 60_000


@dataclass(frozen=True)
class Item:
    """A buffer in the search's representation.

    Attributes:
        size: size in bytes, rounded up to the alignment.
        most: size including the surplus during its first step.
        first, last: time interval.
        others: indices of the buffers that overlap it in time.
        index: its own index.
        near: (other, bytes that it must start before that one, where it starts first), if they may
            overlap.
    """

    size: int
    most: int
    first: int
    last: int
    others: tuple[int, ...]
    index: int = -1
    near: tuple[tuple[int, int], ...] = ()

    def beside(self, other: Item) -> int:
        """Return the bytes it needs below another buffer, which overlaps it in time."""
        for index, distance in self.near:
            if index == other.index:
                return distance
        return self.most if self.first >= other.first else self.size


class _BranchAndBound:
    """Search for offsets below a limit, placing buffers in the order of their offsets.

    In a plan in which no buffer can be moved down, sorted by offset, every buffer rests on the
    highest of the earlier ones it overlaps.  So it suffices to choose which buffer comes next (the
    idea of MiniMalloc, Moffitt 2023).
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        times = sorted({item.first for item in items})
        slot = {time: index for index, time in enumerate(times)}
        # Only beginnings of buffers matter: in between, live buffers only disappear.
        self.spans = [
            (slot[item.first], max(slot[t] for t in times if t <= item.last) + 1) for item in items
        ]
        self.slots = len(times)
        self.nodes = 0

    def below(self, limit: int) -> list[int] | None:
        """Return offsets with a peak below ``limit``, or None if there are none.

        Raises:
            _NodeLimit: ``_BRANCH_AND_BOUND_NODES`` nodes were visited, over all calls together.
        """
        rest = [0] * self.slots
        for item, (low, high) in zip(self.items, self.spans, strict=True):
            rest[low] += item.most
            for slot in range(low + 1, high):
                rest[slot] += item.size
        offsets = [-1] * len(self.items)
        left = sorted(range(len(self.items)), key=lambda i: -self.items[i].size)
        if self._search(limit, [0] * self.slots, rest, offsets, left, 0, -1):
            return offsets
        return None

    def _search(
        self,
        limit: int,
        floor: list[int],
        rest: list[int],
        offsets: list[int],
        left: list[int],
        level: int,
        last: int,
    ) -> bool:
        if not left:
            return True
        self.nodes += 1
        if self.nodes > _BRANCH_AND_BOUND_NODES:
            raise _NodeLimit
        for slot in range(self.slots):
            if rest[slot] and max(floor[slot], level) + rest[slot] >= limit:
                return False
        places = [(max(floor[slice(*self.spans[i])]), i) for i in left]
        # A buffer that starts above the lowest possible end leaves room for another one below it.
        lowest_end = min(max(place, level) + self.items[i].most for place, i in places)
        tried: set[tuple[int, int, int, int, int]] = set()
        for place, index in sorted(places, key=lambda entry: (entry[0], left.index(entry[1]))):
            # At the same offset, only in the order of indices; otherwise every permutation would be
            # visited.
            if place < level or (place == level and index < last) or place >= lowest_end:
                continue
            low, high = self.spans[index]
            size, most = self.items[index].size, self.items[index].most
            if place + most >= limit:
                continue
            twin = (place, size, most, low, high)
            if twin in tried:
                continue
            tried.add(twin)
            saved_floor, saved_rest = floor[low:high], rest[low:high]
            floor[low:high] = [place + most] + [place + size] * (high - low - 1)
            rest[low:high] = [saved_rest[0] - most, *(value - size for value in saved_rest[1:])]
            offsets[index] = place
            remaining = [other for other in left if other != index]
            if self._search(limit, floor, rest, offsets, remaining, place, index):
                return True
            floor[low:high], rest[low:high] = saved_floor, saved_rest
        return False


class _NodeLimit(Exception):
    """The branch and bound reached its node limit."""


def branch_and_bound(
    items: Sequence[Item], offsets: list[int], peak: int, bound: int
) -> tuple[list[int], int, bool]:
    """Lower the peak as far as possible; the flag tells whether the result is proven optimal."""
    search = _BranchAndBound(items)
    try:
        while peak > bound:
            found = search.below(peak)
            if found is None:
                return offsets, peak, True
            offsets = found
            peak = max(offset + item.most for offset, item in zip(found, items, strict=True))
    except _NodeLimit:
        return offsets, peak, False
    return offsets, peak, True
