"""Attention as one layer: multi-head, its heads alone, and over given keys and values.

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

from dataclasses import dataclass, replace
from typing import ClassVar

from byoc_dory.errors import ModelError
from byoc_dory.layers.layer import INT8, Array, Layer, Requant, Shift, Tensor, matrix
from byoc_dory.layers.rowwise import ItaSoftmax, TableMap, TableSoftmax


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Attend(Layer):
    """Scores, softmax and context of query ``(C, M, 1)``, key ``(C, N, 1)``, value ``(N, K, 1)``.

    The value is transposed: its rows are the columns of the result.

    Attributes:
        scores: requantizations and softmax of the scores.
        heads: number of heads, which are side by side, with ``K / heads`` columns each.
    """

    scores: Scores
    heads: int = 1
    requant: Requant = Shift(0)

    of_matrices: ClassVar[bool] = True
    op: ClassVar[str] = "attend"

    operands: ClassVar[int] = 3
    """Three: query, key and value."""

    @property
    def keys(self) -> int:
        """N, the number of rows of the key."""
        return self.inputs[1].shape[1]

    @property
    def head_size(self) -> int:
        """Number of columns of a head."""
        return self.K // self.heads

    @property
    def macs(self) -> int:
        """Multiply-accumulates of both products."""
        return self.oy * self.keys * (self.C + self.K)

    @property
    def shape_text(self) -> str:
        """Numbers of queries and keys, and head size, as text."""
        return f"{self.oy} queries, {self.keys} keys, head size {self.C}"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes and number of heads, which determine the cycles."""
        return (*super().geometry, self.heads)

    def _check(self) -> None:
        if self.heads < 1 or self.C % self.heads or self.K % self.heads:
            raise self._error(f"{self.heads} heads do not divide C={self.C} and K={self.K}")
        self._check_shape(self.output, (self.K, self.iy, 1))
        self._check_shape(self.inputs[0], (self.C, self.iy, 1))
        self._check_shape(self.inputs[1], (self.C, self.keys, 1))
        self._check_shape(self.inputs[2], (self.keys, self.K, 1))


def attend_layer(
    name: str, query: Tensor, key: Tensor, value: Tensor, scores: Scores, heads: int = 1
) -> Attend:
    """Return heads of query (M rows of P), key (N rows of P) and transposed value (P rows of N)."""
    _, rows, _ = query.shape
    k = value.shape[1]
    return Attend(
        name=name, inputs=(query, key, value), output=matrix(name, rows, k), scores=scores,
        heads=heads,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Weighing:
    """The steps from products of queries and keys to the weights of the values.

    ``s = clip((product * mul + add) >> shift)``, then ``m = clip(((before[s] + mask[x]) * mul +
    add) >> shift)`` of each position's mask x, with the numbers of ``masked``, and finally
    ``after[softmax(m)]``.

    Attributes:
        scores: mul, add and shift of the products.
        scores_clip: inclusive range of the scores.
        before: function of a score.
        mask: function of a position's mask.
        masked: mul, add and shift of the sum of both.
        masked_clip: inclusive range of its result.
        softmax: softmax of the masked scores of a query.
        after: function of its results; int8.
    """

    scores: tuple[int, int, int]
    scores_clip: tuple[int, int]
    before: TableMap
    mask: TableMap
    masked: tuple[int, int, int]
    masked_clip: tuple[int, int]
    softmax: TableSoftmax
    after: TableMap


@dataclass(frozen=True)
class AttentionOperands:
    """The tensors that an attention reads, all int8: H heads of P elements, T queries.

    Attributes:
        keys, values: H matrices of L or N rows of P, one after another.
        query: H matrices of T rows of P.
        mask: T rows of N, or one of N for all queries.
        key, value: the last row of each head, H rows of P, if they are not in ``keys`` and
            ``values``; N is then L + 1.
    """

    keys: Tensor
    values: Tensor
    query: Tensor
    mask: Tensor
    key: Tensor | None = None
    value: Tensor | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class CachedAttention(Layer):
    """Context of queries: keys ``(P, H * L, 1)``, values, query ``(P, H * T, 1)``, mask ``(N, T)``.

    ``requant(sum over n of weights[t][n] * values[n])`` for each head and query.  The inputs are
    keys, values, query and mask, and then, if they are not part of the cache, the key and value of
    the last position, ``(P, H, 1)``.

    Attributes:
        heads: number of heads, H.
        weighing: from products to weights.
    """

    heads: int
    weighing: Weighing

    of_matrices: ClassVar[bool] = True
    op: ClassVar[str] = "attention"

    @property
    def operands(self) -> int:
        """Six if the last position is apart from the others, else four."""
        return 6 if self.apart else 4

    @property
    def apart(self) -> bool:
        """Whether key and value of the last position are tensors of their own."""
        return len(self.inputs) == 6

    @property
    def cached(self) -> int:
        """L, the number of rows of a head's keys."""
        return self.inputs[0].elements // (self.C * self.heads)

    @property
    def positions(self) -> int:
        """N, the number of positions that a query attends to."""
        return self.cached + self.apart

    @property
    def queries(self) -> int:
        """T, the number of queries."""
        return self.inputs[2].elements // (self.C * self.heads)

    @property
    def masks(self) -> int:
        """Number of rows of the mask, T or 1."""
        return -(-self.inputs[3].elements // self.positions)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of both products."""
        return 2 * self.heads * self.queries * self.positions * self.C

    @property
    def shape_text(self) -> str:
        """Numbers of heads, queries and positions, and the size of a head, as text."""
        queries = f"{self.queries} queries" if self.queries > 1 else "a query"
        return f"{self.heads} heads of {self.C}, {queries} over {self.positions} positions"

    @property
    def sizes_text(self) -> str:
        """The same for tables."""
        return f"{self.heads}x{self.queries}x{self.C} over {self.positions}"

    @property
    def geometry(self) -> tuple[object, ...]:
        """Shapes and number of heads, which determine the cycles."""
        return (*super().geometry, self.heads)

    def _check(self) -> None:
        if self.heads < 1 or self.inputs[0].elements % (self.C * self.heads):
            raise self._error(f"{self.heads} heads do not divide the keys")
        shapes = [(self.C, self.heads * self.cached, 1)] * 2
        shapes += [(self.C, self.heads * self.queries, 1)]
        shapes += [(self.positions, self.masks, 1)]
        shapes += [(self.C, self.heads, 1)] * 2 * self.apart
        for tensor, shape in zip(self.inputs, shapes, strict=True):
            self._check_shape(tensor, shape)
        self._check_shape(self.output, shapes[2])
        if self.masks not in (1, self.queries):
            raise self._error(f"{self.masks} rows of the mask for {self.queries} queries")


def cached_attention_layer(
    name: str,
    operands: AttentionOperands,
    heads: int,
    weighing: Weighing,
    *,
    requant: Requant,
    clip: tuple[int, int] = INT8,
) -> CachedAttention:
    """Return the layer; the tensors may have any axes, in the order of `AttentionOperands`."""
    size = operands.query.shape[0]

    def rows(tensor: Tensor, columns: int = size) -> Tensor:
        return replace(tensor, shape=(columns, tensor.elements // columns, 1))

    apart = [rows(each) for each in (operands.key, operands.value) if each is not None]
    positions = operands.keys.elements // (size * heads) + (1 if apart else 0)
    query = rows(operands.query)
    inputs = (
        rows(operands.keys), rows(operands.values), query, rows(operands.mask, positions), *apart,
    )  # fmt: skip
    return CachedAttention(
        name=name, inputs=inputs, output=replace(query, name=name), requant=requant, clip=clip,
        heads=heads, weighing=weighing,
    )  # fmt: skip
