"""Drawing the weights of a small language model of microLlama's shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from htvm.tools.zoo.schemes import bell_shaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from byoc_dory.layers import Array

WIDTH = 64
HEADS = 16
HEAD = WIDTH // HEADS
INNER = 256


@dataclass(frozen=True, eq=False)
class LlamaLayer:
    """What differs between layers.

    Attributes:
        attention_norm, inner_norm: factors of the two norms, int32 [width].
        key, query, value, context: matrices of the attention, int8 [width, width].
        gate, up: matrices into the feed-forward network, int8 [inner, width].
        down: matrix out of it, int8 [width, inner].
    """

    attention_norm: Array
    key: Array
    query: Array
    value: Array
    context: Array
    inner_norm: Array
    gate: Array
    up: Array
    down: Array


def drawn_layers(layers: int, seed: int) -> Iterator[LlamaLayer]:
    """Yield the layers, each drawn when it is needed."""
    rng = np.random.default_rng([6, seed])

    def matrix(k: int, channels: int) -> Array:
        return bell_shaped(rng, (k, channels))

    def norm() -> Array:
        factors: Array = rng.integers(32 << 16, 48 << 16, WIDTH, dtype="int32")
        return factors

    for _ in range(layers):
        yield LlamaLayer(
            attention_norm=norm(),
            key=matrix(WIDTH, WIDTH),
            query=matrix(WIDTH, WIDTH),
            value=matrix(WIDTH, WIDTH),
            context=matrix(WIDTH, WIDTH),
            inner_norm=norm(),
            gate=matrix(INNER, WIDTH),
            up=matrix(INNER, WIDTH),
            down=matrix(WIDTH, INNER),
        )


def final_norm() -> Array:
    """Return the factors of the norm behind the last layer, int32 [width]."""
    return np.full(WIDTH, 40 << 16, "int32")
