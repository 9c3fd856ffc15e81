"""A layer's use of L1, per tensor.

While a result that stays in L1 is being written, the accelerator may overwrite maps behind it
(`Tensors.surplus`).
"""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.base import round_up
from byoc_dory.tiling import Tile, TilingProblem


@dataclass(frozen=True)
class Tensors:
    """A layer's use of L1 per tensor, in bytes, aligned.

    Attributes:
        inputs: bytes of the buffers of each operand; 0 if it is resident.
        output: bytes of the buffers of the result; 0 if it is resident.
        weights: bytes of the buffers of the weights, if they are in L1, and scratch.
        surplus: bytes after a resident result that are overwritten with it.
    """

    inputs: tuple[int, ...]
    output: int
    weights: int
    surplus: int

    @property
    def bytes(self) -> int:
        """Sum of all bytes."""
        return sum(self.inputs) + self.output + self.weights + self.surplus


def tensors_in_l1(
    problem: TilingProblem,
    tile: Tile,
    buffers: int,
    resident_inputs: tuple[bool, ...],
    resident_output: bool,
    loop_order: str,
    input_buffers: int = 0,
) -> Tensors:
    """Return a layer's use of L1 with this tile and these residents.

    A tensor of which only one tile is moved has a single buffer.  ``input_buffers`` is the number
    of buffers of operands, if other than ``buffers``.
    """
    one_in, one_out, one_weights = problem.memory(tile)
    channels = -(-problem.k.size // tile.k)
    rows = -(-problem.y.size // tile.y)
    columns = -(-problem.x.size // tile.x)
    tiles = channels * rows * columns
    loads = rows * columns
    if problem.channels_follow_k or (loop_order == "kyx" and loads > 1):
        loads = tiles
    operand = min(input_buffers or buffers, loads) * one_in // problem.copies
    operands = (operand,) * problem.copies + problem.fixed.operands
    weights = min(buffers, channels) * one_weights if problem.weights.in_l1 else 0
    return Tensors(
        tuple(
            [
                0 if resident else round_up(size, ALIGNMENT)
                for size, resident in zip(operands, resident_inputs, strict=True)
            ]
        ),
        0 if resident_output else round_up(min(buffers, tiles) * one_out, ALIGNMENT),
        round_up(weights + problem.scratch_bytes(tile.x), ALIGNMENT),
        _surplus(problem, tile) if resident_output else 0,
    )


def _surplus(problem: TilingProblem, tile: Tile) -> int:
    """The bytes after a whole result that are written with its last channels, or hold its sums."""
    starts = range(0, problem.k.size, tile.k)
    whole = round_up(problem.k.size * _map_bytes(problem), ALIGNMENT)
    ends = (
        start
        + round_up(min(tile.k, problem.k.size - start), problem.rounding.k)
        + problem.rounding.extra_maps
        for start in starts
    )
    maps = max(0, max(ends) * _map_bytes(problem) - whole)
    sums = problem.sums * round_up(tile.k, problem.rounding.k) * _map_bytes(problem)
    return round_up(maps, ALIGNMENT) + round_up(sums, ALIGNMENT)


def _map_bytes(problem: TilingProblem) -> int:
    return round_up(problem.y.size, problem.rounding.y) * round_up(
        problem.x.size, problem.rounding.x
    )
