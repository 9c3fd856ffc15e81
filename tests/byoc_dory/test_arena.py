"""The planner of offsets against brute force, and its promises: valid, certified, repeatable."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_dory.errors import HtvmError
from byoc_dory.memory import arena
from byoc_dory.memory import search as arena_exact
from byoc_dory.memory import search as arena_sweep
from byoc_dory.memory.arena import BufferUse, MemoryPlan, check_plan, live_bytes, plan_memory
from tests.stopwatch import yardsticks


def _aligned(size: int) -> int:
    return -(-size // 16) * 16


def _needed(buffer: BufferUse, step: int) -> int:
    return _aligned(buffer.bytes + (buffer.surplus if step == buffer.first else 0))


def _brute_force(buffers: list[BufferUse]) -> int:
    """Smallest first-fit peak over all orders; some order of an optimal plan reaches it."""
    beside = {
        (a, b): max(_needed(a, step) for step in common)
        for a, b in permutations(buffers, 2)
        if (common := range(max(a.first, b.first), min(a.last, b.last) + 1))
    }
    best = 1 << 60
    for order in permutations(buffers):
        placed: list[tuple[int, BufferUse]] = []
        for buffer in order:
            near = [(at, other) for at, other in placed if (buffer, other) in beside]
            # On the ground or on a neighbour: the lowest free place is one of these.
            places = sorted({0, *(at + beside[other, buffer] for at, other in near)})
            offset = next(
                place
                for place in places
                if all(
                    place + beside[buffer, other] <= at or at + beside[other, buffer] <= place
                    for at, other in near
                )
            )
            placed.append((offset, buffer))
        best = min(best, max(at + _needed(b, b.first) for at, b in placed))
    return best


def _random_graph(draw: random.Random, count: int, steps: int) -> list[BufferUse]:
    buffers = []
    for index in range(count):
        first = draw.randrange(steps)
        last = min(steps - 1, first + draw.choice([0, 1, 1, 1, 2, 2, 5, steps // 3]))
        buffers.append(BufferUse(f"b{index}", draw.randrange(1, 40_000), first, last))
    return buffers


@st.composite
def _small(draw: st.DrawFn) -> list[BufferUse]:
    count = draw(st.integers(1, 6))
    buffers = []
    for index in range(count):
        first = draw(st.integers(0, 5))
        last = draw(st.integers(first, 5))
        surplus = draw(st.sampled_from([0, 0, 16, 50]))
        buffers.append(BufferUse(f"b{index}", draw(st.integers(1, 100)), first, last, surplus))
    return buffers


@settings(max_examples=100, deadline=None)
@given(_small())
def test_small_instances_are_optimal_and_say_so(buffers: list[BufferUse]) -> None:
    plan = plan_memory(buffers)
    assert plan.peak == _brute_force(buffers)
    assert plan.optimal and plan.gap == 0.0


def _clash(items: Sequence[arena_exact.Item], offsets: Sequence[int]) -> bool:
    """Whether two that overlap in time share bytes."""
    return any(
        offsets[i] < offsets[j] + items[j].distance_below(item)
        and offsets[j] < offsets[i] + item.distance_below(items[j])
        for i, item in enumerate(items)
        for j in item.others
    )


@settings(max_examples=60, deadline=None)
@given(_small())
def test_the_exact_search_alone_finds_the_optimum(buffers: list[BufferUse]) -> None:
    """Started from the worst plan (everything apart), so that it cannot lean on the greedy one."""
    items = arena._search_items(buffers, 16)
    apart, total = [], 0
    for item in items:
        apart.append(total)
        total += item.first_step_size
    live = arena._live_peak(items)
    expected = _brute_force(buffers)
    offsets, peak, proven = arena_exact.branch_and_bound(items, apart, total, live)
    assert (peak, proven) == (expected, True)
    assert not _clash(items, offsets)


@settings(max_examples=60, deadline=None)
@given(_small(), st.integers(0, 10))
def test_the_sweep_finds_valid_offsets_below_its_limit(buffers: list[BufferUse], more: int) -> None:
    """Where it finds some; with room for two thirds more than needed it always does."""
    items = arena._search_items(buffers, 16)
    best = _brute_force(buffers)
    limit = best + 16 * more
    offsets = arena_sweep.sweep(items, limit)
    if offsets is not None:
        assert not _clash(items, offsets)
        assert all(
            at + item.first_step_size <= limit for at, item in zip(offsets, items, strict=True)
        )
    else:
        assert 3 * limit < 5 * best
    assert arena_sweep.sweep(items, best - 16) is None


def test_the_sweep_follows_a_chain_from_end_to_end() -> None:
    """Every second tensor at the top: first fit in order of time breaks this up."""
    sizes = [7, 3, 9, 1, 8, 2, 6, 4, 5, 5, 9, 1] * 8
    buffers = [BufferUse(f"t{i}", 16 * size, i, i + 1) for i, size in enumerate(sizes)]
    plan = plan_memory(buffers)
    assert plan.peak == plan.live


def test_a_peak_that_is_enough_is_not_improved() -> None:
    assert plan_memory(HARD_TO_REACH, enough=10_000).method.startswith("first fit")
    assert plan_memory(HARD_TO_REACH, enough=10_000).bound == 128


def _units(rows: list[tuple[int, int, int]]) -> list[BufferUse]:
    return [BufferUse(f"b{i}", 16 * size, a, b) for i, (size, a, b) in enumerate(rows)]


# Tight by construction (every step needs the same sum), found by random search.
NO_PLAN_AT_THE_SUM = _units(
    [(4, 0, 1), (3, 0, 0), (2, 1, 2), (1, 1, 3), (2, 2, 3), (2, 2, 2), (3, 3, 4), (1, 3, 4)]
    + [(3, 4, 4)]
)
HARD_TO_REACH = _units(
    [(2, 0, 1), (1, 0, 3), (4, 0, 0), (1, 0, 2), (3, 1, 2), (1, 1, 1), (1, 2, 3), (1, 2, 3)]
    + [(1, 2, 5), (2, 3, 4), (2, 3, 6), (1, 4, 5), (1, 4, 6), (1, 4, 6), (2, 5, 5), (4, 6, 6)]
)


def test_an_optimum_above_the_sum_of_live_buffers_is_proven() -> None:
    plan = plan_memory(NO_PLAN_AT_THE_SUM)
    assert (plan.live, plan.peak, plan.bound) == (112, 128, 128)
    assert plan.method.endswith("proven by branch and bound")


def test_branch_and_bound_goes_where_the_hill_climb_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arena, "sweep", lambda items, limit: None)
    plan = plan_memory(HARD_TO_REACH)
    assert plan.peak == plan.live == 128
    assert plan.method == "branch and bound"


def test_an_open_gap_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena_exact, "_BRANCH_AND_BOUND_NODES", 1)
    plan = plan_memory(NO_PLAN_AT_THE_SUM)
    assert (plan.peak, plan.bound, plan.optimal) == (128, 112, False)
    assert plan.gap == pytest.approx(1 / 8)


def test_a_chain_reaches_the_bound_without_search() -> None:
    buffers = [BufferUse(f"t{i}", size, i, i + 1) for i, size in enumerate([100, 700, 50, 400])]
    plan = plan_memory(buffers)
    assert plan.peak == plan.live == _aligned(100) + _aligned(700)
    assert plan.method.startswith("first fit")


def test_a_surplus_is_free_again_after_the_first_step() -> None:
    """The second buffer lies where the first one's surplus was, not behind it."""
    lasting, later = BufferUse("a", 32, 0, 1, surplus=64), BufferUse("b", 64, 1, 1)
    plan = plan_memory([lasting, later])
    assert (plan.peak, plan.live) == (96, 96)


def test_nothing_to_plan() -> None:
    assert plan_memory([]) == MemoryPlan((), 0, 0, 0, "nothing to plan")
    assert plan_memory([BufferUse("empty", 0, 0, 3)]).peak == 0


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_are_valid_repeatable_and_near_the_bound(seed: int) -> None:
    buffers = _random_graph(random.Random(seed), 60, 50)
    plan = plan_memory(buffers)
    check_plan(plan, buffers)
    assert plan == plan_memory(buffers)
    assert plan.live <= plan.bound <= plan.peak <= 1.1 * plan.live


def test_a_hundred_buffers_take_less_than_a_second() -> None:
    buffers = _random_graph(random.Random(7), 100, 80)
    _, spent = yardsticks(lambda: plan_memory(buffers))
    assert spent < 100


def test_a_wrong_plan_is_noticed() -> None:
    buffers = [BufferUse("a", 16, 0, 1), BufferUse("b", 16, 1, 2)]
    with pytest.raises(HtvmError, match="'a' and 'b' overlap"):
        check_plan(MemoryPlan((("a", 0), ("b", 0)), 16, 32, 32, ""), buffers)
    with pytest.raises(HtvmError, match="'a' and 'b' overlap"):
        lasting = BufferUse("a", 16, 0, 1)
        check_plan(
            MemoryPlan((("a", 16), ("b", 0)), 48, 32, 32, ""),
            [lasting, BufferUse("b", 16, 1, 1, surplus=1)],
        )
    with pytest.raises(HtvmError, match="outside"):
        check_plan(MemoryPlan((("a", 0), ("b", 16)), 16, 32, 32, ""), buffers)


def test_bad_buffers_are_refused() -> None:
    with pytest.raises(ValueError, match="repeat"):
        plan_memory([BufferUse("a", 1, 0, 0), BufferUse("a", 1, 0, 0)])
    with pytest.raises(ValueError, match="not a buffer"):
        plan_memory([BufferUse("a", 1, 2, 1)])


def _may_be(a: BufferUse, b: BufferUse, start_a: int, start_b: int) -> bool:
    """Whether two buffers may lie there, from the meaning of the fields."""
    if a.last < b.first or b.last < a.first:
        return True
    if start_a + a.bytes <= start_b or start_b + b.bytes <= start_a:
        return True
    for new, old, down in ((a, b, start_b - start_a), (b, a, start_a - start_b)):
        if new.over == old.name and old.last == new.first:
            return down >= new.below or -down >= new.above
    return False


def _least_peak(buffers: list[BufferUse]) -> int:
    """The smallest arena, by trying all offsets."""
    places = range(0, sum(_aligned(buffer.bytes) for buffer in buffers), 16)
    best = 1 << 60

    def place(offsets: list[int], peak: int) -> None:
        nonlocal best
        if peak >= best:
            return
        if len(offsets) == len(buffers):
            best = peak
            return
        new = buffers[len(offsets)]
        for start in places:
            if all(_may_be(new, buffers[i], start, at) for i, at in enumerate(offsets)):
                place([*offsets, start], max(peak, start + new.bytes))

    place([], 0)
    return best


@st.composite
def _chain(draw: st.DrawFn) -> list[BufferUse]:
    """Buffers that may be written over the one before, and one that lives throughout."""
    sizes = draw(st.lists(st.integers(1, 90), min_size=2, max_size=4))
    buffers = [BufferUse("b0", sizes[0], 0, 1)]
    for step, size in enumerate(sizes[1:], 1):
        below, above = (draw(st.sampled_from([0, 1, 16, 40, 99])) for _ in range(2))
        over = draw(st.sampled_from([f"b{step - 1}", f"b{step - 1}", ""]))
        last = draw(st.integers(step, step + 1))
        buffers.append(BufferUse(f"b{step}", size, step, last, 0, over, below, above))
    if draw(st.booleans()):
        buffers.append(BufferUse("stays", draw(st.integers(1, 60)), 0, len(sizes)))
    return buffers


@settings(max_examples=60, deadline=None)
@given(_chain())
def test_buffers_written_over_others_lie_where_they_may(buffers: list[BufferUse]) -> None:
    plan = plan_memory(buffers)
    starts = dict(plan.offsets)
    for a, b in permutations(buffers, 2):
        assert _may_be(a, b, starts[a.name], starts[b.name])
    least = _aligned(_least_peak(buffers))
    assert plan.bound <= least <= plan.peak
    assert all(bytes_ <= plan.peak for bytes_ in live_bytes(buffers, len(buffers)))


def test_a_chain_written_over_itself_takes_its_largest_link_and_the_ways_between() -> None:
    chain = [
        BufferUse("padded", 1600, 0, 1),
        BufferUse("sums", 1200, 1, 2, 0, "padded", 64, 1600),
        BufferUse("again", 1200, 2, 3, 0, "sums", 32, 1200),
        BufferUse("padded_again", 1600, 3, 4, 0, "again", 1600, 0),
    ]
    plan = plan_memory(chain)
    assert plan.peak == plan.bound == 1600 + 64 + 32
    apart = plan_memory([replace(buffer, over="") for buffer in chain])
    assert apart.peak == 1600 + 1200
    moved = replace(plan, offsets=(*plan.offsets[:1], ("sums", 48), *plan.offsets[2:]))
    with pytest.raises(HtvmError, match="'padded' and 'sums' overlap"):
        check_plan(moved, chain)


def test_a_buffer_still_read_later_is_not_written_over() -> None:
    kept = [BufferUse("a", 160, 0, 2), BufferUse("b", 160, 1, 2, 0, "a", 0, 0)]
    assert plan_memory(kept).peak == 320
