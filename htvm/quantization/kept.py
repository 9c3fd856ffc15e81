"""Operators that retargeting keeps: they compute on as the source has them, on the host.

Their inputs come out in the source's own quantization, as outputs of the network do, and what they
compute enters the network as an input of it does.  What lies between is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htvm.quantization.copied import run_copied, write_copied
from htvm.quantization.evaluate import evaluate
from htvm.quantization.graph import Array, Operator
from htvm.quantization.moves import from_source, to_source

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Var

__all__ = ["KEPT", "run_kept", "write_kept"]

KEPT = ("table", "tflite_binary", "tflite_mean", "onnx_binary")
"""Kinds of nodes that are kept, beside convolutions of several groups, moves that fill with
something else than the number zero, and islands (`htvm.quantization.islands`)."""


def run_kept(op: Operator, inputs: Sequence[Array], channel_first: bool) -> Array:
    """The int8 output of a kept operator for a batch of its inputs, ``[N, ...]``."""
    assert op.origin is not None
    kind, attrs = op.origin.kind, op.origin.attrs
    parts = [to_source(x, channel_first) for x in inputs]
    if op.origin.op is not None:
        out = evaluate(op.origin.op, parts)
    elif kind == "island":
        out = attrs["island"].run(parts)
    else:
        out = run_copied(op.origin, parts)
    return from_source(out, channel_first)


def write_kept(builder: BlockBuilder, op: Operator, inputs: Sequence[Var]) -> Var:
    """The operator as the source has it."""
    assert op.origin is not None
    if op.origin.op is not None:
        return op.origin.op.write(builder, inputs, op.name)
    return write_copied(builder, op.origin, inputs, op.name)
