"""Where rows that pass by lie, and what kernels need: they share one workspace of the chain.

A strip of one row holds it only until its readers have made theirs.  In between, few of these rows
exist at the same time, and what a kernel needs besides its tensors exists while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.memory.arena import ALIGNMENT

if TYPE_CHECKING:
    from htvm.aot.chains.chain import Chain


@dataclass(frozen=True)
class Places:
    """Bytes of the workspace.

    Attributes:
        rows: for each strip whose rows pass by, the first byte and the one behind the last.
        work: the same of what a stage's kernels need, by the stage's number.
    """

    rows: Mapping[str, range]
    work: Mapping[int, range]

    @property
    def bytes(self) -> int:
        """Bytes of the whole."""
        return max((each.stop for each in (*self.rows.values(), *self.work.values())), default=0)

    def ended_by(self, chain: Chain, number: int) -> list[str]:
        """Return the strips whose place a stage takes."""
        own = chain.stages[number]
        taken = [self.rows.get(own.name, range(0)) if own.strip else range(0)]
        taken.append(self.work.get(number, range(0)))
        return [
            name
            for name, place in self.rows.items()
            if not (own.strip and name == own.name)
            and any(place.start < each.stop and each.start < place.stop for each in taken if each)
        ]


def places_of(chain: Chain, work: Mapping[int, int]) -> Places:
    """Return places for the rows that pass by and for what kernels need.

    The largest come first, each as low as possible.

    Args:
        chain: the chain.
        work: bytes that each unit's kernels need, by the unit's number.
    """
    rows: dict[str, range] = {}
    works: dict[int, range] = {}
    needs: list[tuple[int, str | int]] = [
        (chain.strips[name].bytes, name) for name in chain.passing
    ]
    for number, stage in enumerate(chain.stages):
        if stage.unit is not None and work.get(stage.unit):
            needs.append((work[stage.unit], number))
    for size, item in sorted(needs, key=lambda each: -each[0]):
        if isinstance(item, int):
            beside = {name for number, names in chain.together if number == item for name in names}
        else:
            beside = {name for _, names in chain.together if item in names for name in names}
        taken = [place for name, place in rows.items() if name in beside]
        if isinstance(item, str):
            stages = {number for number, names in chain.together if item in names}
            taken += [place for number, place in works.items() if number in stages]
        start = 0
        for place in sorted(taken, key=lambda each: each.start):
            if start + size > place.start:
                start = max(start, -(-place.stop // ALIGNMENT) * ALIGNMENT)
        place = range(start, start + size)
        if isinstance(item, int):
            works[item] = place
        else:
            rows[item] = place
    return Places(rows, works)
