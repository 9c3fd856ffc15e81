"""Writing the drawn language model in the integer form that microLlama's files have, too.

Key and query are rotated by a product with a matrix of each position.  Scales are the same in all
layers: activations have a deviation of about 40 steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax

from byoc_dory.layers.layer import MulShift
from byoc_dory.layers.rowwise import RmsNorm
from htvm.language.interface import StepInterface
from htvm.model import Model, TensorInfo
from htvm.zoo.llama_draw import HEAD, HEADS, WIDTH, LlamaLayer
from patterns.ops.add import Add
from patterns.ops.convert import Convert
from patterns.ops.dense import Dense, Linear
from patterns.ops.integer.combine import Combine
from patterns.ops.integer.matmul import IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.reshape import Reshape
from patterns.ops.moves.transpose import Transpose
from patterns.ops.pulp.divide import PulpDivide
from patterns.ops.pulp.hard_swish import PulpHardSwish
from patterns.ops.pulp.rms_norm import PulpRmsNorm
from patterns.ops.pulp.softmax import PulpSoftmax
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Array

__all__ = ["prompt_model", "step_model"]

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


def step_model(name: str, length: int, layers: Iterable[LlamaLayer], final_norm: Array) -> Model:
    """Return a decoding step with a cache of ``length`` positions."""
    drawn = list(layers)
    sizes = StepInterface(WIDTH, length, HEADS, HEAD, 2 * len(drawn))
    names = ["input", "mask", "rotation", *_cache_names(len(drawn))]
    inputs = tuple(
        TensorInfo(each, shape, "int8")
        for each, shape in zip(names, sizes.input_shapes, strict=True)
    )
    return _model(name, inputs, drawn, final_norm)


def prompt_model(name: str, tokens: int, layers: Iterable[LlamaLayer], final_norm: Array) -> Model:
    """Return the network for a prompt of so many tokens."""
    mask = (1,) if tokens == 1 else (1, tokens, tokens)
    inputs = (
        TensorInfo("input", (1, tokens, WIDTH), "int8"),
        TensorInfo("mask", mask, "int8"),
        TensorInfo("rotation", (1, tokens, HEAD, HEAD), "int8"),
    )
    return _model(name, inputs, list(layers), final_norm)


def _cache_names(layers: int) -> list[str]:
    return [f"layer_{number}_{role}" for number in range(layers) for role in ("keys", "values")]


def _model(
    name: str, inputs: tuple[TensorInfo, ...], layers: list[LlamaLayer], final_norm: Array
) -> Model:
    bb = relax.BlockBuilder()
    variables = [relax.Var(each.name, relax.TensorType(each.shape, "int8")) for each in inputs]
    x, mask, rotation, *cached = variables
    with bb.function("main", variables):
        with bb.dataflow():
            caches: list[Expr] = []
            for number, layer in enumerate(layers):
                earlier = (cached[2 * number], cached[2 * number + 1]) if cached else None
                writer = _Writer(bb, f"layer_{number}", mask, rotation, earlier)
                x, keys, values = writer.layer(x, layer)
                caches += [keys, values]
            x = PulpRmsNorm(RmsNorm(final_norm, _SHIFT)).write(bb, [x], "norm")
            results = [bb.emit_output(each) for each in (x, *caches)]
        bb.emit_func_output(relax.Tuple(results))
    names = ["output", *(f"{each}_out" for each in _cache_names(len(layers)))]
    return Model(
        name=name,
        module=bb.finalize(),
        inputs=inputs,
        outputs=tuple(
            TensorInfo(each, shape_of(result), "int8")
            for each, result in zip(names, results, strict=True)
        ),
        source=f"htvm.zoo.{name}",
        scheme="mul_shift",
    )


@dataclass(frozen=True)
class _Writer:
    """Writes the operators of a layer.

    Attributes:
        bb: where they are written.
        prefix: beginning of their names.
        mask, rotation: inputs of the network.
        earlier: cached keys and values; None for a prompt.
    """

    bb: BlockBuilder
    prefix: str
    mask: Expr
    rotation: Expr
    earlier: tuple[Expr, Expr] | None

    def layer(self, x: Expr, layer: LlamaLayer) -> tuple[Expr, Expr, Expr]:
        """Write a layer; return hidden state, keys and values."""
        normed = self._norm(x, layer.attention_norm, "attention_norm")
        tokens = shape_of(x)[1]
        key = self._heads(self._rotated(normed, layer.key, "key"), "key")
        keys = key if self.earlier is None else self._joined(self.earlier[0], key, "keys")
        query = self._heads(self._rotated(normed, layer.query, "query"), "query")
        weights = self._attention(query, keys)
        value = self._split(self._product(normed, layer.value, _INTO_LAYER, "value"), "value")
        value = self._heads(value, "value")
        values = value if self.earlier is None else self._joined(self.earlier[1], value, "values")
        mixed = IntegerMatmul().write(self.bb, [weights, values], self._name("mixture"))
        bound = shape_of(values)[2] * 128 * 128
        context = self._rescaled(mixed, _CONTEXT, bound, "context")
        context = self._moved(context, (0, 2, 1, 3), "context_rows")
        context = self._reshaped(context, (1, tokens, WIDTH), "context_joined")
        y = self._product(context, layer.context, _OUT_OF_ATTENTION, "attention")
        x = self._added(x, y, "attention")
        return self._added(x, self._inner(x, layer), "inner"), keys, values

    def _attention(self, query: Expr, keys: Expr) -> Expr:
        """Write the weights of all positions, for each head and token."""
        similarity = IntegerMatmul(transpose_b=True)
        sums = similarity.write(self.bb, [query, keys], self._name("similarity"))
        scores = self._rescaled(sums, _SCORES, HEAD * 128 * 128, "similarity_int8")
        divided = _DIVIDE.write(self.bb, [scores], self._name("divided"))
        scores = self._rescaled(divided, _DIVIDED, 128 * 8192 - 2, "scores")
        mask = Convert(_requant(_MASK)).write(self.bb, [self.mask], self._name("mask"))
        masked = Combine("add").write(self.bb, [scores, mask], self._name("masked"))
        scores = self._rescaled(masked, 1 << _SHIFT, 256, "masked_scores")
        weights = _SOFTMAX.write(self.bb, [scores], self._name("softmax"))
        return self._rescaled(weights, _TO_INT8, 255, "weights")

    def _inner(self, x: Expr, layer: LlamaLayer) -> Expr:
        """Write the feed-forward network."""
        normed = self._norm(x, layer.inner_norm, "inner_norm")
        gate = self._product(normed, layer.gate, _INTO_LAYER, "gate")
        gate = _SWISH.write(self.bb, [gate], self._name("swish"))
        gate = self._rescaled(gate, _GATED, 128 * _SWISH.six * _SWISH.sixth, "gated")
        up = self._product(normed, layer.up, _INTO_LAYER, "up")
        product = Combine("multiply").write(self.bb, [gate, up], self._name("product"))
        inner = self._rescaled(product, _PRODUCT, 128 * 128, "inner")
        return self._product(inner, layer.down, _OUT_OF_INNER, "down")

    def _norm(self, x: Expr, factors: Array, name: str) -> Var:
        return PulpRmsNorm(RmsNorm(factors, _SHIFT)).write(self.bb, [x], self._name(name))

    def _product(self, x: Expr, weight: Array, mul: int, name: str) -> Expr:
        """Write a product of the rows of ``x``, [1, tokens, C], with a matrix [K, C]."""
        tokens, channels = shape_of(x)[1:]
        rows = self._reshaped(x, (tokens, channels), f"{name}_rows")
        op = (Dense if tokens == 1 else Linear)(
            weight, np.zeros(len(weight), "int32"), _requant(mul)
        )
        y = op.write(self.bb, [rows], self._name(name))
        return self._reshaped(y, (1, tokens, len(weight)), f"{name}_batch")

    def _rotated(self, x: Expr, weight: Array, name: str) -> Expr:
        heads = self._split(self._product(x, weight, _INTO_LAYER, name), name)
        inputs = [heads, self.rotation]
        sums = IntegerMatmul().write(self.bb, inputs, self._name(f"{name}_rotated"))
        return self._rescaled(sums, _ROTATED, HEAD * 128 * 128, f"{name}_rotated_int8")

    def _split(self, x: Expr, name: str) -> Expr:
        return self._reshaped(x, (1, shape_of(x)[1], HEADS, HEAD), f"{name}_split")

    def _heads(self, x: Expr, name: str) -> Expr:
        """Put the heads [1, tokens, heads, head] before the tokens."""
        return self._moved(x, (0, 2, 1, 3), f"{name}_heads")

    def _moved(self, x: Expr, axes: tuple[int, ...], name: str) -> Expr:
        shape = tuple(shape_of(x)[axis] for axis in axes)
        if 1 in shape_of(x)[1:3]:
            return self._reshaped(x, shape, name)
        return Transpose(axes).write(self.bb, [x], self._name(name))

    def _joined(self, earlier: Expr, own: Expr, name: str) -> Var:
        # Files convert the token's key or value to the scale of the cached ones; so does this.
        one = 1 << _SHIFT
        own = Convert(_requant(one)).write(self.bb, [own], self._name(f"{name}_new"))
        return Concat(2).write(self.bb, [earlier, own], self._name(f"{name}_joined"))

    def _added(self, x: Expr, y: Expr, name: str) -> Var:
        x = Convert(_requant(_BRANCH)).write(self.bb, [x], self._name(f"{name}_branch"))
        return Add(_requant(_SUM)).write(self.bb, [x, y], self._name(f"{name}_sum"))

    def _rescaled(self, x: Expr, mul: int, bound: int, name: str) -> Var:
        op = Rescale(np.asarray(mul), np.asarray(_HALF), _SHIFT, _INT8, bound=bound)
        return op.write(self.bb, [x], self._name(name))

    def _reshaped(self, x: Expr, shape: tuple[int, ...], name: str) -> Var:
        return Reshape(shape).write(self.bb, [x], self._name(name))

    def _name(self, name: str) -> str:
        return f"{self.prefix}_{name}"


def _requant(mul: int) -> MulShift:
    return MulShift((mul,), (_SHIFT,), (_HALF,))
