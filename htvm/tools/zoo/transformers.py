"""Integer transformers with seeded weights, in the Integer Transformer Accelerator's arithmetic.

`encoder` is the network of the accelerator's evaluation (MobileBERT's encoder, without the
bottlenecks): with four feed-forward networks per layer it has 4.43 GOp, two for each
multiply-accumulate.  `gemm` and `single_head_attention` are the microbenchmarks.  All compute on
int8 matrices (rows, columns), without batch axis; like the other networks with random weights they
recognise nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from byoc_dory.errors import ModelError
from htvm.tools.zoo.schemes import check_number

if TYPE_CHECKING:
    from htvm.model import Model

LAYERS = 24
"""Number of layers of `encoder` as published."""


def encoder(
    layers: int = LAYERS,
    sequence: int = 128,
    embedding: int = 128,
    projection: int = 64,
    heads: int = 4,
    feed_forward: int = 512,
    stacked: int = 4,
    activation: str | None = "relu",
    seed: int = 0,
) -> Model:
    """Return an encoder of transformer layers, int8 (sequence, embedding) to the same.

    A layer is multi-head attention, followed by ``stacked`` feed-forward networks, each with a sum
    with its input and an affine normalization (MobileBERT's NoNorm).

    Args:
        layers: number of layers; 24 as published; ``zoo:encoder:1`` has one.
        sequence, embedding: rows and columns of the input.
        projection: columns of a head.
        heads: number of attention heads, at least 1.
        feed_forward: columns inside the feed-forward networks.
        stacked: number of feed-forward networks per layer.
        activation: activation between their two products, ``"relu"``, ``"gelu"`` or None.
        seed: seed of the weights.  Encoders that differ only in ``layers`` have the same first
            layers.

    Raises:
        ModelError: a size is not positive, or there is no such activation.
    """
    check_number("layers", layers)
    check_number("the seed", seed, least=0)
    _check_sizes(
        sequence=sequence, embedding=embedding, projection=projection, heads=heads,
        feed_forward=feed_forward,
    )  # fmt: skip
    check_number("stacked", stacked, least=0)
    _check_activation(activation)
    from htvm.tools.zoo.encoder_drawing import (
        Drawer,  # the compiler, which takes a second to import
    )

    drawer = Drawer(seed, sequence, embedding)
    for number in range(layers):
        drawer.layer(f"layer_{number}", projection, heads, feed_forward, stacked, activation)
    return drawer.model("encoder" if layers == LAYERS else f"encoder_{layers}")


def single_head_attention(
    sequence: int = 128, embedding: int = 128, projection: int = 64, seed: int = 0
) -> Model:
    """Return attention of one head with its four products, int8 (sequence, embedding) to the same.

    Raises:
        ModelError: a size is not positive.
    """
    _check_sizes(sequence=sequence, embedding=embedding, projection=projection)
    check_number("the seed", seed, least=0)
    from htvm.tools.zoo.encoder_drawing import Drawer

    drawer = Drawer(seed, sequence, embedding)
    drawer.attention("attention", projection, heads=1)
    return drawer.model("single_head_attention")


def gemm(rows: int, C: int, K: int, activation: str | None = None, seed: int = 0) -> Model:
    """Return a product of an int8 matrix (rows, C) with constant weights, int8 (rows, K).

    Args:
        rows, C, K: sizes of the product.
        activation: activation after it, ``"relu"``, ``"gelu"`` or None.
        seed: seed of the weights.

    Raises:
        ModelError: a size is not positive, or there is no such activation.
    """
    _check_sizes(rows=rows, C=C, K=K)
    check_number("the seed", seed, least=0)
    _check_activation(activation)
    from htvm.tools.zoo.encoder_drawing import Drawer

    drawer = Drawer(seed, rows, C)
    drawer.product("gemm", K, activation)
    return drawer.model(f"gemm_{rows}x{C}x{K}")


def _check_sizes(**sizes: int) -> None:
    for role, size in sizes.items():
        check_number(role, size)


def _check_activation(activation: str | None) -> None:
    if activation not in (None, "relu", "gelu"):
        raise ModelError(
            f"there is no activation {activation!r}", where="htvm.zoo", hint="relu, gelu"
        )
