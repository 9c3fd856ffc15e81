"""`Move` and `Filling`: the bases of operators that only move elements."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from byoc_dory.layers import Array
from patterns.op import Op, Range, Scale, Work, union


def y_axis(layout: str) -> int:
    """The axis of the rows of maps in ``"NHWC"`` or ``"NCHW"``; the columns are the next axis."""
    return layout.index("H")


@dataclass(frozen=True, eq=False)
class Move(Op):
    """Base of operators that only move elements of their inputs."""

    work = Work.MOVE
    scale = Scale.PASSES

    @abstractmethod
    def moved(self, parts: Sequence[Array], fill: int) -> Array:
        """Arrays of any element type after the move, in the layout of the operator's tensors.

        Run on element indices, it tells which element goes where.

        Args:
            parts: one array per input, with the input's shape.
            fill: value for places that no element is moved to.
        """

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: the union of the inputs' ranges."""
        return union(inputs)


@dataclass(frozen=True, eq=False)
class Filling(Move):
    """Base of moves whose results also contain a constant.

    Attributes:
        value: the constant, usually the zero point.
    """

    value: int

    @property
    def special(self) -> str:
        return f" with {self.value}"

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: the union of the inputs' ranges and the constant."""
        return union([*inputs, (self.value, self.value)])
