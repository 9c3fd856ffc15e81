"""How the layers of a region are executed: their tiles, and where everything lies in L1."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.tiling.problem import Solution

if TYPE_CHECKING:
    from byoc_dory.layers import Layer
    from byoc_dory.tiling.problem import TilingProblem

__all__ = ["LayerPlan", "PlacedBuffer", "RegionPlan", "alone"]


@dataclass(frozen=True)
class LayerPlan:
    """What planning decides about one layer; scheduling and emission follow it.

    A resident tensor stays in L1, whole, in the accelerator's layout, between the layer that
    writes it and those that read it; only layers whose rows and columns are untiled may have any.

    Attributes:
        accelerator: name of the accelerator that runs the layer.
        solution: the tile, with what the solver says about it.
        buffers: how many tiles of each tensor that is not resident L1 holds at a time: 1, or 2 so
            that transfers run beside the accelerator.
        resident_inputs: for each operand, whether it already is in L1.
        resident_output: whether the result stays in L1 (it then is not stored to L2).
        l1_inputs: byte offset in L1 of each operand: of the whole tensor if resident, else of its
            first tile buffer; the others follow it directly.  A tensor of which only one tile is
            moved has one buffer.
        l1_output: the same of the result.
        l1_weights: the same of the weights, where they lie in L1; scratch follows them.
        input_buffers: how many tiles of operands L1 holds, where it is not ``buffers``; else 0.
    """

    accelerator: str
    solution: Solution
    buffers: int
    resident_inputs: tuple[bool, ...]
    resident_output: bool
    l1_inputs: tuple[int, ...]
    l1_output: int
    l1_weights: int = 0
    input_buffers: int = 0


@dataclass(frozen=True)
class PlacedBuffer:
    """Bytes of L1 and the layers during which they are taken.

    Attributes:
        tensor: name of the tensor whose tiles, or all of it, lie there.
        offset: of the first byte, in bytes.
        bytes: of all its tile buffers together, or of the whole tensor.
        first, last: indices of the first and the last layer of the region, both inclusive.
        resident: whether it is the whole tensor, which stays between layers.
    """

    tensor: str
    offset: int
    bytes: int
    first: int
    last: int
    resident: bool


@dataclass(frozen=True)
class RegionPlan:
    """The plans of all layers of a region, and how good they are together.

    Attributes:
        layers: in execution order.
        resident: names of the tensors that stay in L1, in the order in which they are written.
        l1_limit: bytes of L1 there are.
        l1_peak: bytes that are used.
        l1_live: largest sum of what is in L1 at a time: no placement needs less.
        l1_used: for each layer, bytes in L1 while it runs.
        cycles: predicted for all layers.
        apart: predicted for the best plan of each layer alone, nothing resident.
        bound: no plan made of the same tiles has fewer cycles.
        method: what found the plan.
        l1_map: what lies where in L1, and when.
    """

    layers: tuple[LayerPlan, ...]
    resident: tuple[str, ...]
    l1_limit: int
    l1_peak: int
    l1_live: int
    l1_used: tuple[int, ...]
    cycles: int
    apart: int
    bound: int
    method: str
    l1_map: tuple[PlacedBuffer, ...] = ()

    @property
    def gap(self) -> float:
        """By which part of the cycles another plan could at most be quicker; 0 is optimal."""
        return (self.cycles - self.bound) / self.cycles if self.cycles else 0.0


def alone(
    layer: Layer, solution: Solution, accelerator: str, problem: TilingProblem | None = None
) -> LayerPlan:
    """The plan of a layer that has L1 for itself, single-buffered, nothing resident.

    ``problem`` says what else is in L1 where that is not only a tile of each operand and of the
    result.
    """
    operands = len(layer.inputs)
    further = () if problem is None else problem.fixed.operands
    tiled = operands - len(further)
    sizes = [solution.l1_in // tiled] * tiled + [_aligned(size) for size in further]
    ends = list(itertools.accumulate(sizes))
    return LayerPlan(
        accelerator=accelerator,
        solution=solution,
        buffers=1,
        resident_inputs=(False,) * operands,
        resident_output=False,
        l1_inputs=(0, *ends[:-1]),
        l1_output=ends[-1],
        l1_weights=_aligned(ends[-1] + solution.l1_out),
    )


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
