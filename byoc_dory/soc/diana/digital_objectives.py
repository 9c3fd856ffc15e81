"""The tiling objectives of DIANA's digital core.

The array computes 16 output maps (K) by 16 output columns (ox) at a time, and the DMA needs one
command per contiguous piece: a tile of whole rows is one piece per channel, a tile of whole maps a
single piece.

alpha is 1, so weights are in bytes of L1.  A unit of any heuristic outweighs any additional memory
that a tile could use (`_UNIT`); whole rows come first, because a tiled x turns every row of every
channel into a separate DMA command.
"""

from __future__ import annotations

from collections.abc import Mapping

from byoc_dory.soc.diana.digital_core import DigitalCore
from byoc_dory.tiling.objectives import Fill, Heuristic, Objective, Size, Whole

# More than the bytes of L1 and weight memory together (320 000 B).
_UNIT = 400_000

# The paper's equations have the printed modulus, whatever the description says.
_PRINTED = 16

# HTVM paper III-B: only layers that do not fit are tiled.
_UNTILED = Heuristic(
    "untiled",
    Whole(("k", "y", "x")),
    1_000 * _UNIT,
    "a layer that fits L1 is not tiled (paper III-B)",
)

PAPER_PE = Objective(
    "paper-pe",
    (
        _UNTILED,
        Heuristic("Eq. 3", Fill("c", _PRINTED), _UNIT, "(C - 1) mod 16, as printed"),
        Heuristic("Eq. 4", Fill("ix", _PRINTED), _UNIT, "(ix - 1) mod 16, as printed"),
    ),
)

PAPER = Objective(
    "paper",
    (
        *PAPER_PE.heuristics,
        Heuristic("Eq. 5", Size("iy"), _UNIT, "iy, as printed"),
    ),
)

MEMORY = Objective("none")


def objectives_of(core: DigitalCore) -> Mapping[str, Objective]:
    """Return the objectives of a core by name."""
    return {entry.name: entry for entry in (_array(core), PAPER, PAPER_PE, MEMORY)}


def _array(core: DigitalCore) -> Objective:
    """Full rows and columns of the array, and long transfers."""
    return Objective(
        "array",
        (
            Heuristic(
                "fill rows of the array", Fill("k", core.lanes, whole_is_full=True), _UNIT,
                "output channels in multiples of 16 use all rows of the array; depthwise and add "
                "do not spread channels over it",
                scope="reducing",
            ),
            Heuristic(
                "fill columns of the array", Fill("x", core.columns, whole_is_full=True), _UNIT,
                "output columns in multiples of 16 use all columns of the array",
            ),
            Heuristic(
                "long DMA", Size("iy"), _UNIT,
                "data are C-y-x: more rows per tile are fewer and longer DMA commands",
            ),
            Heuristic(
                "whole maps", Whole(("y",)), 30 * _UNIT,
                "tiles of whole maps are contiguous over channels: one DMA command",
            ),
            Heuristic(
                # More than the rows and the filling of the largest images, so that whole rows come
                # first.
                "whole rows", Whole(("x",)), 1_000 * _UNIT,
                "tiles of whole rows are contiguous over rows: one DMA command per channel",
            ),
        ),
    )  # fmt: skip
