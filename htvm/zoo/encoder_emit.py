"""Writing the drawn parts of an integer transformer as models in the integer form.

Matrices are int8 (rows, columns) throughout.  A product of two activations is one operator, its
requantization another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from tvm import relax

from byoc_dory.layers.layer import MulShift
from htvm.model import Model, TensorInfo
from patterns.ops.add import Add
from patterns.ops.dense import Dense
from patterns.ops.integer.matmul import IntegerMatmul
from patterns.ops.integer.rescale import Rescale
from patterns.ops.pulp.accumulate import Accumulate
from patterns.ops.pulp.affine_norm import PulpAffineNorm
from patterns.ops.pulp.ita_gelu import ItaActivation
from patterns.ops.pulp.ita_softmax import ItaMax
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Attention, Projection, Scores
    from byoc_dory.layers.rowwise import AffineNorm, ItaGelu
    from htvm.zoo.encoder_draw import EncoderLayer, FeedForward, Scale

__all__ = ["attention_model", "encoder_model", "gemm_model"]

_INPUT = "input"
_OUTPUT = "output"
_INT8 = (-128, 127)

Writer: TypeAlias = "Callable[[BlockBuilder, Expr], Expr]"


def encoder_model(name: str, rows: int, columns: int, layers: Iterable[EncoderLayer]) -> Model:
    """Return the encoder of these layers, which are drawn while it is written."""

    def write(bb: BlockBuilder, x: Expr) -> Expr:
        for number, layer in enumerate(layers):
            prefix = f"layer_{number}"
            y = _attention(bb, x, layer.attention, prefix)
            x = _normed(bb, x, y, layer.residual, layer.norm, f"{prefix}_attention")
            for place, part in enumerate(layer.feed_forward):
                x = _feed_forward(bb, x, part, f"{prefix}_ffn_{place}")
        return x

    return _model(name, (rows, columns), write)


def attention_model(name: str, rows: int, columns: int, attention: Attention) -> Model:
    """Return a model of a single attention."""

    def write(bb: BlockBuilder, x: Expr) -> Expr:
        return _attention(bb, x, attention, "attention")

    return _model(name, (rows, columns), write)


def gemm_model(
    name: str, rows: int, product: Projection, clip: tuple[int, int], gelu: ItaGelu | None
) -> Model:
    """Return a model of a single product."""

    def write(bb: BlockBuilder, x: Expr) -> Expr:
        y = _product(bb, x, product, "gemm", clip)
        return ItaActivation(gelu).write(bb, [y], "gelu") if gelu is not None else y

    return _model(name, (rows, product.weight.shape[1]), write)


def _model(name: str, shape: tuple[int, int], write: Writer) -> Model:
    bb = relax.BlockBuilder()
    x = relax.Var(_INPUT, relax.TensorType(shape, "int8"))
    with bb.function("main", [x]):
        with bb.dataflow():
            result = bb.emit_output(write(bb, x))
        bb.emit_func_output(result)
    return Model(
        name=name,
        module=bb.finalize(),
        inputs=(TensorInfo(_INPUT, shape, "int8"),),
        outputs=(TensorInfo(_OUTPUT, shape_of(result), "int8"),),
        source=f"htvm.zoo.{name}",
        scheme="mul_shift",
    )


def _attention(bb: BlockBuilder, x: Expr, attention: Attention, prefix: str) -> Expr:
    contexts = []
    for head in range(attention.heads):
        name = f"{prefix}_head_{head}"
        query, key, value = (
            _product(bb, x, parts[head], f"{name}_{role}")
            for role, parts in (
                ("query", attention.query),
                ("key", attention.key),
                ("value", attention.value),
            )
        )
        contexts.append(_head(bb, query, key, value, attention.scores, name))
    outputs = [
        _product(bb, context, product, f"{prefix}_head_{head}_output")
        for head, (context, product) in enumerate(zip(contexts, attention.output, strict=True))
    ]
    if attention.accumulate is None:
        return outputs[0]
    mul, shift, offset = attention.accumulate
    return Accumulate(mul, offset, shift).write(bb, outputs, f"{prefix}_heads")


def _head(bb: BlockBuilder, query: Expr, key: Expr, value: Expr, scores: Scores, name: str) -> Expr:
    sums = IntegerMatmul(transpose_b=True).write(bb, [query, key], f"{name}_similarity")
    bound = shape_of(query)[-1] * 128 * 128
    rows = _rescaled(bb, sums, scores.scores, bound, f"{name}_scores")
    rows = ItaMax(scores.softmax).write(bb, [rows], f"{name}_softmax")
    sums = IntegerMatmul().write(bb, [rows, value], f"{name}_mixture")
    bound = shape_of(value)[0] * 255 * 128
    return _rescaled(bb, sums, scores.context, bound, f"{name}_context")


def _rescaled(bb: BlockBuilder, x: Expr, scale: Scale, bound: int, name: str) -> Var:
    mul, shift, offset = scale
    op = Rescale(np.asarray(mul), np.asarray(offset), shift, _INT8, bound=bound)
    return op.write(bb, [x], name)


def _feed_forward(bb: BlockBuilder, x: Expr, part: FeedForward, name: str) -> Expr:
    y = _product(bb, x, part.inner, f"{name}_inner", part.clip)
    if part.gelu is not None:
        y = ItaActivation(part.gelu).write(bb, [y], f"{name}_gelu")
    y = _product(bb, y, part.outer, f"{name}_outer")
    return _normed(bb, x, y, part.residual, part.norm, name)


def _normed(
    bb: BlockBuilder, x: Expr, y: Expr, residual: Scale, norm: AffineNorm, name: str
) -> Expr:
    mul, shift, offset = residual
    total = Add(MulShift((mul,), (shift,), (offset,))).write(bb, [x, y], f"{name}_add")
    return PulpAffineNorm(norm).write(bb, [total], f"{name}_norm")


def _product(
    bb: BlockBuilder, x: Expr, product: Projection, name: str, clip: tuple[int, int] = _INT8
) -> Var:
    requant = MulShift((product.mul,), (product.shift,), (product.add,))
    return Dense(product.weight, product.bias, requant, clip).write(bb, [x], name)
