"""Searches for arena offsets: first fit, climbing over orders, a sweep through time, an exact one.

In the sweep, each new buffer is put at one end of a gap between the live ones.  All ways to do so
are followed in parallel, as far as they leave different buffers at different places.  In a chain,
where one buffer lives until the next one is written, few ways differ.

The exact search finds better offsets, or proves that there are none.  Its limit is a number of
nodes, not a time, so that results are the same everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_BRANCH_AND_BOUND_NODES = 60_000
_HILL_CLIMB_STEPS = 600


@dataclass(frozen=True)
class Item:
    """A buffer in the search's representation.

    Attributes:
        size: size in bytes, rounded up to the alignment.
        first_step_size: size including the surplus during its first step.
        first, last: time interval.
        others: indices of the buffers that overlap it in time.
        index: its own index.
        overlap_distances: (other, bytes that it must start before that one, where it starts first),
            if they may overlap.
    """

    size: int
    first_step_size: int
    first: int
    last: int
    others: tuple[int, ...]
    index: int = -1
    overlap_distances: tuple[tuple[int, int], ...] = ()

    def distance_below(self, other: Item) -> int:
        """Return the bytes it needs below another buffer, which overlaps it in time."""
        for index, distance in self.overlap_distances:
            if index == other.index:
                return distance
        return self.first_step_size if self.first >= other.first else self.size


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

    def offsets_below(self, limit: int) -> list[int] | None:
        """Return offsets with a peak below ``limit``, or None if there are none.

        Raises:
            _NodeLimit: ``_BRANCH_AND_BOUND_NODES`` nodes were visited, over all calls together.
        """
        unplaced_bytes = [0] * self.slots
        for item, (low, high) in zip(self.items, self.spans, strict=True):
            unplaced_bytes[low] += item.first_step_size
            for slot in range(low + 1, high):
                unplaced_bytes[slot] += item.size
        offsets = [-1] * len(self.items)
        unplaced = sorted(range(len(self.items)), key=lambda i: -self.items[i].size)
        if self._search(limit, [0] * self.slots, unplaced_bytes, offsets, unplaced, 0, -1):
            return offsets
        return None

    def _search(
        self,
        limit: int,
        floor: list[int],
        unplaced_bytes: list[int],
        offsets: list[int],
        unplaced: list[int],
        level: int,
        last: int,
    ) -> bool:
        if not unplaced:
            return True
        self.nodes += 1
        if self.nodes > _BRANCH_AND_BOUND_NODES:
            raise _NodeLimit
        for slot in range(self.slots):
            if unplaced_bytes[slot] and max(floor[slot], level) + unplaced_bytes[slot] >= limit:
                return False
        places = [(max(floor[slice(*self.spans[i])]), i) for i in unplaced]
        # A buffer that starts above the lowest possible end leaves room for another one below it.
        lowest_end = min(max(place, level) + self.items[i].first_step_size for place, i in places)
        tried: set[tuple[int, int, int, int, int]] = set()
        for place, index in sorted(places, key=lambda entry: (entry[0], unplaced.index(entry[1]))):
            # At the same offset, only in the order of indices; otherwise every permutation would be
            # visited.
            if place < level or (place == level and index < last) or place >= lowest_end:
                continue
            low, high = self.spans[index]
            size, most = self.items[index].size, self.items[index].first_step_size
            if place + most >= limit:
                continue
            twin = (place, size, most, low, high)
            if twin in tried:
                continue
            tried.add(twin)
            saved_floor, saved_bytes = floor[low:high], unplaced_bytes[low:high]
            floor[low:high] = [place + most] + [place + size] * (high - low - 1)
            unplaced_bytes[low:high] = [
                saved_bytes[0] - most,
                *(value - size for value in saved_bytes[1:]),
            ]
            offsets[index] = place
            remaining = [other for other in unplaced if other != index]
            if self._search(limit, floor, unplaced_bytes, offsets, remaining, place, index):
                return True
            floor[low:high], unplaced_bytes[low:high] = saved_floor, saved_bytes
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
            found = search.offsets_below(peak)
            if found is None:
                return offsets, peak, True
            offsets = found
            peak = max(
                offset + item.first_step_size for offset, item in zip(found, items, strict=True)
            )
    except _NodeLimit:
        return offsets, peak, False
    return offsets, peak, True


# Largest number of ways followed in parallel; only the first ones are kept.
_MOST_PARTIAL_PLANS = 64


@dataclass(frozen=True)
class _PartialPlan:
    """Offsets chosen so far: those of live buffers, and a link to those chosen before."""

    alive: tuple[tuple[int, int], ...]
    chosen: tuple[tuple[int, int], ...]
    previous: _PartialPlan | None


def sweep(items: Sequence[Item], limit: int) -> list[int] | None:
    """Return offsets with a peak of at most ``limit``, or None if none were found."""
    partial_plans = [_PartialPlan((), (), None)]
    for step in sorted({item.first for item in items}):
        born = [index for index, item in enumerate(items) if item.first == step]
        # Buffers that live longest choose first; those of only this step fill the rest.
        born.sort(key=lambda index: (-items[index].last, -items[index].first_step_size, index))
        found: dict[tuple[tuple[int, int], ...], _PartialPlan] = {}
        for partial_plan in partial_plans:
            alive = tuple(entry for entry in partial_plan.alive if items[entry[0]].last >= step)
            for chosen in _placements(items, born, alive, limit, step):
                lasting = (entry for entry in chosen if items[entry[0]].last > step)
                after = tuple(sorted((*alive, *lasting)))
                found.setdefault(after, _PartialPlan(after, chosen, partial_plan))
                if len(found) >= _MOST_PARTIAL_PLANS:
                    break
        partial_plans = list(found.values())
        if not partial_plans:
            return None
    offsets = [0] * len(items)
    last: _PartialPlan | None = partial_plans[0]
    while last is not None:
        for index, offset in last.chosen:
            offsets[index] = offset
        last = last.previous
    return offsets


def _placements(
    items: Sequence[Item],
    born: Sequence[int],
    placed: tuple[tuple[int, int], ...],
    limit: int,
    step: int,
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield all ways to place new buffers beside ``placed``: (index, offset) of each."""
    if not born:
        yield ()
        return
    index, rest = born[0], born[1:]
    item = items[index]
    # Between these two offsets, exclusive, it would overlap the other one.
    occupied = sorted(
        (offset - item.distance_below(items[other]), offset + items[other].distance_below(item))
        for other, offset in placed
    )
    for offset in _gap_ends(occupied, limit - item.first_step_size):
        now = (*placed, (index, offset))
        for others in _placements(items, rest, now, limit, step):
            yield ((index, offset), *others)
            if items[index].last == step and all(items[i].last == step for i in rest):
                # None of these outlives the step, so a single way to fit them in is enough.
                return


def _gap_ends(occupied: Sequence[tuple[int, int]], highest: int) -> list[int]:
    """Return both ends of every range of offsets that is free."""
    offsets, free = [], 0
    for low, high in (*occupied, (highest, highest)):
        if low >= free:
            offsets += [free, low]
        free = max(free, high)
    return [offset for offset in dict.fromkeys(offsets) if offset <= highest]


class FirstFit:
    """Puts each buffer at the lowest offset not used by earlier ones that overlap it in time."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        # For each buffer, the others with the bytes that it needs below them, and they below it.
        self.near = [
            [
                (other, item.distance_below(items[other]), items[other].distance_below(item))
                for other in item.others
            ]
            for item in items
        ]

    def offsets(self, order: Sequence[int], limit: int | None = None) -> tuple[list[int], int]:
        """Return offsets and their peak; it ends early where that is above the limit."""
        offsets = [-1] * len(self.items)
        peak = 0
        for index in order:
            # Between these two offsets, exclusive, the buffer would overlap the other one.
            occupied = sorted(
                [
                    (start - below, start + above)
                    for other, below, above in self.near[index]
                    if (start := offsets[other]) >= 0
                ]
            )
            offset = 0
            for low, high in occupied:
                if offset <= low:
                    break
                offset = max(offset, high)
            offsets[index] = offset
            peak = max(peak, offset + self.items[index].first_step_size)
            if limit is not None and peak > limit:
                break
        return offsets, peak

    def peak_buffers(self, offsets: Sequence[int], peak: int) -> list[int]:
        """Return the buffers that determine the peak: those at the top, and those they rest on."""
        chain = [
            index
            for index, item in enumerate(self.items)
            if offsets[index] + item.first_step_size == peak
        ]
        seen = set(chain)
        for index in chain:
            for other, _, above in self.near[index]:
                if offsets[other] + above == offsets[index] and other not in seen:
                    seen.add(other)
                    chain.append(other)
        return chain


def greedy_orders(items: Sequence[Item]) -> list[tuple[str, list[int]]]:
    """Return orders that work well in practice: by size, by area, by crowding, by time."""
    crowd = [item.size + sum(items[other].size for other in item.others) for item in items]
    keys: list[tuple[str, Callable[[int], tuple[int, ...]]]] = [
        ("by size", lambda i: (-items[i].size, items[i].first)),
        ("by area", lambda i: (-items[i].size * (items[i].last - items[i].first + 1), -crowd[i])),
        ("by crowding", lambda i: (-crowd[i], -items[i].size)),
        ("by duration", lambda i: (items[i].first - items[i].last, -items[i].size)),
        ("by time", lambda i: (items[i].first, -items[i].size)),
    ]
    return [
        (name, sorted(range(len(items)), key=lambda i, key=key: (*key(i), i)))  # type: ignore[misc]
        for name, key in keys
    ]


def hill_climb(
    fit: FirstFit, order: list[int], offsets: list[int], peak: int, bound: int
) -> tuple[list[int], int]:
    """Change the order of the buffers that determine the peak; keep changes that are not worse."""
    draw = random.Random(len(fit.items))
    best_offsets, best_peak = offsets, peak
    current, current_offsets, current_peak = order, offsets, peak
    for _ in range(_HILL_CLIMB_STEPS):
        if best_peak <= bound:
            break
        chain = fit.peak_buffers(current_offsets, current_peak)
        moved = chain[draw.randrange(len(chain))]
        trial = list(current)
        place = trial.index(moved)
        if place and draw.random() < 0.7:
            # Earlier: the buffer is placed before those that push it up.
            trial.insert(draw.randrange(place), trial.pop(place))
        else:
            swap = draw.randrange(len(trial))
            trial[place], trial[swap] = trial[swap], trial[place]
        trial_offsets, trial_peak = fit.offsets(trial, current_peak)
        if trial_peak > current_peak:
            if draw.random() >= 0.02:
                continue
            trial_offsets, trial_peak = fit.offsets(trial)
        current, current_offsets, current_peak = trial, trial_offsets, trial_peak
        if trial_peak < best_peak:
            best_offsets, best_peak = trial_offsets, trial_peak
    return best_offsets, best_peak
