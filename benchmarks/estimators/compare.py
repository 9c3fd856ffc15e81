"""Where the estimators' cycles differ from ours, cause by cause, until nothing is left over.

Ours (executed): a convolution takes ``oy * ox * fy * fx * ceil(C / P_in) * ceil(K / P_out)``
cycles, and transfers, which the published accelerator does not hide, are added.

- SCALE-Sim (weight-stationary systolic array of ``P_in`` rows and ``P_out`` columns) puts all taps
  of a filter on the rows: ``ceil(fy * fx * C / P_in) * ceil(K / P_out)`` folds (*taps in rows*, at
  most as many as ours), and each fold fills and drains the array, ``2 * P_in + P_out - 2`` cycles
  (*filling*).  Its transfers are left out here: it counts them apart.
- ZigZag unrolls C and K as we do, so the array's cycles are equal.  It keeps sums and weights in
  the PEs and lets transfers run beside the array, so there are *stalls* where the SRAM's or the
  DMA's port is too narrow, and *first and last* transfers that nothing hides, instead of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from benchmarks.estimators.cases import Shape
from benchmarks.estimators.ours import Executed

__all__ = ["Difference", "scalesim_difference", "zigzag_difference"]


@dataclass(frozen=True)
class Difference:
    """The cycles of all layers on one design, ours and an estimator's.

    Attributes:
        pes: PEs over input channels, over output channels.
        ours: executed cycles.
        theirs: the estimator's.
        causes: cause -> cycles that it adds to the estimator's.
    """

    pes: tuple[int, int]
    ours: int
    theirs: int
    causes: dict[str, int]

    @property
    def percent(self) -> float:
        """The estimator's cycles relative to ours, in percent of ours."""
        return 100 * (self.theirs / self.ours - 1)

    @property
    def left_over(self) -> int:
        """Cycles that no cause explains."""
        return self.theirs - self.ours - sum(self.causes.values())


def scalesim_difference(
    pes: tuple[int, int], shapes: Sequence[Shape], ours: Sequence[Executed], theirs: Sequence[int]
) -> Difference:
    """Return the difference to SCALE-Sim, of computing alone."""
    rows, columns = pes
    taps = filling = 0
    for shape in shapes:
        pixels, wide = shape.oy * shape.ox, ceil(shape.K / columns)
        folds = ceil(shape.f * shape.f * shape.C / rows) * wide
        taps += pixels * (folds - shape.f * shape.f * ceil(shape.C / rows) * wide)
        filling += folds * (2 * rows + columns - 2) - 1
    causes = {"taps in rows": taps, "filling": filling}
    return Difference(pes, sum(each.computing for each in ours), sum(theirs), causes)


def zigzag_difference(
    pes: tuple[int, int], ours: Sequence[Executed], theirs: Sequence[Sequence[float]]
) -> Difference:
    """Return the difference to ZigZag, transfers included."""
    ideal, stalls, first, last = (round(sum(part)) for part in zip(*theirs, strict=True))
    computing = sum(each.computing for each in ours)
    transfers = sum(each.transfers for each in ours)
    causes = {
        "array": ideal - computing,
        "stalls": stalls,
        "first and last": first + last,
        "our transfers": -transfers,
    }
    return Difference(pes, computing + transfers, ideal + stalls + first + last, causes)
