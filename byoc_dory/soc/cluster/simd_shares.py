"""How kernels for SIMD share work among cores, as ``runtime_c/cluster/simd/cluster_split.h``."""

from __future__ import annotations

from collections.abc import Iterator

Range = tuple[int, int]


def fours_of(count: int) -> int:
    """Return the number of fours, the last one incomplete."""
    return -(-count // 4)


def share(count: int, parts: int) -> list[Range]:
    """Divide ``count`` things evenly, the first parts one longer."""
    each, left = divmod(count, parts)
    begins = [part * each + min(part, left) for part in range(parts + 1)]
    return list(zip(begins, begins[1:], strict=False))


def split(
    blocks: int, items: int, costs: tuple[int, int, int, int], cores: int
) -> Iterator[tuple[Range, Range]]:
    """Yield the blocks and items of each core, as ``cluster_split()`` does.

    Args:
        blocks: blocks of each item.
        items: number of items.
        costs: cycles of a block, of all blocks of an item, of an item, and of a block with any
            number of items.
        cores: number of cores.
    """
    block, whole, item, shared = costs
    size, best = 1, 1 << 62
    group = 1 if blocks > 1 else cores + 1
    if blocks == 1 and cores & (cores - 1) == 0:
        size = cores
    while group <= cores and cores & (cores - 1) == 0:
        most = -(-blocks // (cores // group))
        each = block * most if most < blocks else whole
        cost = (each + item) * -(-items // group) + shared * most
        if cost < best:
            best, size = cost, group
        group *= 2
    for part in share(blocks, cores // size):
        for own in share(items, size):
            yield part, own


def in_fours(blocks: Range, count: int) -> Range:
    """Return the elements of blocks of four."""
    return 4 * blocks[0], min(4 * blocks[1], count)
