"""Parts of a network that retargeting copies without analysing them, as islands.

An island computes one int8 tensor from other int8 tensors through reals, wider integers, tensors
with a batch other than 1, or operators that no accelerator's scheme has: a layer norm between
dequantization and quantization, a product of two activations, a dense layer over many rows.  It is
copied from the source, runs on the host in the source's own quantization, and is a single operator
to everything else here: its results come from its own definition, compiled by TVM for this machine.
Parts that two islands share are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers import Add, Array, OnnxRequant, TfliteRequant
from patterns.op import INT8, Op, Range, Scale
from patterns.ops.convert import Convert, TableLookup
from patterns.ops.dense import Linear, LinearSums
from patterns.ops.float32.combine import RealMatmul
from patterns.ops.float32.quantize import Dequantize
from patterns.ops.integer.combine import IntegerMatmul
from patterns.ops.onnxruntime.average import OnnxAverage, OnnxSoftmax
from patterns.ops.onnxruntime.binary import OnnxBinary
from patterns.ops.scaling import zero_point_of as zero_point_of_requant
from patterns.ops.tflite.averages import TfliteMean
from patterns.ops.tflite.binary import TfliteBinary
from patterns.ops.tflite.softmax import TfliteSoftmax
from patterns.reading.building import GraphBuilder
from patterns.reading.node import Node

if TYPE_CHECKING:
    from htvm.aot.reference import Reference
    from patterns.op import Op, TensorType

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


KEPT = (OnnxBinary, TableLookup, TfliteBinary, TfliteMean)
"""Operators kept in the source's form, besides grouped convolutions, other fills, and islands.

These are convolutions of several groups, and moves that fill with something other than the number
zero.
"""

SOFTMAXES = (OnnxSoftmax, TfliteSoftmax)
"""Softmaxes that retargeting supports as the last operators of a network."""

_PRODUCTS = (IntegerMatmul, Linear, LinearSums, RealMatmul)


def is_foreign(node: Node) -> bool:
    """Whether an operator belongs to an island.

    Retargeting does not support it, or not all of its tensors are int8 with a batch of 1.
    """
    if {*node.input_dtypes, node.output_dtype} != {"int8"}:
        return True
    if any(shape[:1] != (1,) for shape in (*node.input_shapes, node.output_shape)):
        return True
    known = node.scaled is not None or node.op.scale is Scale.PASSES
    return not known and not isinstance(node.op, (*KEPT, *SOFTMAXES, OnnxAverage))


def _hands_on(node: Node) -> bool:
    """Whether its result has the same scale and zero point as its input."""
    return node.op.scale is Scale.PASSES and not isinstance(node.op, Convert)


def _is_end(node: Node) -> bool:
    """Whether other operators than islands can read its result."""
    return node.output_dtype == "int8" and node.output_shape[:1] == (1,)


@dataclass(frozen=True, eq=False)
class Island(Op):
    """The operators that compute one int8 tensor; one alone is kept as it is.

    Its inputs are converted to the source's quantization, as outputs of the network are, and its
    result is converted back, as inputs are.  The scales in between are free.

    Attributes:
        inputs: names of the int8 tensors that it is computed from.
        nodes: all operators inside, in execution order.
        macs: multiply-accumulates of its matrix products.
        clip: inclusive range of the result.
    """

    kind = "island"

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    macs: int = 0
    clip: Range = INT8

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `Op.result_of`."""
        return self.nodes[-1].result

    def add_to(self, builder: GraphBuilder, inputs: Sequence[str]) -> None:
        """Add to a graph those of its operators that no other island has added, which read
        ``inputs`` there."""
        known = dict(zip(self.inputs, inputs, strict=True))
        for node in self.nodes:
            if node.name not in builder.types:
                builder.apply(node.op, [known.get(name, name) for name in node.inputs], node.name)

    def run(self, parts: Sequence[Array]) -> Array:
        """Return its result for a batch, ``[N, ...]`` in the module's own layout."""
        if len(self.nodes) == 1:
            (node,), known = self.nodes, dict(zip(self.inputs, parts, strict=True))
            return evaluate(node.op, [known[name] for name in node.inputs])
        return run_each(self._reference, parts)

    @cached_property
    def _reference(self) -> Reference:
        from htvm.aot.reference import build_llvm_reference

        types = {name: kind for node in self.nodes for name, kind in node.read}
        builder = GraphBuilder((name, types[name]) for name in self.inputs)
        self.add_to(builder, self.inputs)
        return build_llvm_reference(builder.graph([self.nodes[-1].name]).module)


def find_islands(
    nodes: Sequence[Node], extra_results: Sequence[str] = ()
) -> tuple[Mapping[str, Island], frozenset[str]]:
    """Return the islands by the tensor they compute, and the names of operators only used inside.

    Args:
        nodes: the operators of a network with int8 inputs and outputs.
        extra_results: names of operators to keep although retargeting supports their kind.

    Raises:
        UnsupportedError: an island reads no int8 tensor.
    """
    foreign = {node.name: node for node in nodes if is_foreign(node) or node.name in extra_results}
    islands = {}
    for node in foreign.values():
        if not _is_end(node):
            continue
        names = {item.name for item in _operators_inside(node, foreign)}
        inside = tuple(item for item in foreign.values() if item.name in names)
        read = (name for item in inside for name in item.inputs if name not in names)
        inputs = tuple(dict.fromkeys(read))
        if not inputs:
            raise UnsupportedError("it reads no int8 tensor", where=f"operator '{node.name}'")
        islands[node.name] = Island(inputs, inside, sum(_macs(item) for item in inside))
    return islands, frozenset(foreign) - frozenset(islands)


def _operators_inside(node: Node, foreign: Mapping[str, Node]) -> Iterator[Node]:
    """Yield an operator, and those before it back to int8 tensors."""
    seen, to_visit = {node.name}, [node]
    while to_visit:
        item = to_visit.pop()
        yield item
        for name in item.inputs:
            before = foreign.get(name)
            if before is not None and not _is_end(before) and name not in seen:
                seen.add(name)
                to_visit.append(before)


def _macs(node: Node) -> int:
    inner = node.input_shapes[0][-1] if isinstance(node.op, _PRODUCTS) else 0
    return int(np.prod(node.output_shape)) * inner


# ------------------------------------------------------------------------------ zero points


def zero_point_of(node: Node, nodes: Mapping[str, Node], zeros: Mapping[str, int]) -> int:
    """Return the zero point of a result.

    It comes from the operator, or from its input; for an island also from those before, else from
    those that read it; else it is 0.

    Args:
        node: the operator.
        nodes: all operators of the network, by name.
        zeros: zero points of the tensors known so far.
    """
    if node.name in zeros:
        return zeros[node.name]
    if node.op.zero_point is not None:
        return node.op.zero_point
    requant = getattr(node.op, "requant", None)
    found = None if requant is None else zero_point_of_requant(requant)
    if found is not None:
        return found
    if _hands_on(node):
        source = node.inputs[0]
        return zeros[source] if source in zeros else zero_point_of(nodes[source], nodes, zeros)
    return next(_taken_as(node.name, nodes), 0) if is_foreign(node) else 0


def _taken_as(name: str, nodes: Mapping[str, Node]) -> Iterator[int]:
    for node in nodes.values():
        if name not in node.inputs:
            continue
        requant = None if node.scaled is None else node.scaled.requant
        if isinstance(node.layer, Add) and isinstance(requant, TfliteRequant | OnnxRequant):
            yield requant.input_zero_points[node.inputs.index(name)]
        elif isinstance(node.op, Dequantize):
            yield node.op.input_zero_point
        elif _hands_on(node):
            yield from _taken_as(node.name, nodes)
