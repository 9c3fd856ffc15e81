"""Drawing an integer transformer in the arithmetic of the Integer Transformer Accelerator.

Weights are random; seeded sequences run through the network in numpy, and every requantization gets
the factor that uses int8 best.  Attention averages over a sequence, so layers of random attention
make its elements alike.  Three things keep them apart in this network: biases centre each channel,
like a trained network's normalisations; the scores spread enough for some elements to stand out;
and attention adds to its input a third of the input's size.

All requantizations are ``clip((acc * mul + add) >> shift)`` with an 8-bit factor and half a step in
the summand, which is rounding half up.  Everything is integer arithmetic (float32 where products
are summed, which is exact below 2**24), so a seed gives the same network on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from byoc_dory.errors import ModelError
from byoc_dory.layers import Array, Attention, Projection, Scores
from byoc_dory.layers.rowwise import AffineNorm, ItaGelu, ItaSoftmax
from htvm.tools.zoo import forward
from htvm.tools.zoo.schemes import bell_shaped, check_number

Scale = tuple[int, int, int]
"""The factor, shift and summand: mul, shift and add."""

_INT8 = (-128, 127)
# One in this many calibration outputs may leave the int8 range; more for the scores, so that some
# elements of a sequence stand out.
_OUTLIERS = 1024
_OUTLIERS_OF_SCORES = 16
_SEQUENCES = 2  # number of sequences by which scales and biases are chosen
_PEAK = 127
_PEAK_OF_ATTENTION = 40
# A GELU with an input step of 1/32, which gives the same output step with the opposite sign.
_GELU = ItaGelu(b=-80, c=-7091, mul=148, shift=21, add=0)


@dataclass(frozen=True)
class EncoderShape:
    """Sizes of an encoder.

    Attributes:
        sequence: number of rows of the input, S.
        embedding: number of columns of the input, E.
        projection: number of columns of a head, P.
        heads: number of attention heads.
        feed_forward: number of columns between the two products of a feed-forward network.
        stacked: number of feed-forward networks per layer, one after the other.
        activation: ``"relu"`` or ``"gelu"``.

    Raises:
        ModelError: a size is not positive, or there is no such activation.
    """

    sequence: int = 128
    embedding: int = 128
    projection: int = 64
    heads: int = 4
    feed_forward: int = 512
    stacked: int = 4
    activation: str | None = "relu"

    def __post_init__(self) -> None:
        sizes = ("sequence", "embedding", "projection", "heads", "feed_forward", "stacked")
        for role in sizes:
            check_number(role, getattr(self, role), least=0 if role == "stacked" else 1)
        check_activation(self.activation)


@dataclass(frozen=True, eq=False)
class FeedForward:
    """``norm(x + outer(activation(inner(x))))``.

    Attributes:
        inner, outer: the two products.
        clip: clip of the inner product, starting at 0 for a ReLU.
        gelu: GELU after the inner product, instead of a clip.
        residual: requantization of the sum with the input.
        norm: norm of that sum.
    """

    inner: Projection
    clip: tuple[int, int]
    gelu: ItaGelu | None
    outer: Projection
    residual: Scale
    norm: AffineNorm


@dataclass(frozen=True, eq=False)
class EncoderLayer:
    """``norm(x + attention(x))`` and then ``stacked`` feed-forward networks.

    Attributes:
        attention: attention of several heads, whose results are accumulated.
        residual: requantization of the sum with the input.
        norm: norm of that sum.
        feed_forward: the feed-forward networks, one after the other.
    """

    attention: Attention
    residual: Scale
    norm: AffineNorm
    feed_forward: tuple[FeedForward, ...]


class Drawer:
    """Draws operators that read ``x``, int64 [n, S, E], and replaces it by their results.

    Args:
        seed: seed of the weights and of the sequences that scales are chosen by.
        rows, columns: size of the network's input.
    """

    def __init__(self, seed: int, rows: int, columns: int) -> None:
        self._rng = np.random.default_rng([5, seed])
        self.x: Array = self._rng.integers(-128, 128, (_SEQUENCES, rows, columns))

    def encoder(self, shape: EncoderShape, layers: int) -> Iterator[EncoderLayer]:
        """Yield the layers of an encoder, each drawn when it is needed."""
        for _ in range(layers):
            x = self.x
            attention = self.attention(shape)
            residual, norm = self._normed(x)
            stacked = []
            for _ in range(shape.stacked):
                stacked.append(self._feed_forward(shape))
            yield EncoderLayer(attention, residual, norm, tuple(stacked))

    def attention(self, shape: EncoderShape) -> Attention:
        """Draw a multi-head attention."""
        x, sizes = self.x, (shape.projection,) * shape.heads
        query, queries = self._products(x, sizes)
        key, keys = self._products(x, sizes)
        value, values = self._products(x, sizes)
        scores, contexts = self._attend(queries, keys, values)
        output, parts = [], []
        for context in contexts:
            product, part = self.product(context, shape.embedding)
            output.append(product)
            parts.append(part)
        accumulated = None
        self.x = parts[0]
        if shape.heads > 1:
            total = np.sum(parts, axis=0)
            accumulated = _fitted(total, peak=_PEAK_OF_ATTENTION)
            self.x = _scaled(total, accumulated)
        return Attention(query, key, value, scores, tuple(output), accumulated)

    def product(self, x: Array, k: int, clip: tuple[int, int] = _INT8) -> tuple[Projection, Array]:
        """Return a product of ``x`` with random weights to ``k`` columns, and its results."""
        weight = bell_shaped(self._rng, (k, x.shape[-1]))
        acc = forward.matmul(x, weight.T)
        mean = _mean(acc)
        deviation = _mean(np.abs(acc - mean))
        # After a ReLU most of a channel's values stay positive; see `htvm.zoo.drawing`.
        low, high = (-64, 193) if clip[0] == 0 else (-64, 65)
        bias = self._rng.integers(low, high, k) * deviation // 256 - mean
        acc += bias
        mul, shift, add = _fitted(np.maximum(acc, clip[0]))
        made = Projection(weight, bias.astype("int32"), mul, shift, add)
        return made, _scaled(acc, (mul, shift, add), clip)

    def activated(
        self, x: Array, k: int, activation: str | None
    ) -> tuple[Projection, tuple[int, int], ItaGelu | None]:
        """Draw a product followed by an activation: a clip, or a GELU.

        Raises:
            ModelError: there is no such activation.
        """
        check_activation(activation)
        clip = (0, 127) if activation == "relu" else _INT8
        made, self.x = self.product(x, k, clip)
        if activation != "gelu":
            return made, clip, None
        self.x = _GELU.table().table.view("int8").astype("int64")[self.x]  # indexed by the byte
        return made, clip, _GELU

    def _products(
        self, x: Array, sizes: tuple[int, ...]
    ) -> tuple[tuple[Projection, ...], list[Array]]:
        made = [self.product(x, size) for size in sizes]
        return tuple(product for product, _ in made), [result for _, result in made]

    def _attend(
        self, queries: list[Array], keys: list[Array], values: list[Array]
    ) -> tuple[Scores, list[Array]]:
        """Return scores and contexts of all heads, with the same requantization for all."""
        pairs = zip(queries, keys, strict=True)
        sums = np.stack([forward.matmul(q, k.swapaxes(-1, -2)) for q, k in pairs])
        scale = _fitted(sums, _OUTLIERS_OF_SCORES)
        softmax = ItaSoftmax()
        rows = forward.ita_softmax(_scaled(sums, scale), softmax)
        products = np.stack([forward.matmul(a, v) for a, v in zip(rows, values, strict=True)])
        context = _fitted(products)
        return Scores(scale, softmax, context), list(_scaled(products, context))

    def _feed_forward(self, shape: EncoderShape) -> FeedForward:
        x = self.x
        inner, clip, gelu = self.activated(x, shape.feed_forward, shape.activation)
        outer, self.x = self.product(self.x, shape.embedding)
        residual, norm = self._normed(x)
        return FeedForward(inner, clip, gelu, outer, residual, norm)

    def _normed(self, x: Array) -> tuple[Scale, AffineNorm]:
        """Return the requantization of the sum with ``x``, and the norm after it."""
        total = self.x + x
        residual = _fitted(total)
        total = _scaled(total, residual)
        columns = total.shape[-1]
        weight = self._rng.integers(48, 97, columns)
        bias = self._rng.integers(-16, 17, columns) * weight - _mean(total) * weight
        mul, shift, add = _fitted(total * weight + bias)
        bias += add // mul
        self.x = np.clip(((total * weight + bias) * mul) >> shift, *_INT8)
        return residual, AffineNorm(weight.astype("int32"), bias.astype("int32"), mul, shift)


def check_activation(activation: str | None) -> None:
    """Raise `ModelError` if there is no such activation."""
    if activation not in (None, "relu", "gelu"):
        raise ModelError(
            f"there is no activation {activation!r}", where="htvm.zoo", hint="relu, gelu"
        )


def _fitted(values: Array, outliers: int = _OUTLIERS, peak: int = _PEAK) -> Scale:
    """Return the scale with which all but one in ``outliers`` of the values lie within the peak."""
    magnitude = np.abs(values).reshape(-1)
    place = magnitude.size - 1 - magnitude.size // outliers
    largest = max(int(np.partition(magnitude, place)[place]), 1)
    shift = max((255 * largest // peak).bit_length() - 1, 1)  # the factor then has 8 bits
    return (peak << shift) // largest, shift, 1 << (shift - 1)


def _mean(values: Array) -> Array:
    """Return the mean of each column."""
    rows = values.reshape(-1, values.shape[-1])
    return rows.sum(axis=0) // len(rows)


def _scaled(values: Array, scale: Scale, clip: tuple[int, int] = _INT8) -> Array:
    mul, shift, add = scale
    return np.clip((values * mul + add) >> shift, *clip)
