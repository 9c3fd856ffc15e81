"""Layers of matrices: products, functions of rows, sums and products by elements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeVar

import numpy as np

from byoc_dory.layers.layer import INT8, Array, Layer, MulShift, Requant, Shift, Tensor, matrix
from byoc_dory.layers.maps import Weighted
from byoc_dory.layers.rowwise import RowFunction, TableMap

LayerT = TypeVar("LayerT", bound=Layer)


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


def rounded_half_up(layer: LayerT) -> LayerT:
    """Return a product that is shifted alone with half a step as its addend, others unchanged.

    A `Shift` floors, with half a step among the biases, and some accelerators add the half
    themselves.
    """
    if not isinstance(layer, Gemm) or not isinstance(layer.requant, Shift):
        return layer
    shift = layer.requant.shift
    if shift > 31:
        return layer
    half = (1 << shift) >> 1
    bias = np.zeros(layer.K, np.int32) if layer.bias is None else layer.bias
    # What leaves 32 bits here leaves an accelerator's biases of 24 bits, even if it wraps.
    bias = bias - np.int32(half)
    return replace(layer, bias=bias, requant=MulShift((1,), (shift,), (half,)))


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
