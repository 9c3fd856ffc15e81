"""Planning offsets in one memory (the arena in L2, a region's part of L1) from lifetimes.

Two buffers may share bytes if no step needs both, or if the one step that needs both reads every
byte of the one before it writes there the other (`BufferUse.over`).  The largest sum of
simultaneously live bytes is a lower bound for any arena; a plan that reaches it is optimal, and the
search stops.
Otherwise it continues: greedy orders, a sweep through time, a hill climb over orders, then a branch
and bound in the style of MiniMalloc that either finds better offsets or proves that there are none.
All limits are counts, not times, so a plan depends only on its buffers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from byoc_dory.errors import HtvmError
from byoc_dory.memory.search import (
    FirstFit,
    Item,
    branch_and_bound,
    greedy_orders,
    hill_climb,
    sweep,
)

_log = logging.getLogger(__name__)

# Accelerator layouts use aligned groups of 4 bytes, L1 aligned groups of 16; one alignment serves
# all.
ALIGNMENT = 16

_LIMITS = 32
_BRANCH_AND_BOUND_BUFFERS = 40


@dataclass(frozen=True)
class BufferUse:
    """A buffer and the steps that need it.

    Attributes:
        name: unique name.
        bytes: size in bytes.
        first, last: indices of the first and the last step that touch it, both inclusive.
        surplus: number of bytes after its end that its first step overwrites as well.
        over: name of a buffer whose last step is this one's first, and whose bytes it may take
            while that step reads them; empty for none.
        below: number of bytes that it must then start before ``over`` at least.
        above: or that it must start after ``over`` at least; both are no more than the whole
            buffer that starts first.
    """

    name: str
    bytes: int
    first: int
    last: int
    surplus: int = 0
    over: str = ""
    below: int = 0
    above: int = 0


@dataclass(frozen=True)
class MemoryPlan:
    """The offsets of all buffers, and the quality of the plan.

    Attributes:
        offsets: (buffer name, byte offset), in the order of the buffers given.
        peak: size of the arena in bytes.
        live: largest sum of simultaneously live bytes, with each buffer rounded up to the alignment
            (and including the surplus during its first step).
        bound: best proven lower bound of the peak; ``peak`` itself if the plan is optimal.
        method: the search that found the offsets, and the one that proved the bound if different.
    """

    offsets: tuple[tuple[str, int], ...]
    peak: int
    live: int
    bound: int
    method: str

    @property
    def gap(self) -> float:
        """Largest fraction of the peak that a better plan could save; 0 if the plan is optimal."""
        return (self.peak - self.bound) / self.peak if self.peak else 0.0

    @property
    def optimal(self) -> bool:
        """Whether no smaller arena exists."""
        return self.peak == self.bound

    def offset(self, name: str) -> int:
        """Return the byte offset of a buffer (``KeyError`` if there is no such buffer)."""
        return dict(self.offsets)[name]


def _rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _search_items(buffers: Sequence[BufferUse], alignment: int) -> list[Item]:
    others: list[list[int]] = [[] for _ in buffers]
    for (i, a), (j, b) in combinations(enumerate(buffers), 2):
        filled = (a.bytes or a.surplus) and (b.bytes or b.surplus)
        if a.first <= b.last and b.first <= a.last and filled:
            others[i].append(j)
            others[j].append(i)
    near: list[dict[int, int]] = [{} for _ in buffers]
    for new, old in _overlapping_pairs(buffers):
        below, above = buffers[new].below, buffers[new].above
        near[new][old] = _rounded(min(below, buffers[new].bytes), alignment)
        near[old][new] = _rounded(min(above, buffers[old].bytes), alignment)
    return [
        Item(
            _rounded(buffer.bytes, alignment),
            _rounded(buffer.bytes + buffer.surplus, alignment),
            buffer.first,
            buffer.last,
            tuple(row),
            index,
            tuple(sorted(near[index].items())),
        )
        for index, (buffer, row) in enumerate(zip(buffers, others, strict=True))
    ]


def _overlapping_pairs(buffers: Sequence[BufferUse]) -> list[tuple[int, int]]:
    """Return (buffer, the one over which it may be written), by index."""
    places = {buffer.name: index for index, buffer in enumerate(buffers)}
    return [
        (index, places[buffer.over])
        for index, buffer in enumerate(buffers)
        if buffer.over in places and buffers[places[buffer.over]].last == buffer.first
    ]


def live_bytes(
    buffers: Sequence[BufferUse], steps: int, alignment: int = ALIGNMENT
) -> tuple[int, ...]:
    """Return the fewest bytes that hold what each step needs, buffers rounded to the alignment."""
    items = _search_items(buffers, alignment)
    return tuple(_bytes_at_step(items, step) for step in range(steps))


def written_over(plan: MemoryPlan, buffers: Sequence[BufferUse]) -> dict[str, str]:
    """Return which buffers are written over another one while it is read: new name to old name."""
    buffers_by_name = {buffer.name: buffer for buffer in buffers}
    offsets = dict(plan.offsets)
    overwritten = {}
    for new in buffers:
        old = buffers_by_name.get(new.over)
        if old is None:
            continue
        start, other = offsets[new.name], offsets[old.name]
        if start < other + old.bytes and other < start + new.bytes:
            overwritten[new.name] = old.name
    return overwritten


def _bytes_at_step(items: Sequence[Item], step: int) -> int:
    """Return the fewest bytes into which the buffers of a step fit."""
    total = 0
    for item in items:
        if item.first <= step <= item.last:
            total += item.first_step_size if item.first == step else item.size
        if item.first == step:
            total -= max(
                (_overlap_bytes(item, items[old]) for old, _ in item.overlap_distances), default=0
            )
    return total


def _overlap_bytes(new: Item, old: Item) -> int:
    """Return how many bytes of a buffer may be written over the one that the step reads last."""
    if new.first != old.last or new.first_step_size != new.size:
        return 0
    under = max(new.size, new.distance_below(old) + old.size)
    over = max(old.size, old.distance_below(new) + new.size)
    return max(0, new.size + old.size - min(under, over))


def _live_peak(items: Sequence[Item]) -> int:
    """Return the largest sum of live sizes, which occurs at the beginning of some buffer."""
    return max((_bytes_at_step(items, step) for step in {item.first for item in items}), default=0)


def _chained_bound(items: Sequence[Item], live: int, peak: int, alignment: int) -> int:
    """Return a lower bound of the peak that counts how distances add up along chains.

    Below that limit, some pairs fit in only if they overlap; a chain of them goes down or up.
    """
    pairs = [
        (new, items[old])
        for new in sorted(items, key=lambda item: item.first)
        for old, _ in new.overlap_distances
        if new.first == items[old].last and new.first_step_size == new.size
    ]
    for limit in range(live, peak, alignment):
        lowest = [0] * len(items)
        for new, old in pairs:
            if _fitting_orders(new, old, limit) == {"above"}:
                least = lowest[old.index] + old.distance_below(new)
                lowest[new.index] = max(lowest[new.index], least)
        for new, old in reversed(pairs):
            if _fitting_orders(new, old, limit) == {"below"}:
                least = lowest[new.index] + new.distance_below(old)
                lowest[old.index] = max(lowest[old.index], least)
        if all(lowest[item.index] + item.size <= limit for item in items):
            return limit
    return peak


def _fitting_orders(new: Item, old: Item, limit: int) -> set[str]:
    """Return the ways in which a pair fits below a limit."""
    orders = {
        "below": max(new.size, new.distance_below(old) + old.size),
        "above": max(old.size, old.distance_below(new) + new.size),
        "apart": new.size + old.size,
    }
    return {way for way, size in orders.items() if size <= limit}


def _peak(items: Sequence[Item], offsets: Sequence[int]) -> int:
    return max(offset + item.first_step_size for offset, item in zip(offsets, items, strict=True))


def plan_memory(
    buffers: Sequence[BufferUse],
    alignment: int = ALIGNMENT,
    memory: str = "L2 arena",
    enough: int = 0,
) -> MemoryPlan:
    """Assign offsets such that buffers needed at the same time do not overlap, with a small peak.

    Args:
        buffers: buffers with distinct names; sizes in bytes.
        alignment: alignment of every offset, in bytes.
        memory: name of the memory, for messages.
        enough: peak in bytes at which the search for a smaller one stops.

    Returns:
        The plan, which depends only on the arguments.

    Raises:
        ValueError: names repeat, a size is negative, or a lifetime ends before it begins.
    """
    if len({buffer.name for buffer in buffers}) != len(buffers):
        raise ValueError("buffer names repeat")
    for buffer in buffers:
        if min(buffer.bytes, buffer.surplus) < 0 or buffer.last < buffer.first:
            raise ValueError(f"not a buffer: {buffer}")
    items = _search_items(buffers, alignment)
    live = _live_peak(items)
    offsets, peak, bound, method = _solve(items, live, alignment, max(live, enough))
    _log.info("%s: peak %d B, bound %d B (%s)", memory, peak, bound, method)
    plan = MemoryPlan(
        offsets=tuple((b.name, offset) for b, offset in zip(buffers, offsets, strict=True)),
        peak=peak,
        live=live,
        bound=bound,
        method=method,
    )
    check_plan(plan, buffers, alignment)
    return plan


def _solve(
    items: Sequence[Item], live: int, alignment: int, goal: int
) -> tuple[list[int], int, int, str]:
    """Return offsets, peak, proven bound and method; cheap searches first, stopping at the goal."""
    if not live:
        return [0] * len(items), 0, 0, "nothing to plan"
    best: tuple[int, list[int], str, list[int]] | None = None
    fit = FirstFit(items)
    for name, order in greedy_orders(items):
        offsets, peak = fit.offsets(order)
        if best is None or peak < best[0]:
            best = (peak, offsets, f"first fit {name}", order)
        if peak == live:
            break
    assert best is not None
    peak, offsets, method, order = best
    if peak <= goal:
        return offsets, peak, live, method
    swept = sweep(items, goal // alignment * alignment)
    if swept is not None:
        return swept, _peak(items, swept), live, "sweep"
    disjoint = not any(item.overlap_distances for item in items)
    if not disjoint:
        live = _chained_bound(items, live, peak, alignment)
        goal = max(goal, live)
        for limit in range(goal, peak, max(alignment, (peak - goal) // _LIMITS)):
            swept = sweep(items, limit // alignment * alignment)
            if swept is not None:
                offsets, peak, method = swept, _peak(items, swept), "sweep"
                break
    climbed, lower = hill_climb(fit, order, offsets, peak, goal)
    if lower < peak:
        offsets, peak, method = climbed, lower, "hill climb"
    if disjoint and peak > goal and len(items) <= _BRANCH_AND_BOUND_BUFFERS:
        found, lower, proven = branch_and_bound(items, offsets, peak, goal)
        if lower < peak:
            offsets, peak, method = found, lower, "branch and bound"
        if proven and peak > goal:
            searched = method != "branch and bound"
            return offsets, peak, peak, method + ", proven by branch and bound" * searched
    return offsets, peak, live, method


def check_plan(plan: MemoryPlan, buffers: Sequence[BufferUse], alignment: int = ALIGNMENT) -> None:
    """Check a plan independently of the search: no overlap in space and time, all inside the peak.

    Raises:
        HtvmError: the plan is wrong (a defect of the planner, not of the model).
    """
    offsets = dict(plan.offsets)
    for buffer in buffers:
        offset = offsets[buffer.name]
        end = offset + buffer.bytes + buffer.surplus
        if offset < 0 or offset % alignment or end > plan.peak:
            raise HtvmError(f"offset {offset} is misaligned or outside", where=buffer.name)
    for a, b in _simultaneous(buffers):
        together = range(b.first, min(a.last, b.last) + 1)
        start_a, start_b = offsets[a.name], offsets[b.name]
        end_a = start_a + a.bytes + a.surplus * (a.first in together)
        end_b = start_b + b.bytes + b.surplus * (b.first in together)
        if start_a < end_b and start_b < end_a and not _may_overlap(a, b, start_b - start_a):
            raise HtvmError(f"buffers '{a.name}' and '{b.name}' overlap", where="plan of memory")


def _may_overlap(a: BufferUse, b: BufferUse, distance: int) -> bool:
    """Whether two buffers may overlap if ``b`` starts this many bytes after ``a``."""
    if b.over == a.name and len(range(b.first, a.last + 1)) == 1 and not b.surplus:
        return -distance >= b.below or distance >= b.above
    return b.name == a.over and _may_overlap(b, a, -distance)


def _simultaneous(buffers: Sequence[BufferUse]) -> Iterator[tuple[BufferUse, BufferUse]]:
    """Yield each pair of buffers that live at the same time; the second begins no earlier."""
    living: list[BufferUse] = []
    for buffer in sorted(buffers, key=lambda buffer: buffer.first):
        living = [other for other in living if other.last >= buffer.first]
        for other in living:
            yield other, buffer
        living.append(buffer)
