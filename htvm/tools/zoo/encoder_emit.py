"""Writing the drawn parts of an integer transformer as models in the integer form.

Matrices are int8 (rows, columns) throughout.  A product of two activations is one operator, its
requantization another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from byoc_dory.layers.layer import MulShift
from htvm.model import Model, TensorInfo
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
    from byoc_dory.layers import Attention, Projection, Scores
    from byoc_dory.layers.rowwise import AffineNorm, ItaGelu
    from htvm.tools.zoo.encoder_draw import EncoderLayer, FeedForward, Scale

_INPUT = "input"
_OUTPUT = "output"
_INT8 = (-128, 127)

Writer: TypeAlias = "Callable[[GraphBuilder, str], str]"


def encoder_model(name: str, rows: int, columns: int, layers: Iterable[EncoderLayer]) -> Model:
    """Return the encoder of these layers, which are drawn while it is written."""

    def write(builder: GraphBuilder, x: str) -> str:
        for number, layer in enumerate(layers):
            prefix = f"layer_{number}"
            y = _attention(builder, x, layer.attention, prefix)
            x = _normed(builder, x, y, layer.residual, layer.norm, f"{prefix}_attention")
            for place, part in enumerate(layer.feed_forward):
                x = _feed_forward(builder, x, part, f"{prefix}_ffn_{place}")
        return x

    return _model(name, (rows, columns), write)


def attention_model(name: str, rows: int, columns: int, attention: Attention) -> Model:
    """Return a model of a single attention."""

    def write(builder: GraphBuilder, x: str) -> str:
        return _attention(builder, x, attention, "attention")

    return _model(name, (rows, columns), write)


def gemm_model(
    name: str, rows: int, product: Projection, clip: tuple[int, int], gelu: ItaGelu | None
) -> Model:
    """Return a model of a single product."""

    def write(builder: GraphBuilder, x: str) -> str:
        y = _product(builder, x, product, "gemm", clip)
        return builder.apply(ItaActivation(gelu), [y], "gelu") if gelu is not None else y

    return _model(name, (rows, product.weight.shape[1]), write)


def _model(name: str, shape: tuple[int, int], write: Writer) -> Model:
    builder = GraphBuilder([(_INPUT, TensorType(shape))])
    result = write(builder, _INPUT)
    return Model(
        name=name,
        graph=builder.graph([result]),
        inputs=(TensorInfo(_INPUT, shape, "int8"),),
        outputs=(TensorInfo(_OUTPUT, builder.types[result].shape, "int8"),),
        source=f"htvm.zoo.{name}",
        scheme="mul_shift",
    )


def _attention(builder: GraphBuilder, x: str, attention: Attention, prefix: str) -> str:
    contexts = []
    for head in range(attention.heads):
        name = f"{prefix}_head_{head}"
        query, key, value = (
            _product(builder, x, parts[head], f"{name}_{role}")
            for role, parts in (
                ("query", attention.query),
                ("key", attention.key),
                ("value", attention.value),
            )
        )
        contexts.append(_head(builder, query, key, value, attention.scores, name))
    outputs = [
        _product(builder, context, product, f"{prefix}_head_{head}_output")
        for head, (context, product) in enumerate(zip(contexts, attention.output, strict=True))
    ]
    if attention.accumulate is None:
        return outputs[0]
    mul, shift, offset = attention.accumulate
    return builder.apply(Accumulate(mul, offset, shift), outputs, f"{prefix}_heads")


def _head(
    builder: GraphBuilder, query: str, key: str, value: str, scores: Scores, name: str
) -> str:
    sums = builder.apply(IntegerMatmul(transpose_b=True), [query, key], f"{name}_similarity")
    bound = builder.types[query].shape[-1] * 128 * 128
    rows = _rescaled(builder, sums, scores.scores, bound, f"{name}_scores")
    rows = builder.apply(ItaMax(scores.softmax), [rows], f"{name}_softmax")
    sums = builder.apply(IntegerMatmul(), [rows, value], f"{name}_mixture")
    bound = builder.types[value].shape[0] * 255 * 128
    return _rescaled(builder, sums, scores.context, bound, f"{name}_context")


def _rescaled(builder: GraphBuilder, x: str, scale: Scale, bound: int, name: str) -> str:
    mul, shift, offset = scale
    op = Rescale(np.asarray(mul), np.asarray(offset), shift, _INT8, bound=bound)
    return builder.apply(op, [x], name)


def _feed_forward(builder: GraphBuilder, x: str, part: FeedForward, name: str) -> str:
    y = _product(builder, x, part.inner, f"{name}_inner", part.clip)
    if part.gelu is not None:
        y = builder.apply(ItaActivation(part.gelu), [y], f"{name}_gelu")
    y = _product(builder, y, part.outer, f"{name}_outer")
    return _normed(builder, x, y, part.residual, part.norm, name)


def _normed(
    builder: GraphBuilder, x: str, y: str, residual: Scale, norm: AffineNorm, name: str
) -> str:
    mul, shift, offset = residual
    total = builder.apply(Add(MulShift((mul,), (shift,), (offset,))), [x, y], f"{name}_add")
    return builder.apply(PulpAffineNorm(norm), [total], f"{name}_norm")


def _product(
    builder: GraphBuilder, x: str, product: Projection, name: str, clip: tuple[int, int] = _INT8
) -> str:
    requant = MulShift((product.mul,), (product.shift,), (product.add,))
    rows = builder.types[x].shape[:-1]
    op = dense_of(rows, product.weight, product.bias, requant, clip)
    return builder.apply(op, [x], name)
