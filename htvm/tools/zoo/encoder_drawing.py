"""Integer transformers in the arithmetic of the Integer Transformer Accelerator, drawn and written.

Weights are random; seeded sequences run through the network in numpy, and every requantization gets
the factor that uses int8 best.  Attention averages over a sequence, so layers of random attention
make its elements alike.  Three things keep them apart in this network: biases centre each channel,
like a trained network's normalisations; the scores spread enough for some elements to stand out;
and attention adds to its input a third of the input's size.

All requantizations are ``clip((acc * mul + add) >> shift)`` with an 8-bit factor and half a step in
the summand, which is rounding half up.  Everything is integer arithmetic (float32 where products
are summed, which is exact below 2**24), so a seed gives the same network on every machine.

In the models, matrices are int8 (rows, columns) throughout.  A product of two activations is one
operator, its requantization another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.layers.layer import MulShift
from byoc_dory.layers.rowwise import AffineNorm, ItaGelu, ItaSoftmax
from htvm.model import Model, TensorInfo
from htvm.tools.zoo import arithmetic
from htvm.tools.zoo.schemes import bell_shaped
from patterns.op import TensorType
from patterns.ops.add import Add
from patterns.ops.dense import dense_of
from patterns.ops.integer.combine import IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.pulp.elementwise import Accumulate
from patterns.ops.pulp.ita import ItaActivation, ItaMax
from patterns.ops.pulp.norm import PulpAffineNorm
from patterns.reading.building import GraphBuilder

if TYPE_CHECKING:
    from byoc_dory.layers import Array
    from patterns.op import Op

Scale: TypeAlias = tuple[int, int, int]
"""The factor, shift and summand: mul, shift and add."""

_INPUT = "input"
_OUTPUT = "output"
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


class Drawer:
    """Draws operators that read what was drawn before, and writes them.

    Args:
        seed: seed of the weights and of the sequences that scales are chosen by.
        rows, columns: size of the network's input.

    Attributes:
        x: the results for the sequences, int64 [n, rows, columns].
    """

    def __init__(self, seed: int, rows: int, columns: int) -> None:
        self._rng = np.random.default_rng([5, seed])
        self.x: Array = self._rng.integers(-128, 128, (_SEQUENCES, rows, columns))
        self._shape = rows, columns
        self._builder = GraphBuilder([(_INPUT, TensorType(self._shape))])
        self._last = _INPUT

    def model(self, name: str) -> Model:
        """Return what was drawn as a model."""
        return Model(
            name=name,
            graph=self._builder.graph([self._last]),
            inputs=(TensorInfo(_INPUT, self._shape, "int8"),),
            outputs=(TensorInfo(_OUTPUT, self._builder.types[self._last].shape, "int8"),),
            source=f"htvm.zoo.{name}",
            scheme="mul_shift",
        )

    def layer(
        self, prefix: str, projection: int, heads: int, inner: int, stacked: int,
        activation: str | None,
    ) -> None:  # fmt: skip
        """Draw ``norm(x + attention(x))`` and then ``stacked`` feed-forward networks.

        Each of these is ``norm(x + outer(activation(inner(x))))``.

        Args:
            prefix: beginning of the operators' names.
            projection, heads: as for `attention`.
            inner: columns between the two products of a feed-forward network.
            stacked: number of these, one after the other.
            activation: as for `product`.
        """
        x, source = self.x, self._last
        self.attention(prefix, projection, heads)
        self._normed(x, source, f"{prefix}_attention")
        for place in range(stacked):
            x, source, name = self.x, self._last, f"{prefix}_ffn_{place}"
            self.product(f"{name}_inner", inner, activation, f"{name}_gelu")
            self.product(f"{name}_outer", x.shape[-1])
            self._normed(x, source, name)

    def attention(self, prefix: str, projection: int, heads: int) -> None:
        """Draw a multi-head attention, whose heads' results are accumulated.

        Args:
            prefix: beginning of the operators' names.
            projection: columns of a head.
            heads: number of heads.
        """
        x, columns = self.x, self.x.shape[-1]
        drawn = {
            role: [self._drawn(x, projection) for _ in range(heads)]
            for role in ("query", "key", "value")
        }
        queries, keys, values = ([result for _, result in each] for each in drawn.values())
        scores, context, contexts = _attended(queries, keys, values)
        outputs = [self._drawn(each, columns) for each in contexts]
        source, mixed = self._last, []
        for head in range(heads):
            name = f"{prefix}_head_{head}"
            query, key, value = (
                self._apply(ops[head][0], [source], f"{name}_{role}") for role, ops in drawn.items()
            )
            rows = self._apply(IntegerMatmul(transpose_b=True), [query, key], f"{name}_similarity")
            rows = self._apply(_rescale(scores, projection * 128 * 128), [rows], f"{name}_scores")
            rows = self._apply(ItaMax(ItaSoftmax()), [rows], f"{name}_softmax")
            rows = self._apply(IntegerMatmul(), [rows, value], f"{name}_mixture")
            op = _rescale(context, x.shape[1] * 255 * 128)
            mixed.append(self._apply(op, [rows], f"{name}_context"))
        parts = [
            self._apply(op, [tensor], f"{prefix}_head_{head}_output")
            for head, (tensor, (op, _)) in enumerate(zip(mixed, outputs, strict=True))
        ]
        self.x = outputs[0][1]
        if heads > 1:
            total = np.sum([result for _, result in outputs], axis=0)
            mul, shift, add = scale = _fitted(total, peak=_PEAK_OF_ATTENTION)
            self.x = _scaled(total, scale)
            self._apply(Accumulate(mul, add, shift), parts, f"{prefix}_heads")

    def product(self, name: str, k: int, activation: str | None = None, gelu: str = "gelu") -> None:
        """Draw a product with random weights to ``k`` columns, and an activation after it.

        Args:
            name: name of the product.
            k: number of columns.
            activation: ``"relu"`` (a clip), ``"gelu"``, or None.
            gelu: name of the GELU.
        """
        op, self.x = self._drawn(self.x, k, (0, 127) if activation == "relu" else _INT8)
        self._apply(op, [self._last], name)
        if activation == "gelu":
            # Indexed by the byte.
            self.x = _GELU.table().table.view("int8").astype("int64")[self.x]
            self._apply(ItaActivation(_GELU), [self._last], gelu)

    def _apply(self, op: Op, inputs: list[str], name: str) -> str:
        self._last = self._builder.apply(op, inputs, name)
        return self._last

    def _drawn(self, x: Array, k: int, clip: tuple[int, int] = _INT8) -> tuple[Op, Array]:
        """Return a product of ``x`` with random weights to ``k`` columns, and its results."""
        weight = bell_shaped(self._rng, (k, x.shape[-1]))
        acc = arithmetic.matmul(x, weight.T)
        mean = _mean(acc)
        deviation = _mean(np.abs(acc - mean))
        # After a ReLU most of a channel's values stay positive; see `htvm.tools.zoo.drawing`.
        low, high = (-64, 193) if clip[0] == 0 else (-64, 65)
        bias = self._rng.integers(low, high, k) * deviation // 256 - mean
        acc += bias
        scale = _fitted(np.maximum(acc, clip[0]))
        op = dense_of(x.shape[1:-1], weight, bias.astype("int32"), _requant(scale), clip)
        return op, _scaled(acc, scale, clip)

    def _normed(self, x: Array, source: str, name: str) -> None:
        """Draw the sum with ``x``, the tensor ``source``, and the norm after it."""
        total = self.x + x
        residual = _fitted(total)
        total = _scaled(total, residual)
        columns = total.shape[-1]
        weight = self._rng.integers(48, 97, columns)
        bias = self._rng.integers(-16, 17, columns) * weight - _mean(total) * weight
        mul, shift, add = _fitted(total * weight + bias)
        bias += add // mul
        self.x = np.clip(((total * weight + bias) * mul) >> shift, *_INT8)
        norm = AffineNorm(weight.astype("int32"), bias.astype("int32"), mul, shift)
        self._apply(Add(_requant(residual)), [source, self._last], f"{name}_add")
        self._apply(PulpAffineNorm(norm), [self._last], f"{name}_norm")


def _attended(
    queries: list[Array], keys: list[Array], values: list[Array]
) -> tuple[Scale, Scale, list[Array]]:
    """Return the scales of scores and contexts, the same for all heads, and the contexts."""
    pairs = zip(queries, keys, strict=True)
    sums = np.stack([arithmetic.matmul(q, k.swapaxes(-1, -2)) for q, k in pairs])
    scores = _fitted(sums, _OUTLIERS_OF_SCORES)
    rows = arithmetic.ita_softmax(_scaled(sums, scores), ItaSoftmax())
    products = np.stack([arithmetic.matmul(a, v) for a, v in zip(rows, values, strict=True)])
    context = _fitted(products)
    return scores, context, list(_scaled(products, context))


def _requant(scale: Scale) -> MulShift:
    mul, shift, add = scale
    return MulShift((mul,), (shift,), (add,))


def _rescale(scale: Scale, bound: int) -> Op:
    mul, shift, add = scale
    return Rescale(np.asarray(mul), np.asarray(add), shift, _INT8, bound=bound)


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
