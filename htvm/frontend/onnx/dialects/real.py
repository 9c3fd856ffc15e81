"""Standard operators on reals, computed in float32 as the file says.

Everything runs on the host, in software floating point.  The handlers are those of the parts that
a quantized network leaves in reals, and in addition layers whose weights are reals.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from htvm.frontend.onnx.affine import (
    gemm,
    islands,
    joins,
    moves,
    pools,
    real_layers,
    shapes,
    transposed,
    unary,
)
from htvm.frontend.onnx.affine.reader import Handler, Reader
from htvm.frontend.onnx.affine.values import Value
from htvm.frontend.onnx.dialect import Network, Options
from htvm.frontend.onnx.dialects.evidence import has_only, holds_integers
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode
from htvm.frontend.registration import registered

_log = logging.getLogger(__name__)

_HANDLERS: Mapping[str, Handler] = {
    **shapes.HANDLERS,
    **joins.HANDLERS,
    **moves.HANDLERS,
    **unary.HANDLERS,
    **islands.HANDLERS,
    **real_layers.HANDLERS,
    **transposed.HANDLERS,
    "Gemm": gemm.real_gemm,
    "Resize": pools.resize,
}

HANDLERS = registered("ONNX, reals", _HANDLERS, Value)
"""Handlers by operator."""


def marks(graph: OnnxGraph, options: Options) -> tuple[OnnxNode, ...]:
    """Return the first node if all are standard operators and nothing says they hold integers."""
    plain = has_only(graph, HANDLERS) and not holds_integers(graph, options)
    return graph.nodes[:1] if plain else ()


def read(graph: OnnxGraph, options: Options) -> Network:
    """Return the network; errors as in `htvm.frontend.onnx.dialect.Reader`."""
    del options
    network = Reader(graph, HANDLERS, "in networks of reals").read()
    _log.warning(
        "%s computes in float32, which only the host can; htvm.quantize makes int8 models of float "
        "networks", graph.source,
    )  # fmt: skip
    return network
