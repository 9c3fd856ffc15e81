"""DIANA's integers: layers, then divide, floor, clip with powers of two, which become shifts.

Layers of the analog core have a gain and a converter before their scaling: divide by the gain,
floor, clip to [-32, 31], multiply, add, divide, floor, clip; `analog` turns these into one
operator.
"""

from __future__ import annotations

from byoc_dory.layers import Array
from htvm.frontend.onnx.dialect import Network, Options
from htvm.frontend.onnx.dialects.chains import CHAINS
from htvm.frontend.onnx.dialects.evidence import bare_chains, holds_integers
from htvm.frontend.onnx.dialects.reader import IntegerReader
from htvm.frontend.onnx.dialects.standard import STANDARD
from htvm.frontend.onnx.dialects.values import Value
from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode
from htvm.frontend.registration import registered

HANDLERS = registered("ONNX, DIANA", {**STANDARD, **CHAINS}, Value | Array)


def marks(graph: OnnxGraph, options: Options) -> tuple[OnnxNode, ...]:
    """Return the floors after a division whose dividend has not been multiplied."""
    return bare_chains(graph) if holds_integers(graph, options) else ()


def read(graph: OnnxGraph, options: Options) -> Network:
    """Return the network; errors as in `htvm.frontend.onnx.dialect.Reader`."""
    return IntegerReader(graph, options, HANDLERS, "DIANA's integers").read()
