"""Running an operator by its own definition, compiled by TVM for this machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.layers import Array
from patterns.ops.onnxruntime.binary import OnnxBinary
from patterns.ops.table_map import TableLookup
from patterns.ops.tflite.binary import TfliteBinary

if TYPE_CHECKING:
    from htvm.aot.reference import Reference
    from patterns.op import Op

_TOGETHER = 32
"""Samples that a program for elements computes at a time, as calling it takes the longest."""


def evaluate(op: Op, parts: Sequence[Array]) -> Array:
    """Return the results of an operator for a batch of samples.

    Args:
        op: operator whose tensors have a batch of 1.
        parts: one array per input, ``[N, ...]`` in the operator's own layout.

    Returns:
        The results, ``[N, ...]``.
    """
    if isinstance(op, TableLookup) and op.rows == 1:
        # Unrolled networks have hundreds of tables, each of which would be compiled.
        return op.compute(parts)
    count = _TOGETHER if _is_elementwise(op, parts) else 1
    types = tuple(((count, *part.shape[1:]), part.dtype.name) for part in parts)
    return run_each(_compiled(op, types), parts, count)


def _is_elementwise(op: Op, parts: Sequence[Array]) -> bool:
    """Whether each element of the result depends on those at its place only."""
    if not isinstance(op, OnnxBinary | TfliteBinary) or op.a is not None or op.b is not None:
        return False
    return len({part.shape for part in parts}) == 1


def run_each(run: Reference, parts: Sequence[Array], count: int = 1) -> Array:
    """What a program for ``count`` samples computes for each of a batch."""
    size = len(parts[0])
    # The last group is filled up with the first sample.
    index = np.append(np.arange(size), np.zeros(-size % count, np.int64))
    groups = ([part[some] for part in parts] for some in index.reshape(-1, count))
    return np.concatenate([run(group)[0] for group in groups])[:size]


@lru_cache(maxsize=1024)
def _compiled(op: Op, types: tuple[tuple[tuple[int, ...], str], ...]) -> Reference:
    """Return the operator, compiled; the search for scales runs the same operators repeatedly."""
    import tvm
    from tvm import relax

    from htvm.aot.reference import build_llvm_reference

    builder = relax.BlockBuilder(tvm.IRModule())
    params = [relax.Var(f"x{i}", relax.TensorType(*kind)) for i, kind in enumerate(types)]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(op.write(builder, params, "evaluated"))
        builder.emit_func_output(result)
    return build_llvm_reference(builder.get())
