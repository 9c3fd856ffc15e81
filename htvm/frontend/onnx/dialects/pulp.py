"""PULP's integers: layers followed by `RequantShift`, and integer transformers.

All tensors are declared as reals and hold integers; int32 holds every intermediate.  Operator
definitions are in `patterns`: `rescale`, `integer_softmax`, `integer_norm`, `integer_activation`.
"""

from __future__ import annotations

from collections.abc import Mapping

from byoc_dory.layers.rowwise import ItaSoftmax
from htvm.frontend.onnx.dialects.chains import CHAINS, exponent_of
from htvm.frontend.onnx.dialects.evidence import bare_chains, floor_chains, has_only, holds_integers
from htvm.frontend.onnx.dialects.movement import MOVEMENT
from htvm.frontend.onnx.dialects.products import PRODUCTS
from htvm.frontend.onnx.dialects.reader import Handler, IntegerReader
from htvm.frontend.onnx.dialects.values import Live, Scaled, Value, limits_of
from htvm.frontend.onnx.dialects.write import requantize
from htvm.frontend.onnx.graph import Graph, Node
from htvm.frontend.onnx.network import Network, Options
from patterns.ops.pulp import activation as integer_activation
from patterns.ops.pulp import ita
from patterns.ops.pulp import norm as integer_norm
from patterns.ops.pulp import softmax as integer_softmax

__all__ = ["HANDLERS", "marks", "read"]


def _levels(node: Node) -> int:
    name = "n_levels_out" if "n_levels_out" in node.attributes else "n_levels"
    levels = node.integer(name)
    if not 2 <= levels <= 2**16 or levels & (levels - 1):
        raise node.unsupported(f"{levels} levels", "a power of two, at most 65536")
    return levels


def _requant_shift(reader: IntegerReader, node: Node) -> Value:
    """``clip((x * mul + add + D / 2) // D)``: the half rounds."""
    value = reader.value(node, 0)
    if isinstance(value, Scaled):
        raise node.unsupported("a RequantShift of a scaled tensor", "requantize once")
    mul, add = reader.integers(node, 1), reader.integers(node, 2)
    divisor = node.integer("div") if "div" in node.attributes else node.integer("D")
    shift, levels = exponent_of(node, divisor), _levels(node)
    clip = (0, levels - 1) if not node.integer("signed", 1) else (-levels // 2, levels // 2 - 1)
    return requantize(reader, node, value, mul, add + divisor // 2, shift, clip)


def _softmax(reader: IntegerReader, node: Node) -> Live:
    source = _bytes(reader, node)
    coefficients = (node.integer("coeffA"), node.integer("coeffB"), node.integer("coeffC"))
    log2, levels = node.integer("log2"), node.integer("n_levels")
    return reader.write(
        node,
        "integer_softmax",
        (source,),
        source.shape,
        "uint8",
        lambda bb, x, name: integer_softmax.integer_softmax(
            bb, x[0], coefficients, log2, levels, name=name
        ),
        bound=levels - 1,
    )


def _softmax_levels(node: Node) -> int:
    levels = node.integer("n_levels")
    if not 2 <= levels <= 256:
        raise node.unsupported(f"{levels} levels", "2 to 256")
    return levels


def _ita_max(reader: IntegerReader, node: Node) -> Live:
    source, levels = _bytes(reader, node), _softmax_levels(node)
    parameters = ItaSoftmax(group=0, numerator=(levels - 1) * 256)
    return reader.write(
        node,
        "ita_max",
        (source,),
        source.shape,
        "uint8",
        lambda bb, x, name: ita.ita_softmax(bb, x[0], parameters, name=name),
        bound=levels - 1,
    )


def _ita_partial_max(reader: IntegerReader, node: Node) -> Live:
    source, levels = _bytes(reader, node), _softmax_levels(node)
    width = node.integer("group_width")
    if width < 1 or source.shape[-1] % width:
        raise node.unsupported(
            f"rows of {source.shape[-1]} in groups of {width}", "a whole number of groups"
        )
    parameters = ItaSoftmax(group=width, numerator=(levels // 2 - 1) * 256)
    return reader.write(
        node,
        "ita_partial_max",
        (source,),
        source.shape,
        "int8",
        lambda bb, x, name: ita.ita_softmax(bb, x[0], parameters, name=name, dtype="int8"),
        bound=levels // 2,
    )


def _bytes(reader: IntegerReader, node: Node) -> Live:
    live = reader.live(node, 0)
    if live.activation.dtype not in ("int8", "uint8"):
        raise node.unsupported(
            f"an input of {live.activation.dtype}", "int8 or uint8: requantize before"
        )
    return live


def _layer_norm(reader: IntegerReader, node: Node) -> Live:
    source, weight, bias = _bytes(reader, node), reader.integers(node, 1), reader.integers(node, 2)
    divisor = node.integer("D")
    return reader.write(
        node,
        "layer_norm",
        (source,),
        source.shape,
        "int8",
        lambda bb, x, name: integer_norm.layer_norm(bb, x[0], weight, bias, divisor, name=name),
    )


def _rms_norm(reader: IntegerReader, node: Node) -> Live:
    source, weight, divisor = _bytes(reader, node), reader.integers(node, 1), node.integer("D")
    return reader.write(
        node,
        "rms_norm",
        (source,),
        source.shape,
        "int8",
        lambda bb, x, name: integer_norm.rms_norm(bb, x[0], weight, divisor, name=name),
    )


def _no_norm(reader: IntegerReader, node: Node) -> Live:
    source, weight, bias = _bytes(reader, node), reader.integers(node, 1), reader.integers(node, 2)
    divisor, mul = node.integer("D"), node.integer("mul")
    return reader.write(
        node,
        "affine_norm",
        (source,),
        source.shape,
        "int8",
        lambda bb, x, name: integer_norm.affine_norm(
            bb, x[0], weight, bias, mul, divisor, name=name
        ),
    )


def _gelu(reader: IntegerReader, node: Node) -> Live:
    source, b, one = reader.live(node, 0), node.integer("b"), node.integer("one")
    return reader.write(
        node,
        "gelu",
        (source,),
        source.shape,
        "int32",
        lambda bb, x, name: integer_activation.gelu(bb, x[0], b, one, name=name),
        bound=_bound(node, source.bound * (abs(one) + b * b)),
    )


def _hard_swish(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    three, six, sixth = (node.integer(name) for name in ("three", "six", "one_over_six"))
    return reader.write(
        node,
        "hard_swish",
        (source,),
        source.shape,
        "int32",
        lambda bb, x, name: integer_activation.hard_swish(bb, x[0], three, six, sixth, name=name),
        bound=_bound(node, source.bound * max(six, 1) * max(abs(sixth), 1)),
    )


def _true_division(reader: IntegerReader, node: Node) -> Live:
    source = reader.live(node, 0)
    delta, eps, eta, y = (node.integer(name) for name in ("Delta", "eps", "eta", "y"))
    numerator, denominator = delta * eta, eta * y + eps
    if denominator <= 0:
        raise node.unsupported(f"a division by {denominator}", "eta * y + eps must be positive")
    return reader.write(
        node,
        "divide",
        (source,),
        source.shape,
        "int32",
        lambda bb, x, name: integer_activation.divide(bb, x[0], numerator, denominator, name=name),
        bound=_bound(node, -(-source.bound * abs(numerator) // denominator)),
    )


def _bound(node: Node, bound: int) -> int:
    if bound > limits_of("int32")[1]:
        raise node.unsupported(
            f"a result that may reach {bound}", "it must fit 32 bits; requantize before"
        )
    return bound


_OWN: Mapping[str, Handler] = {
    "ITAMax": _ita_max,
    "ITAPartialMax": _ita_partial_max,
    "RequantShift": _requant_shift,
    "TrueIntegerDiv": _true_division,
    "iGELU": _gelu,
    "iHardswish": _hard_swish,
    "iLayerNorm": _layer_norm,
    "iNoNorm": _no_norm,
    "iRMSNorm": _rms_norm,
    "iSoftmax": _softmax,
}
_STANDARD: Mapping[str, Handler] = {
    **MOVEMENT,
    **PRODUCTS,
    **{name: CHAINS[name] for name in ("Add", "Mul", "Cast")},
}
HANDLERS: Mapping[str, Handler] = {**_STANDARD, **_OWN}
"""What each operator means."""


def marks(graph: Graph, options: Options) -> tuple[Node, ...]:
    """PULP's own operators; without any, a graph of standard ones that holds integers."""
    own = tuple(node for node in graph.nodes if node.op in (*_OWN, "IntegerMean"))
    if own or not graph.nodes:
        return own
    standard = has_only(graph, _STANDARD) and holds_integers(graph, options)
    return graph.nodes[:1] if standard and not (floor_chains(graph) + bare_chains(graph)) else ()


def read(graph: Graph, options: Options) -> Network:
    """The network; errors as in `htvm.frontend.onnx.dialect.Reader`."""
    return IntegerReader(graph, options, HANDLERS, "PULP's integers").read()
