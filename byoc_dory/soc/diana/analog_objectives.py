"""The tiling objectives of DIANA's analog core.

A position costs the same for 1 as for 512 output channels, and every tile loads its weights again,
so few tiles with many channels are best.  Otherwise they are like those of the digital core
(`digital_objectives`).
"""

from __future__ import annotations

from collections.abc import Mapping

from byoc_dory.soc.diana.analog_core import AnalogCore
from byoc_dory.soc.diana.digital_objectives import MEMORY
from byoc_dory.tiling.objectives import Fill, Heuristic, Objective, Size, Whole

# More than the bytes of L1 and the array together.
_UNIT = 800_000

_MAPS = (
    Heuristic(
        "long DMA", Size("iy"), _UNIT,
        "data are C-y-x: more rows per tile are fewer and longer DMA commands",
    ),
    Heuristic(
        "whole maps", Whole(("y",)), 30 * _UNIT,
        "tiles of whole maps are contiguous over channels: one DMA command",
    ),
    Heuristic(
        "whole rows", Whole(("x",)), 100 * _UNIT,
        "tiles of whole rows are contiguous over rows: one DMA command per channel",
    ),
)  # fmt: skip

ARRAY = Objective(
    "array",
    (
        Heuristic(
            "all columns of the array", Size("k"), _UNIT,
            "a position costs the same however many output channels there are",
        ),
        *_MAPS,
    ),
)  # fmt: skip


def objectives_of(core: AnalogCore) -> Mapping[str, Objective]:
    """Return the objectives of a core by name."""
    paper = _paper(core)
    # Heuristics that the paper's equations omit do not apply to this core.
    return {ARRAY.name: ARRAY, paper.name: paper, "paper-pe": paper, MEMORY.name: MEMORY}


def _paper(core: AnalogCore) -> Objective:
    """Return the objective of DORY's tiler for this core.

    Public code: 10^8 for each of (K - 1) mod 512 and (C - 1) mod 128; a layer that fits is not
    tiled (HTVM paper III-B).  The paper's equations are for the digital core.
    """
    return Objective(
        "paper",
        (
            Heuristic("untiled", Whole(("k", "y", "x")), 1_000 * _UNIT, "what fits is not tiled"),
            Heuristic("columns", Fill("k", core.columns), _UNIT, "(K - 1) mod 512, as in DORY"),
            Heuristic(
                "channels", Fill("c", core.column_step), _UNIT, "(C - 1) mod 128, as in DORY"
            ),
        ),
    )
