"""`MultiHeadAttention`: multi-head attention as one operator.

Matrices are stored row by row: S queries or keys with E embedded or P projected values.  For each
head::

    Q = requant(x Wq' + bq)   K = requant(x Wk' + bk)   V = requant(x Wv' + bv)      int8
    A = softmax(requant(Q K'))                                                       uint8
    O = requant(A V)                                                                 int8

and then either one product with all heads side by side, ``y = requant(O Wo' + bo)`` (``joined``),
or, as published for the Integer Transformer Accelerator, one product per head with int8 results
that are added: ``y = accumulate(sum_h requant_h(O_h Wo_h' + bo_h))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from byoc_dory.errors import ModelError
from byoc_dory.layers.layer import Layer, Requant, Shift
from byoc_dory.layers.rowwise import ItaSoftmax
from byoc_dory.layers.tensor import Array, Tensor, matrix


@dataclass(frozen=True, eq=False)
class Projection:
    """A product with constant weights and its requantization.

    Attributes:
        weight: int8 [K, C].
        bias: int32 [K].
        mul, shift, add: the numbers in ``clip((acc * mul + add) >> shift)`` to int8.
    """

    weight: Array
    bias: Array
    mul: int
    shift: int
    add: int


@dataclass(frozen=True)
class Scores:
    """The steps around Q K' and A V; each requantization is ``clip((acc * mul + add) >> shift)``.

    Attributes:
        scores: (mul, shift, add) for Q K'.
        softmax: softmax of the rows of the requantized scores.
        context: (mul, shift, add) for A V.
    """

    scores: tuple[int, int, int]
    softmax: ItaSoftmax
    context: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Attention:
    """The heads of a multi-head attention.

    Attributes:
        query, key, value: one projection per head, with weight [P, E].
        scores: the scores, the same for all heads.
        output: one projection per head, with weight [E, P]; or a single one, [E, heads * P]
            (``joined``).
        accumulate: (mul, shift, add) for the sum of the heads' results; None if ``joined``.

    Raises:
        ModelError: the parts do not fit together.
    """

    query: tuple[Projection, ...]
    key: tuple[Projection, ...]
    value: tuple[Projection, ...]
    scores: Scores
    output: tuple[Projection, ...]
    accumulate: tuple[int, int, int] | None

    def __post_init__(self) -> None:
        heads = len(self.query)
        if not heads or not heads == len(self.key) == len(self.value):
            raise ModelError(
                f"{heads} query, {len(self.key)} key and {len(self.value)} value heads",
                where="an attention",
            )
        wanted = 1 if self.joined else heads
        if len(self.output) != wanted:
            raise ModelError(
                f"{len(self.output)} output products for {heads} heads", where="an attention"
            )

    @property
    def heads(self) -> int:
        """Number of heads."""
        return len(self.query)

    @property
    def head_size(self) -> int:
        """P, the number of columns of a head."""
        return int(self.query[0].weight.shape[0])

    @property
    def joined(self) -> bool:
        """Whether one product takes all heads side by side."""
        return self.accumulate is None

    def macs(self, rows: int) -> int:
        """Return the multiply-accumulates for this many queries and as many keys."""
        products = (*self.query, *self.key, *self.value, *self.output)
        constant = sum(int(product.weight.size) for product in products)
        return rows * (constant + 2 * self.heads * rows * self.head_size)


@dataclass(frozen=True, eq=False, kw_only=True)
class MultiHeadAttention(Layer):
    """``attention`` of one matrix, S rows of E, as a tensor ``(E, S, 1)``.

    Attributes:
        attention: the heads, their products and requantizations.
    """

    attention: Attention
    requant: Requant = Shift(0)

    of_matrices: ClassVar[bool] = True
    op: ClassVar[str] = "mha"

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all products."""
        return self.attention.macs(self.oy)

    @property
    def shape_text(self) -> str:
        """Size of the matrix, number of heads and their size, as text."""
        return f"{self.oy}x{self.C}, {self.attention.heads} heads of {self.attention.head_size}"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes, number of heads and their size, which determine the cycles."""
        attention = self.attention
        return (*super().geometry, attention.heads, attention.head_size, attention.joined)

    def _check(self) -> None:
        self._check_shape(self.output, (self.K, self.iy, 1))
        self._check_shape(self.inputs[0], (self.C, self.iy, 1))


def mha_layer(name: str, source: Tensor, attention: Attention) -> MultiHeadAttention:
    """Return multi-head attention of ``source`` (S rows of E)."""
    _, rows, _ = source.shape
    k = attention.output[0].weight.shape[0]
    return MultiHeadAttention(
        name=name, inputs=(source,), output=matrix(name, rows, k), attention=attention
    )
