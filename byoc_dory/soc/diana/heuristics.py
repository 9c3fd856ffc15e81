"""What makes a good tile on DIANA's digital core, as named objectives.

The array computes 16 output maps (K) by 16 output columns (ox) at a time, and the DMA needs one
command per contiguous piece.  Weights are in bytes of L1 (alpha is 1): they rank the terms, and
each dominates what the terms below it can gain.
"""

from __future__ import annotations

from byoc_dory.tiling.objectives import Fill, Heuristic, Objective, Size, Whole

__all__ = ["ARRAY", "MEMORY", "OBJECTIVES", "PAPER", "PAPER_PE", "objective"]

_ARRAY = 16

# HTVM paper III-B: tiling is for layers that do not fit.  Larger than all other terms together.
_UNTILED = Heuristic(
    "untiled", Whole(("k", "y", "x")), 10**9, "a layer that fits L1 is not tiled (paper III-B)"
)

ARRAY = Objective(
    "array",
    (
        Heuristic(
            "fill rows of the array", Fill("k", _ARRAY, whole_is_full=True), 10**6,
            "output channels in multiples of 16 use all rows of the array",
        ),
        Heuristic(
            "fill columns of the array", Fill("x", _ARRAY, whole_is_full=True), 10**6,
            "output columns in multiples of 16 use all columns of the array",
        ),
        Heuristic(
            "contiguous DMA", Size("iy"), 10**6,
            "with C-y-x data more rows per tile are fewer and longer DMA commands",
        ),
    ),
)  # fmt: skip

PAPER_PE = Objective(
    "paper-pe",
    (
        _UNTILED,
        Heuristic("Eq. 3", Fill("c", _ARRAY), 10**6, "(C - 1) mod 16, as printed"),
        Heuristic("Eq. 4", Fill("ix", _ARRAY), 10**6, "(ix - 1) mod 16, as printed"),
    ),
)

PAPER = Objective(
    "paper",
    (
        *PAPER_PE.heuristics,
        Heuristic("Eq. 5", Size("iy"), 10**6, "iy, as printed"),
    ),
)

MEMORY = Objective("none")

OBJECTIVES = {entry.name: entry for entry in (ARRAY, PAPER, PAPER_PE, MEMORY)}


def objective(name: str) -> Objective:
    """The objective of that name.

    Raises:
        KeyError: there is none.
    """
    return OBJECTIVES[name]
