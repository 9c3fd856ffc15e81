"""Drawing a small language model in the integer form that microLlama's files have, too.

Key and query are rotated by a product with a matrix of each position.  Scales are the same in all
layers: activations have a deviation of about 40 steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from byoc_dory.layers.layer import MulShift
from byoc_dory.layers.rowwise import RmsNorm
from htvm.model import Model, TensorInfo
from htvm.tools.language.interface import StepInterface
from htvm.tools.zoo.schemes import bell_shaped
from patterns.op import TensorType
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.dense import dense_of
from patterns.ops.integer.combine import Combine, IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.reshape import Reshape, Transpose
from patterns.ops.pulp.elementwise import PulpDivide, PulpHardSwish
from patterns.ops.pulp.norm import PulpRmsNorm, PulpSoftmax
from patterns.reading.building import GraphBuilder

_WIDTH = 64
_HEADS = 16
_HEAD = _WIDTH // _HEADS
_INNER = 256
_INT8 = (-128, 127)
_SHIFT = 16
_HALF = 1 << (_SHIFT - 1)

# Multipliers, over 65536.  The sums of a product of 64 bell-shaped weights deviate by 11,650.
_INTO_LAYER = 225  # products of normed rows
_ROTATED = 516  # 1 / 127, the matrices' 1.0
_SCORES = 1229
_CONTEXT = 774  # 1.5 / 127: weights of a row add up to 127, and means are small
_OUT_OF_ATTENTION = 225
_GATED = 8
_PRODUCT = 1800
_OUT_OF_INNER = 100
_BRANCH = 60000
_SUM = 52940
_MASK = 64 << _SHIFT  # so that any mask below 0 becomes the lowest score
# Scores are multiplied by 8192 and by 2 / 65536, which leaves a quarter of them, -32 to 32.
_DIVIDE = PulpDivide(3276800000, 400001)
_DIVIDED = 2
_SOFTMAX = PulpSoftmax((1, 11, 61), log2=8, levels=256)
_TO_INT8 = 32639  # 255 becomes 127
_SWISH = PulpHardSwish(122, 245, 42)


def step_model(name: str, length: int, layers: int, seed: int) -> Model:
    """Return a decoding step with this many layers and a cache of ``length`` positions."""
    sizes = StepInterface(_WIDTH, length, _HEADS, _HEAD, 2 * layers)
    names = ["input", "mask", "rotation", *_cache_names(layers)]
    inputs = tuple(
        TensorInfo(each, shape, "int8")
        for each, shape in zip(names, sizes.input_shapes, strict=True)
    )
    return _model(name, inputs, layers, seed)


def prompt_model(name: str, tokens: int, layers: int, seed: int) -> Model:
    """Return the network with this many layers for a prompt of this many tokens."""
    mask = (1,) if tokens == 1 else (1, tokens, tokens)
    inputs = (
        TensorInfo("input", (1, tokens, _WIDTH), "int8"),
        TensorInfo("mask", mask, "int8"),
        TensorInfo("rotation", (1, tokens, _HEAD, _HEAD), "int8"),
    )
    return _model(name, inputs, layers, seed)


def _cache_names(layers: int) -> list[str]:
    return [f"layer_{number}_{role}" for number in range(layers) for role in ("keys", "values")]


def _model(name: str, inputs: tuple[TensorInfo, ...], layers: int, seed: int) -> Model:
    builder = GraphBuilder((each.name, TensorType(each.shape)) for each in inputs)
    rng = np.random.default_rng([6, seed])
    x, mask, rotation, *cached = (each.name for each in inputs)
    caches: list[str] = []
    for number in range(layers):
        earlier = (cached[2 * number], cached[2 * number + 1]) if cached else None
        writer = _Writer(builder, rng, f"layer_{number}", mask, rotation, earlier)
        x, keys, values = writer.layer(x)
        caches += [keys, values]
    factors = np.full(_WIDTH, 40 << _SHIFT, "int32")
    x = builder.apply(PulpRmsNorm(RmsNorm(factors, _SHIFT)), [x], "norm")
    names = ["output", *(f"{each}_out" for each in _cache_names(layers))]
    return Model(
        name=name,
        graph=builder.graph([x, *caches]),
        inputs=inputs,
        outputs=tuple(
            TensorInfo(each, builder.types[result].shape, "int8")
            for each, result in zip(names, [x, *caches], strict=True)
        ),
        source=f"htvm.zoo.{name}",
        scheme="mul_shift",
    )


@dataclass(frozen=True)
class _Writer:
    """Draws and writes the operators of a layer, in the order of its weights.

    These are int32 factors of two norms [width], four int8 matrices of the attention [width,
    width], two into the feed-forward network [inner, width], and one out of it [width, inner].

    Attributes:
        builder: where they are written.
        rng: draws the weights.
        prefix: beginning of their names.
        mask, rotation: inputs of the network.
        earlier: cached keys and values; None for a prompt.
    """

    builder: GraphBuilder
    rng: np.random.Generator
    prefix: str
    mask: str
    rotation: str
    earlier: tuple[str, str] | None

    def layer(self, x: str) -> tuple[str, str, str]:
        """Write a layer; return hidden state, keys and values."""
        normed = self._norm(x, "attention_norm")
        tokens = self._shape(x)[1]
        key = self._heads(self._rotated(normed, "key"), "key")
        keys = key if self.earlier is None else self._joined(self.earlier[0], key, "keys")
        query = self._heads(self._rotated(normed, "query"), "query")
        weights = self._attention(query, keys)
        value = self._split(self._product(normed, _WIDTH, _INTO_LAYER, "value"), "value")
        value = self._heads(value, "value")
        values = value if self.earlier is None else self._joined(self.earlier[1], value, "values")
        mixed = self.builder.apply(IntegerMatmul(), [weights, values], self._name("mixture"))
        bound = self._shape(values)[2] * 128 * 128
        context = self._rescaled(mixed, _CONTEXT, bound, "context")
        context = self._moved(context, (0, 2, 1, 3), "context_rows")
        context = self._reshaped(context, (1, tokens, _WIDTH), "context_joined")
        y = self._product(context, _WIDTH, _OUT_OF_ATTENTION, "attention")
        x = self._added(x, y, "attention")
        return self._added(x, self._inner(x), "inner"), keys, values

    def _attention(self, query: str, keys: str) -> str:
        """Write the weights of all positions, for each head and token."""
        similarity = IntegerMatmul(transpose_b=True)
        sums = self.builder.apply(similarity, [query, keys], self._name("similarity"))
        scores = self._rescaled(sums, _SCORES, _HEAD * 128 * 128, "similarity_int8")
        divided = self.builder.apply(_DIVIDE, [scores], self._name("divided"))
        scores = self._rescaled(divided, _DIVIDED, 128 * 8192 - 2, "scores")
        mask = self.builder.apply(Convert(_requant(_MASK)), [self.mask], self._name("mask"))
        masked = self.builder.apply(Combine("add"), [scores, mask], self._name("masked"))
        scores = self._rescaled(masked, 1 << _SHIFT, 256, "masked_scores")
        weights = self.builder.apply(_SOFTMAX, [scores], self._name("softmax"))
        return self._rescaled(weights, _TO_INT8, 255, "weights")

    def _inner(self, x: str) -> str:
        """Write the feed-forward network."""
        normed = self._norm(x, "inner_norm")
        gate = self._product(normed, _INNER, _INTO_LAYER, "gate")
        gate = self.builder.apply(_SWISH, [gate], self._name("swish"))
        gate = self._rescaled(gate, _GATED, 128 * _SWISH.six * _SWISH.sixth, "gated")
        up = self._product(normed, _INNER, _INTO_LAYER, "up")
        product = self.builder.apply(Combine("multiply"), [gate, up], self._name("product"))
        inner = self._rescaled(product, _PRODUCT, 128 * 128, "inner")
        return self._product(inner, _WIDTH, _OUT_OF_INNER, "down")

    def _norm(self, x: str, name: str) -> str:
        factors = self.rng.integers(32 << _SHIFT, 48 << _SHIFT, _WIDTH, dtype="int32")
        return self.builder.apply(PulpRmsNorm(RmsNorm(factors, _SHIFT)), [x], self._name(name))

    def _product(self, x: str, k: int, mul: int, name: str) -> str:
        """Write a product of the rows of ``x``, [1, tokens, C], with a drawn matrix [k, C]."""
        tokens, channels = self._shape(x)[1:]
        weight = bell_shaped(self.rng, (k, channels))
        rows = self._reshaped(x, (tokens, channels), f"{name}_rows")
        op = dense_of((tokens,), weight, np.zeros(k, "int32"), _requant(mul))
        y = self.builder.apply(op, [rows], self._name(name))
        return self._reshaped(y, (1, tokens, k), f"{name}_batch")

    def _rotated(self, x: str, name: str) -> str:
        heads = self._split(self._product(x, _WIDTH, _INTO_LAYER, name), name)
        inputs = [heads, self.rotation]
        sums = self.builder.apply(IntegerMatmul(), inputs, self._name(f"{name}_rotated"))
        return self._rescaled(sums, _ROTATED, _HEAD * 128 * 128, f"{name}_rotated_int8")

    def _split(self, x: str, name: str) -> str:
        return self._reshaped(x, (1, self._shape(x)[1], _HEADS, _HEAD), f"{name}_split")

    def _heads(self, x: str, name: str) -> str:
        """Put the heads [1, tokens, heads, head] before the tokens."""
        return self._moved(x, (0, 2, 1, 3), f"{name}_heads")

    def _moved(self, x: str, axes: tuple[int, ...], name: str) -> str:
        shape = tuple(self._shape(x)[axis] for axis in axes)
        if 1 in self._shape(x)[1:3]:
            return self._reshaped(x, shape, name)
        return self.builder.apply(Transpose(axes), [x], self._name(name))

    def _joined(self, earlier: str, own: str, name: str) -> str:
        # Files convert the token's key or value to the scale of the cached ones; so does this.
        one = 1 << _SHIFT
        own = self.builder.apply(Convert(_requant(one)), [own], self._name(f"{name}_new"))
        return self.builder.apply(Concat(2), [earlier, own], self._name(f"{name}_joined"))

    def _added(self, x: str, y: str, name: str) -> str:
        x = self.builder.apply(Convert(_requant(_BRANCH)), [x], self._name(f"{name}_branch"))
        return self.builder.apply(Add(_requant(_SUM)), [x, y], self._name(f"{name}_sum"))

    def _rescaled(self, x: str, mul: int, bound: int, name: str) -> str:
        op = Rescale(np.asarray(mul), np.asarray(_HALF), _SHIFT, _INT8, bound=bound)
        return self.builder.apply(op, [x], self._name(name))

    def _reshaped(self, x: str, shape: tuple[int, ...], name: str) -> str:
        return self.builder.apply(Reshape(shape), [x], self._name(name))

    def _shape(self, x: str) -> tuple[int, ...]:
        return self.builder.types[x].shape

    def _name(self, name: str) -> str:
        return f"{self.prefix}_{name}"


def _requant(mul: int) -> MulShift:
    return MulShift((mul,), (_SHIFT,), (_HALF,))
