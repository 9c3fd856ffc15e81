"""`Gemm`: the product of a matrix with constant weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from byoc_dory.layers.layer import INT8, Requant, Tensor
from byoc_dory.layers.rowwise import RowFunction
from byoc_dory.layers.tensor import Array, matrix
from byoc_dory.layers.weighted import Weighted


@dataclass(frozen=True, eq=False, kw_only=True)
class Gemm(Weighted):
    """``x W' + bias``, requantized and clipped, followed by ``function`` if there is one.

    ``x`` has M rows of C elements, as a tensor ``(C, M, 1)``; the weight is ``[K, C, 1, 1]``.

    Attributes:
        function: activation applied to the result's elements, or ``None``.
        transposed: whether the result is stored as ``(M, K, 1)``, column by column.
    """

    function: RowFunction | None = None
    transposed: bool = False

    of_matrices: ClassVar[bool] = True
    op: ClassVar[str] = "gemm"

    @property
    def oy(self) -> int:
        """Rows of the product."""
        return self.iy

    @property
    def shape_text(self) -> str:
        """Sizes of both matrices as text."""
        return f"{self.oy}x{self.C} times {self.C}x{self.K}"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes, order of the result and kind of activation, which determine the cycles."""
        return (*super().geometry, self.transposed, type(self.function))

    def _check(self) -> None:
        self._check_weight()
        if self.weight.shape[2:] != (1, 1):
            raise self._error(f"a kernel of {self.weight.shape[2]}x{self.weight.shape[3]}")
        rows, columns = (self.K, self.oy) if self.transposed else (self.oy, self.K)
        self._check_shape(self.output, (columns, rows, 1))
        self._check_shape(self.inputs[0], (self.C, self.iy, 1))


def gemm_layer(
    name: str,
    source: Tensor,
    weight: Array,
    bias: Array | None,
    *,
    requant: Requant,
    clip: tuple[int, int] = INT8,
    function: RowFunction | None = None,
    transposed: bool = False,
    dtype: str = "int8",
) -> Gemm:
    """``source`` (M rows of C) times ``weight`` ``[K, C]``; the result has the layer's name."""
    channels, rows, _ = source.shape
    k = weight.shape[0]
    output = matrix(name, k, rows, dtype) if transposed else matrix(name, rows, k, dtype)
    return Gemm(
        name=name, inputs=(source,), output=output, weight=weight.reshape(k, channels, 1, 1),
        bias=bias, requant=requant, clip=clip, function=function, transposed=transposed,
    )  # fmt: skip
