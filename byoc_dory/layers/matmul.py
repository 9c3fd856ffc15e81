"""`Matmul`: the product of two activations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from byoc_dory.layers.layer import INT8, Layer, Requant, Tensor
from byoc_dory.layers.tensor import matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class Matmul(Layer):
    """``a b``, requantized and clipped, for one or several pairs of matrices.

    ``a`` is ``(C, batch * M, 1)``, M rows per matrix; the second operand is ``(K, batch * C, 1)``.

    Attributes:
        batch: number of pairs of matrices, one after another in memory.
        transposed: whether the second operand is stored transposed, as ``(C, batch * K, 1)``.
    """

    batch: int = 1
    transposed: bool = False

    of_matrices: ClassVar[bool] = True
    op: ClassVar[str] = "matmul"

    operands: ClassVar[int] = 2
    """Two: both matrices are activations."""

    @property
    def rows(self) -> int:
        """Number of rows of the first operand in each pair."""
        return self.oy // self.batch

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all pairs."""
        return self.K * self.C * self.oy

    @property
    def shape_text(self) -> str:
        """Number of pairs and sizes of both matrices as text."""
        several = f"{self.batch} of " if self.batch > 1 else ""
        return f"{several}{self.rows}x{self.C} times {self.C}x{self.K}"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes, number of pairs and order of the second operand, which determine the cycles."""
        return (*super().geometry, self.batch, self.transposed)

    def _check(self) -> None:
        if self.batch < 1 or self.oy % self.batch:
            raise self._error(f"{self.oy} rows are not those of {self.batch} matrices")
        self._check_shape(self.output, (self.K, self.iy, 1))
        self._check_shape(self.inputs[0], (self.C, self.iy, 1))
        second = (self.K, self.batch * self.C, 1)
        if self.transposed:
            second = (self.C, self.batch * self.K, 1)
        self._check_shape(self.inputs[1], second)


def matmul_layer(
    name: str,
    a: Tensor,
    b: Tensor,
    *,
    requant: Requant,
    clip: tuple[int, int] = INT8,
    transposed: bool = False,
    batch: int = 1,
    dtype: str = "int8",
) -> Matmul:
    """``a`` (``batch`` matrices of M rows of C) times ``b``; ``transposed``: b has rows of C.

    Operands may also be given as ``(columns, batch, rows)``.
    """
    channels = a.shape[0]
    height = a.elements // channels
    k = b.elements // channels // batch
    second = (channels, batch * k, 1) if transposed else (k, batch * channels, 1)
    return Matmul(
        name=name, inputs=(replace(a, shape=(channels, height, 1)), replace(b, shape=second)),
        output=matrix(name, height, k, dtype), requant=requant, clip=clip, batch=batch,
        transposed=transposed,
    )  # fmt: skip
