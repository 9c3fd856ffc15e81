"""`CachedAttention`: attention of several heads over given keys and values, such as a cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from byoc_dory.layers.layer import INT8, Layer, Requant
from byoc_dory.layers.rowwise import TableMap, TableSoftmax
from byoc_dory.layers.tensor import Tensor


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
