"""Decoding steps rewritten: caches that stay in place, and the scores of the next token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from tvm import relax

from htvm.language.interface import StepInterface
from htvm.model import TensorInfo
from patterns.ops.convert import Convert
from patterns.ops.dense import LinearSums
from patterns.ops.moves.concat import Concat
from patterns.ops.moves.reshape import Reshape
from patterns.ops.moves.slice import Slice
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Expr

    from byoc_dory.layers import Array
    from htvm.model import Model
    from patterns.reading.node import Node

__all__ = ["in_place", "with_scores"]

_NAME = "scores"
_POSITIONS = 2  # the axis of positions
_Results: TypeAlias = "Callable[[BlockBuilder, Mapping[str, Expr]], Sequence[Expr]]"


def in_place(step: Model) -> Model:
    """Return the step with the token's keys and values as outputs, instead of whole caches.

    The caches are the same before and after a step but for the token's position, so that whoever
    keeps them only needs to write this position.

    Args:
        step: a decoding step that returns whole caches (see `StepInterface`).

    Raises:
        ModelError: it is no decoding step.
    """
    sizes = StepInterface.of(step.inputs, step.outputs, f"model '{step.name}'")
    graph = step.graph
    caches = graph.results[1:]

    def results(bb: BlockBuilder, known: Mapping[str, Expr]) -> list[Expr]:
        found = [known[graph.results[0]]]
        earlier = [str(each.name) for each in step.module["main"].params[-sizes.caches :]]
        for cache, before in zip(caches, earlier, strict=True):
            joined = graph.made_by(cache, Concat)
            if joined is not None and joined.inputs[:-1] == (before,):
                found.append(known[joined.inputs[-1]])
                continue
            begin, shape = (0, 0, sizes.length, 0), (1, sizes.heads, 1, sizes.head)
            last = Slice.every(begin, shape)
            found.append(last.write(bb, [known[cache]], _free(f"{cache}_last", known)))
        return found

    shape = (1, sizes.heads, 1, sizes.head)
    outputs = (step.outputs[0], *(replace(info, shape=shape) for info in step.outputs[1:]))
    return replace(
        step,
        module=_rewritten(step, results),
        outputs=outputs,
        file_sha256="",
        state=tuple(info.name for info in step.inputs[-sizes.caches :]),
    )


def with_scores(step: Model, output: Array) -> Model:
    """Return the step with one more output: ``output @ hidden``, int32 [1, vocabulary].

    Args:
        step: a decoding step, whose first output is the hidden state [1, 1, width].
        output: row of each token, int8 [vocabulary, width].
    """
    graph = step.graph

    def results(bb: BlockBuilder, known: Mapping[str, Expr]) -> list[Expr]:
        name = _free(_NAME, known)
        row = Reshape((1, output.shape[1])).write(bb, [known[graph.results[0]]], f"{name}_row")
        sums = LinearSums(output, np.zeros(len(output), "int32")).write(bb, [row], name)
        return [*(known[each] for each in graph.results), sums]

    info = TensorInfo(_free(_NAME, {each.name for each in step.outputs}), (1, len(output)), "int32")
    # It is no longer the content of a file.
    outputs = (*step.outputs, info)
    return replace(step, module=_rewritten(step, results), outputs=outputs, file_sha256="")


def _rewritten(step: Model, results: _Results) -> IRModule:
    """Return the step's module with other results, which are made of its tensors by name.

    Conversions that change no byte are left out: files convert a token's key and value to the scale
    of the cached ones, from which theirs often differ by less than a rounding.
    """
    params = [
        relax.Var(str(var.name), relax.TensorType(shape_of(var), dtype_of(var)))
        for var in step.module["main"].params
    ]
    known: dict[str, Expr] = {str(param.name): param for param in params}
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            for node in step.graph.in_order:
                inputs = [known[each] for each in node.inputs]
                if _keeps_bytes(node):
                    known[node.name] = inputs[0]
                    continue
                known[node.name] = node.op.write(bb, inputs, node.name)
            returned = [bb.emit_output(each) for each in results(bb, known)]
        bb.emit_func_output(relax.Tuple(returned))
    return bb.finalize()


def _keeps_bytes(node: Node) -> bool:
    table = node.op.table() if isinstance(node.op, Convert) else None
    if table is None or (*node.input_dtypes, node.output_dtype) != ("int8", "int8"):
        return False
    return bool((table == np.arange(256)).all())


def _free(name: str, taken: Mapping[str, object] | set[str]) -> str:
    """Return the name, with underscores behind it if it is taken."""
    while name in taken or f"{name}_row" in taken:
        name += "_"
    return name
