"""`Combination`: sums and products of two tensors by elements, behind functions of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from byoc_dory.layers.layer import INT8, Layer, Requant, Tensor
from byoc_dory.layers.rowwise import TableMap


@dataclass(frozen=True, eq=False, kw_only=True)
class Combination(Layer):
    """``requant(f(a) + g(b))`` or ``requant(f(a) * g(b))`` of two tensors ``(K, M, 1)``; int8.

    Attributes:
        function: ``"add"`` or ``"multiply"``.
        tables: f and g; ``None`` for the operand itself.
    """

    function: Literal["add", "multiply"]
    tables: tuple[TableMap | None, TableMap | None] = (None, None)

    of_matrices: ClassVar[bool] = True

    @property
    def op(self) -> str:
        """The name in reports, ``add`` or ``multiply``."""
        return self.function

    operands: ClassVar[int] = 2
    """Two."""

    macs: ClassVar[int] = 0
    """Always 0: products of two elements are not counted."""

    @property
    def shape_text(self) -> str:
        """The output's shape as text, and which operands have a function."""
        tables = sum(table is not None for table in self.tables)
        behind = f", {tables} behind a table" if tables else ""
        return "x".join(str(size) for size in self.output.shape) + behind

    @property
    def sizes_text(self) -> str:
        """The output's sizes for tables."""
        return f"{self.K}x{self.oy}x{self.ox}"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes, function, and which operands have a table, which determine the cycles."""
        return (*super().geometry, self.function, *(table is None for table in self.tables))

    def _check(self) -> None:
        for tensor in self.inputs:
            self._check_shape(tensor, self.output.shape)


def combination_layer(
    name: str,
    a: Tensor,
    b: Tensor,
    function: Literal["add", "multiply"],
    tables: tuple[TableMap | None, TableMap | None] = (None, None),
    *,
    requant: Requant,
    clip: tuple[int, int] = INT8,
) -> Combination:
    """Return the layer; ``a`` and ``b`` are matrices of one shape, which is the result's."""
    output = Tensor(name, a.shape, "int8", a.layout)
    return Combination(
        name=name, inputs=(a, b), output=output, function=function, tables=tables,
        requant=requant, clip=clip,
    )  # fmt: skip
