"""PULP's integers: layers followed by `RequantShift`, and integer transformers.

All tensors are declared as reals and hold integers; int32 holds every intermediate.
`patterns.ops.pulp` defines what the operators compute.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from byoc_dory.layers.rowwise import ItaSoftmax
from htvm.frontend.onnx.dialect import Options
from htvm.frontend.onnx.dialects.chains import CHAINS, exponent_of
from htvm.frontend.onnx.dialects.reader import (
    bare_chains,
    floor_chains,
    has_only,
    holds_integers,
    integer_reader,
)
from htvm.frontend.onnx.dialects.standard import STANDARD
from htvm.frontend.onnx.dialects.values import Handler, IntegerNode, Live, Scaled, Value, limits_of
from htvm.frontend.onnx.dialects.write import Scaling, live, requantize
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode
from patterns.op import INT8
from patterns.ops.integer.rescale import Rescale
from patterns.ops.pulp.elementwise import PulpDivide, PulpGelu, PulpHardSwish, PulpQuotient
from patterns.ops.pulp.ita import ItaMax
from patterns.ops.pulp.norm import PulpAffineNorm, PulpLayerNorm, PulpRmsNorm, PulpSoftmax


def _levels(node: OnnxNode) -> int:
    name = "n_levels_out" if "n_levels_out" in node.attributes else "n_levels"
    levels = node.int32(name)
    if not 2 <= levels <= 2**16 or levels & (levels - 1):
        raise node.unsupported(f"{levels} levels", "a power of two, at most 65536")
    return levels


def _requant_shift(node: IntegerNode) -> Value:
    """``clip((x * mul + add + D / 2) // D)``: the half rounds."""
    value = node.value(0)
    if isinstance(value, Scaled):
        raise node.unsupported("a RequantShift of a scaled tensor", "requantize once")
    mul, add = node.integer_array(1), node.integer_array(2)
    divisor = node.integer("div") if "div" in node.attributes else node.integer("D")
    shift, levels = exponent_of(node, divisor), _levels(node)
    clip = (0, levels - 1) if not node.int32("signed", 1) else (-levels // 2, levels // 2 - 1)
    return requantize(node, value, Scaling(mul, add + divisor // 2, shift, clip))


def _softmax(node: IntegerNode) -> Live:
    coefficients = (node.int32("coeffA"), node.int32("coeffB"), node.int32("coeffC"))
    op = PulpSoftmax(coefficients, node.int32("log2"), node.int32("n_levels"))
    return node.apply(op, _bytes(node), bound=op.levels - 1)


def _softmax_levels(node: OnnxNode) -> int:
    levels = node.int32("n_levels")
    if not 2 <= levels <= 256:
        raise node.unsupported(f"{levels} levels", "2 to 256")
    return levels


def _ita_max(node: IntegerNode) -> Live:
    source, levels = _bytes(node), _softmax_levels(node)
    op = ItaMax(ItaSoftmax(group=0, numerator=(levels - 1) * 256))
    return node.apply(op, source, bound=levels - 1, stem="ita_max")


def _ita_partial_max(node: IntegerNode) -> Live:
    source, levels = _bytes(node), _softmax_levels(node)
    width = node.int32("group_width")
    if width < 1 or source.shape[-1] % width:
        raise node.unsupported(
            f"rows of {source.shape[-1]} in groups of {width}", "a whole number of groups"
        )
    op = ItaMax(ItaSoftmax(group=width, numerator=(levels // 2 - 1) * 256), "int8")
    return node.apply(op, source, bound=levels // 2, stem="ita_partial_max")


def _bytes(node: IntegerNode) -> Live:
    source = live(node, 0)
    if source.activation.dtype not in ("int8", "uint8"):
        raise node.unsupported(
            f"an input of {source.activation.dtype}", "int8 or uint8: requantize before"
        )
    return source


def _byte_levels(node: OnnxNode) -> None:
    """Check that a norm's results are all of int8, if the node says how many levels they have."""
    levels = node.int32("n_levels", 256)
    if levels != 256:
        raise node.unsupported(f"{levels} levels", "256, which is int8")


def _layer_norm(node: IntegerNode) -> Live:
    _byte_levels(node)
    source, weight, bias = _bytes(node), node.integer_array(1), node.integer_array(2)
    return node.apply(PulpLayerNorm.of(weight, bias, node.int32("D")), source)


def _rms_norm(node: IntegerNode) -> Live:
    _byte_levels(node)
    source, weight = _bytes(node), node.integer_array(1)
    return node.apply(PulpRmsNorm.of(weight, node.int32("D")), source)


def _no_norm(node: IntegerNode) -> Live:
    _byte_levels(node)
    source, weight, bias = _bytes(node), node.integer_array(1), node.integer_array(2)
    mul, divisor = node.int32("mul"), node.int32("D")
    rows = [part.shape[:-1] for part in (weight, bias)]
    if all(math.prod(shape) == 1 for shape in rows):
        return node.apply(PulpAffineNorm.of(weight, bias, mul, divisor), source)
    # A number for each element, or for each row: a rescaling.
    try:
        shape = np.broadcast_shapes(source.shape, weight.shape, bias.shape)
    except ValueError:
        shape = ()
    if shape != source.shape:
        raise node.damaged(
            f"weights of shape {list(weight.shape)}, bias of shape {list(bias.shape)}, for "
            f"{list(source.shape)}"
        )
    factor, summand = (part.astype("int64") * mul for part in (weight, bias))
    return node.apply(Rescale(factor, summand, exponent_of(node, divisor), INT8), source)


def _gelu(node: IntegerNode) -> Live:
    source, op = live(node, 0), PulpGelu(node.int32("b"), node.int32("one"))
    bound = _bound(node, source.bound * (abs(op.one) + op.b * op.b))
    return node.apply(op, source, bound=bound)


def _hard_swish(node: IntegerNode) -> Live:
    source = live(node, 0)
    op = PulpHardSwish(*(node.int32(name) for name in ("three", "six", "one_over_six")))
    bound = _bound(node, source.bound * max(op.six, 1) * max(abs(op.sixth), 1))
    return node.apply(op, source, bound=bound)


def _true_division(node: IntegerNode) -> Live:
    source = live(node, 0)
    delta, eps, eta, y = (node.int32(name) for name in ("Delta", "eps", "eta", "y"))
    op = PulpDivide(delta * eta, eta * y + eps)
    if op.denominator <= 0:
        raise node.unsupported(f"a division by {op.denominator}", "eta * y + eps must be positive")
    bound = _bound(node, -(-source.bound * abs(op.numerator) // op.denominator))
    return node.apply(op, source, bound=bound)


def _quotient(node: IntegerNode) -> Live:
    delta, eps, eta = (node.int32(name) for name in ("Delta", "eps", "eta"))
    a, b = live(node, 0), live(node, 1)
    return node.apply(PulpQuotient(delta * eta, eta, eps), a, b)


def _bound(node: OnnxNode, bound: int) -> int:
    if bound > limits_of("int32")[1]:
        raise node.unsupported(
            f"a result that may reach {bound}", "it must fit 32 bits; requantize before"
        )
    return bound


_OWN: Mapping[str, Handler] = {
    "ITAMax": _ita_max,
    "ITAPartialMax": _ita_partial_max,
    "IntegerDiv": _quotient,
    "RequantShift": _requant_shift,
    "TrueIntegerDiv": _true_division,
    "iGELU": _gelu,
    "iHardswish": _hard_swish,
    "iLayerNorm": _layer_norm,
    "iNoNorm": _no_norm,
    "iRMSNorm": _rms_norm,
    "iSoftmax": _softmax,
}
_PLAIN: Mapping[str, Handler] = {
    **STANDARD,
    **{name: CHAINS[name] for name in ("Add", "Cast", "Mul", "Sub")},
}
_HANDLERS: Mapping[str, Handler] = {**_PLAIN, **_OWN}


def _marks(graph: OnnxGraph, options: Options) -> tuple[OnnxNode, ...]:
    """Return PULP's own operators; without any, the nodes of a standard graph with integers."""
    own = tuple(node for node in graph.nodes if node.op in (*_OWN, "IntegerMean"))
    if own or not graph.nodes:
        return own
    standard = has_only(graph, _PLAIN) and holds_integers(graph, options)
    return graph.nodes[:1] if standard and not (floor_chains(graph) + bare_chains(graph)) else ()


PULP = integer_reader(_HANDLERS, _marks, "PULP's integers")
