"""`Attend`: the heads of an attention without their products with constant weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from byoc_dory.layers.attention import Scores
from byoc_dory.layers.layer import Layer, Requant, Shift, Tensor
from byoc_dory.layers.tensor import matrix


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
