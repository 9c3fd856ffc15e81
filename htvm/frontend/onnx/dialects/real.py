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
    moves,
    pools,
    real_layers,
    shapes,
    transposed,
    unary,
)
from htvm.frontend.onnx.affine.reader import Handler, Reader
from htvm.frontend.onnx.dialect import DialectReader, Network, Options
from htvm.frontend.onnx.dialects.reader import has_only, holds_integers
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode

_log = logging.getLogger(__name__)

_HANDLERS: Mapping[str, Handler] = {
    **shapes.HANDLERS,
    **moves.HANDLERS,
    **unary.HANDLERS,
    **islands.HANDLERS,
    **real_layers.HANDLERS,
    **transposed.HANDLERS,
    "Gemm": gemm.real_gemm,
    "Resize": pools.resize,
}


def _marks(graph: OnnxGraph, options: Options) -> tuple[OnnxNode, ...]:
    """Return the first node if all are standard operators and nothing says they hold integers."""
    plain = has_only(graph, _HANDLERS) and not holds_integers(graph, options)
    return graph.nodes[:1] if plain else ()


def _read(graph: OnnxGraph, _: Options) -> Network:
    network = Reader(graph, _HANDLERS, "in networks of reals").read()
    _log.warning(
        "%s computes in float32, which only the host can; htvm.quantize makes int8 models of float "
        "networks", graph.source,
    )  # fmt: skip
    return network


REAL = DialectReader(_HANDLERS, _marks, _read)
