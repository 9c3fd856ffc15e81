"""`Dense`: a fully connected layer on a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from byoc_dory.layers.layer import INT8, Requant, Tensor
from byoc_dory.layers.tensor import Array
from byoc_dory.layers.weighted import Weighted

_HINT = "dense layers take and give vectors (C,)"


@dataclass(frozen=True, eq=False, kw_only=True)
class Dense(Weighted):
    """``clip(requant(weight x + bias))`` for a vector ``(C,)``; the weight is ``[K, C, 1, 1]``."""

    op: ClassVar[str] = "dense"

    @property
    def shape_text(self) -> str:
        """Input and output channels as text."""
        return f"C={self.C} -> K={self.K}"

    @property
    def sizes_text(self) -> str:
        """Input and output channels for tables."""
        return f"{self.C} -> {self.K}"

    def _check(self) -> None:
        self._check_weight()
        if self.weight.shape[2:] != (1, 1):
            raise self._error(f"a kernel of {self.weight.shape[2]}x{self.weight.shape[3]}")
        self._check_shape(self.output, (self.K,), _HINT)
        self._check_shape(self.inputs[0], (self.C,), _HINT)


def dense_layer(
    name: str,
    source: Tensor,
    output: str,
    weight: Array,
    bias: Array | None,
    *,
    requant: Requant,
    clip: tuple[int, int] = INT8,
) -> Dense:
    """A fully connected layer (weight ``[K, C]`` or ``[K, C, 1, 1]``) on a vector ``(C,)``."""
    k, channels = weight.shape[:2]
    return Dense(
        name=name, inputs=(source,), output=Tensor(output, (k,)),
        weight=weight.reshape(k, channels, 1, 1), bias=bias, requant=requant, clip=clip,
    )  # fmt: skip
