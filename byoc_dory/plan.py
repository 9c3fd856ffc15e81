"""`LayerPlan`: how one layer of a region is executed: its tile, and where that lies in L1."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_dory.tiling.problem import Solution

__all__ = ["LayerPlan"]


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
            first tile buffer; the others follow it directly.
        l1_output: the same of the result.
    """

    accelerator: str
    solution: Solution
    buffers: int
    resident_inputs: tuple[bool, ...]
    resident_output: bool
    l1_inputs: tuple[int, ...]
    l1_output: int
