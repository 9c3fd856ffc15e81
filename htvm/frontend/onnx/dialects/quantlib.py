"""quantlib's integers: layers, then multiply, add, divide, floor, clip; casts between types.

``y = clip(floor((acc * mul + add) / divisor))`` with a power of two, which floors; a half added to
the quotient makes it round.  Eight-bit initialisers are two's complement, also where they are
declared as UINT8.
"""

from __future__ import annotations

from byoc_dory.layers import Array
from htvm.frontend.onnx.dialect import Network, Options
from htvm.frontend.onnx.dialects.chains import CHAINS
from htvm.frontend.onnx.dialects.evidence import bare_chains, floor_chains, holds_integers
from htvm.frontend.onnx.dialects.reader import IntegerReader
from htvm.frontend.onnx.dialects.standard import STANDARD
from htvm.frontend.onnx.dialects.values import Value
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode
from htvm.frontend.registration import registered

HANDLERS = registered("ONNX, quantlib", {**STANDARD, **CHAINS}, Value | Array)


def marks(graph: OnnxGraph, options: Options) -> tuple[OnnxNode, ...]:
    """Return the floors after a scaled division; none if there is a bare one, which is DIANA's."""
    if bare_chains(graph) or not holds_integers(graph, options):
        return ()
    return floor_chains(graph)


def read(graph: OnnxGraph, options: Options) -> Network:
    """Return the network; errors as in `htvm.frontend.onnx.dialect.Reader`."""
    return IntegerReader(graph, options, HANDLERS, "quantlib's integers", "uint8").read()
