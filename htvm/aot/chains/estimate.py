"""What a chain takes at least, before the order of its rows is known: that takes a hundredth of
the time, and most chains need not be looked at any closer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.memory.arena import ALIGNMENT

if TYPE_CHECKING:
    from htvm.aot.chains.network import Network


@dataclass(frozen=True)
class Estimate:
    """What a chain takes at least.

    Attributes:
        bytes: of the arena while it runs.
        calls: rows of its units.
        copied: bytes that are copied into strips.
    """

    bytes: int
    calls: int
    copied: int


def estimate(network: Network, first: int, behind: int, alive: Sequence[str]) -> Estimate:
    """Return what a chain takes at least.

    A strip has room for the rows that a unit reads at once; those of one row may share a place.

    Args:
        network: the units.
        first, behind: numbers of the first unit and of the one behind the last, all with rows.
        alive: the whole tensors of the arena that exist when the chain begins.
    """
    tensors, units = network.tensors, network.units[first:behind]
    inner = {unit.result for unit in units if network.dies(unit.result) < behind}
    rows = dict.fromkeys(inner, 1)  # of strips
    made = dict.fromkeys(inner, 0)
    copied, calls = set[str](), 0
    for unit in reversed(units):
        count = made.get(unit.result, tensors[unit.result].rows)
        calls += count
        for name, window in unit.windows:
            if name in inner:
                last = (count - 1) * window.stride + window.size - window.top
                made[name] = max(made[name], min(last, tensors[name].rows))
            elif window.is_padded or name == network.streamed:
                copied.add(name)
            else:
                continue
            rows[name] = max(rows.get(name, 1), window.size)
    sizes = {name: count * tensors[name].row for name, count in rows.items()}
    needed = sum(rounded(size) for name, size in sizes.items() if rows[name] > 1)
    needed += rounded(max((size for name, size in sizes.items() if rows[name] == 1), default=0))
    before = [tensors[name].bytes for name in alive]
    results = [unit.result for unit in units if unit.result not in inner]
    after = [tensors[name].bytes for name in results if network.in_arena(name)]
    needed += sum(map(rounded, before)) + sum(map(rounded, after))
    if after:  # it may take the bytes of an input
        needed -= rounded(min(max(after), max(before, default=0)))
    return Estimate(needed, calls, sum(tensors[name].bytes for name in copied))


def rounded(size: int) -> int:
    """Return bytes rounded up to the alignment of tensors in the arena."""
    return -(-size // ALIGNMENT) * ALIGNMENT
