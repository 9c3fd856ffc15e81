"""`Move` and `Filling`: what operators that only move elements have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from byoc_dory.layers import Array
from patterns.op import Op, Range, Scale, Work, union

__all__ = ["Filling", "Move", "y_axis"]


def y_axis(layout: str) -> int:
    """The axis of the rows of maps in ``"NHWC"`` or ``"NCHW"``; that of the columns follows."""
    return layout.index("H")


@dataclass(frozen=True, eq=False)
class Move(Op):
    """Base of operators whose results are some of their inputs' elements."""

    work = Work.MOVE
    scale = Scale.PASSES

    @abstractmethod
    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        """What happens to arrays of any element type, in the layout of the operator's tensors.

        Run on the numbers of elements, it tells which element goes where.

        Args:
            parts: one array for each input, of its shape.
            fill: what stands in places that no element goes to.
        """

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: what the inputs span."""
        return union(inputs)


@dataclass(frozen=True, eq=False)
class Filling(Move):
    """Base of moves whose results hold a constant, too.

    Attributes:
        value: the constant, usually the zero point.
    """

    value: int

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: what the inputs and the constant span."""
        return union([*inputs, (self.value, self.value)])
