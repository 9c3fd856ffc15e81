"""A decoding step extended by the scores of the next token."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax

from htvm.model import TensorInfo
from patterns.ops.dense import LinearSums
from patterns.ops.moves.reshape import Reshape
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import Expr

    from byoc_dory.layers import Array
    from htvm.model import Model

__all__ = ["with_scores"]

_NAME = "scores"


def with_scores(step: Model, output: Array) -> Model:
    """Return the step with one more output: ``output @ hidden``, int32 [1, vocabulary].

    Args:
        step: a decoding step, whose first output is the hidden state [1, 1, width].
        output: row of each token, int8 [vocabulary, width].
    """
    params = [
        relax.Var(str(var.name), relax.TensorType(shape_of(var), dtype_of(var)))
        for var in step.module["main"].params
    ]
    known: dict[str, Expr] = {str(param.name): param for param in params}
    name, results = _free(_NAME, {*known, *step.graph.nodes}), step.graph.results
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            for node in step.graph.in_order:
                inputs = [known[each] for each in node.inputs]
                known[node.name] = node.op.write(bb, inputs, node.name)
            row = Reshape((1, output.shape[1])).write(bb, [known[results[0]]], f"{name}_row")
            sums = LinearSums(output, np.zeros(len(output), "int32")).write(bb, [row], name)
            returned = [bb.emit_output(each) for each in (*map(known.get, results), sums)]
        bb.emit_func_output(relax.Tuple(returned))
    info = TensorInfo(_free(_NAME, {each.name for each in step.outputs}), (1, len(output)), "int32")
    # It is no longer the content of a file.
    outputs = (*step.outputs, info)
    return replace(step, module=bb.finalize(), outputs=outputs, file_sha256="")


def _free(name: str, taken: set[str]) -> str:
    """Return the name, with underscores behind it if it is taken."""
    while name in taken or f"{name}_row" in taken:
        name += "_"
    return name
