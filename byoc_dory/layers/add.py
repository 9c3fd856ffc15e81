"""`Add`: the element-wise sum of two or more tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from byoc_dory.layers.layer import INT8, Layer, Requant, Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Add(Layer):
    """``clip(requant(a + b))``, or more operands, of maps, vectors or matrices.

    Operands of different shapes are possible here; rules decide whether they are accepted.
    """

    op: ClassVar[str] = "add"

    @property
    def operands(self) -> int:
        """Number of operands: as many as there are inputs, at least two."""
        return max(2, len(self.inputs))

    @property
    def of_vectors(self) -> bool:
        """Whether the operands are vectors ``(K,)``."""
        return len(self.output.shape) == 1

    @property
    def C(self) -> int:
        """Input channels, equal to the output's."""
        return self.K

    @property
    def iy(self) -> int:
        """Height of the operands, equal to the output's."""
        return self.oy

    @property
    def ix(self) -> int:
        """Width of the operands, equal to the output's."""
        return self.ox

    macs: ClassVar[int] = 0
    """Always 0: there are no multiplications."""

    @property
    def shape_text(self) -> str:
        """The output's shape as text."""
        return "x".join(str(size) for size in self.output.shape)

    @property
    def sizes_text(self) -> str:
        """The output's sizes for tables."""
        return f"{self.K}x{self.oy}x{self.ox}"

    def _check(self) -> None:
        pass


def add_layer(
    name: str,
    a: Tensor,
    b: Tensor,
    output: str,
    *,
    requant: Requant,
    clip: tuple[int, int] = INT8,
) -> Add:
    """Return the element-wise sum of two tensors of the same shape."""
    return Add(name=name, inputs=(a, b), output=Tensor(output, a.shape), requant=requant, clip=clip)
