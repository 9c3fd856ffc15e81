"""`TileProgram`: how one layer is executed tile by tile, as one value.

An accelerator's author says along which axes a layer is tiled, what a tile of each operand is (an
offset in L2, a block to move, a place in L1), what is computed of it, and in which order things
happen (`byoc_dory.tileloop.pipeline`).  Everything else follows: when an operand is loaded again
(`TileLoop.depth`), the sequence of steps (`unroll`), the predicted cycles (`cycles`), the bytes
that move (`traffic`), which tile an element belongs to (`elements`), and the C
(`byoc_dory.emit.staged`).
"""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.tileloop.checks import check
from byoc_dory.tileloop.loop import BlockOf, Compute, Operand, Tile, TileLoop

__all__ = ["BlockOf", "Compute", "Operand", "Tile", "TileProgram"]


@dataclass(frozen=True)
class TileProgram(TileLoop):
    """A tile loop that does what one must.

    Raises:
        TileProgramError: the loop contradicts itself: an operand is never loaded, or nothing reads
            it; tiles overwrite each other; a buffer is stored while it is written; a value depends
            on an axis that there is not.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self)
