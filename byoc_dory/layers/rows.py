"""`Rows`: a function applied to each row of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from byoc_dory.layers.layer import Layer, Requant, Shift, Tensor
from byoc_dory.layers.rowwise import RowFunction
from byoc_dory.layers.tensor import matrix


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows(Layer):
    """``function`` of each row of a matrix ``(K, M, 1)``; the function includes its requantization.

    Attributes:
        function: a function from `byoc_dory.layers.rowwise`.
    """

    function: RowFunction
    requant: Requant = Shift(0)

    of_matrices: ClassVar[bool] = True
    op: ClassVar[str] = "rows"

    macs: ClassVar[int] = 0
    """Always 0: multiplications inside the function are not counted."""

    @property
    def shape_text(self) -> str:
        """The output's shape as text."""
        return "x".join(str(size) for size in self.output.shape)

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes and kind of function, which determine the cycles."""
        return (*super().geometry, type(self.function))

    def _check(self) -> None:
        self._check_shape(self.output, (self.K, self.oy, self.ox))
        self._check_shape(self.inputs[0], (self.K, self.oy, self.ox))


def rows_layer(name: str, source: Tensor, function: RowFunction, dtype: str = "int8") -> Rows:
    """Return ``function`` applied to each row of ``source`` (M rows of K)."""
    k, rows, _ = source.shape
    return Rows(name=name, inputs=(source,), output=matrix(name, rows, k, dtype), function=function)
