"""Searching offsets below a limit, step by step in time.

Each new buffer is put at one end of a gap between the live ones.  All ways to do so are followed in
parallel, as far as they leave different buffers at different places.  In a chain, where one buffer
lives until the next one is written, few ways differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from byoc_dory.memory.exact import Item

# Largest number of ways followed in parallel; only the first ones are kept.
_WAYS = 64


@dataclass(frozen=True)
class _Way:
    """Offsets chosen so far: those of live buffers, and a link to those chosen before."""

    alive: tuple[tuple[int, int], ...]
    chosen: tuple[tuple[int, int], ...]
    before: _Way | None


def sweep(items: Sequence[Item], limit: int) -> list[int] | None:
    """Return offsets with a peak of at most ``limit``, or None if none were found."""
    ways = [_Way((), (), None)]
    for step in sorted({item.first for item in items}):
        born = [index for index, item in enumerate(items) if item.first == step]
        # Buffers that live longest choose first; those of only this step fill the rest.
        born.sort(key=lambda index: (-items[index].last, -items[index].most, index))
        found: dict[tuple[tuple[int, int], ...], _Way] = {}
        for way in ways:
            alive = tuple(entry for entry in way.alive if items[entry[0]].last >= step)
            for chosen in _placed(items, born, alive, limit, step):
                lasting = (entry for entry in chosen if items[entry[0]].last > step)
                after = tuple(sorted((*alive, *lasting)))
                found.setdefault(after, _Way(after, chosen, way))
                if len(found) >= _WAYS:
                    break
        ways = list(found.values())
        if not ways:
            return None
    offsets = [0] * len(items)
    last: _Way | None = ways[0]
    while last is not None:
        for index, offset in last.chosen:
            offsets[index] = offset
        last = last.before
    return offsets


def _placed(
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
    taken = sorted(
        (offset - item.beside(items[other]), offset + items[other].beside(item))
        for other, offset in placed
    )
    for offset in _ends(taken, limit - item.most):
        now = (*placed, (index, offset))
        for others in _placed(items, rest, now, limit, step):
            yield ((index, offset), *others)
            if items[index].last == step and all(items[i].last == step for i in rest):
                # None of these outlives the step, so a single way to fit them in is enough.
                return


def _ends(taken: Sequence[tuple[int, int]], highest: int) -> list[int]:
    """Return both ends of every range of offsets that is free."""
    offsets, free = [], 0
    for low, high in (*taken, (highest, highest)):
        if low >= free:
            offsets += [free, low]
        free = max(free, high)
    return [offset for offset in dict.fromkeys(offsets) if offset <= highest]
