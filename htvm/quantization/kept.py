"""Operators that retargeting keeps: they compute on as the source has them, on the host.

Their inputs come out in the source's own quantization, as outputs of the network do, and what they
compute enters the network as an input of it does.  What lies between is free.
"""

from __future__ import annotations

from collections.abc import Sequence

from htvm.quantization.evaluate import evaluate
from htvm.quantization.graph import Array, Operator
from htvm.quantization.moves import from_source, to_source
from patterns.ops.onnxruntime.binary import OnnxBinary
from patterns.ops.table_map import Table
from patterns.ops.tflite.binary import TfliteBinary
from patterns.ops.tflite.mean import TfliteMean

__all__ = ["KEPT", "run_kept"]

KEPT = (OnnxBinary, Table, TfliteBinary, TfliteMean)
"""Operators that are kept, beside convolutions of several groups, moves that fill with
something else than the number zero, and islands (`htvm.quantization.islands`)."""


def run_kept(op: Operator, inputs: Sequence[Array], channel_first: bool) -> Array:
    """The int8 output of a kept operator for a batch of its inputs, ``[N, ...]``."""
    assert op.origin is not None
    parts, made = [to_source(x, channel_first) for x in inputs], op.origin.op
    out = op.origin.attrs["island"].run(parts) if made is None else evaluate(made, parts)
    return from_source(out, channel_first)
