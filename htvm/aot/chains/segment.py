"""`Segment`: consecutive units between two cuts, and what they cost and take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htvm.aot.chains.chain import Chain
    from htvm.aot.chains.costs import ChainCosts


@dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive units that are computed together.

    Attributes:
        first, behind: numbers of the first unit and of the one behind the last.
        by_rows: whether they advance together; otherwise it is a unit as a whole.
        bytes: of the arena while it runs.
        cost: estimated instructions beyond those of the products.
        chain: how they advance; while that is ``None``, its bytes and cost may be too low.
    """

    first: int
    behind: int
    by_rows: bool
    bytes: int
    cost: float
    chain: Chain | None = None

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells it from others: its ends, the rows at once, and the room in its strips."""
        if self.chain is None:
            return self.first, self.behind, (), ()
        rooms = tuple(strip.rows for strip in self.chain.strips.values())
        return self.first, self.behind, tuple(self.chain.bands.items()), rooms

    @classmethod
    def of(cls, chain: Chain, costs: ChainCosts) -> Segment:
        """Return a chain with what is known of its bytes and its cost."""
        return cls(*chain.units, True, costs.bytes_of(chain), costs.of_chain(chain), chain)
