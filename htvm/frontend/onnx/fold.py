"""Folding: nodes whose results are known before the network runs become constants.

Exporters compute sizes in the graph (Shape, Gather, Concat before a Reshape), and spell constants
out as arithmetic.  One pass over the graph evaluates all of that, so that no handler has to.  What
is constant is computed by the reference implementation of the package onnx; shapes of computed
tensors come from its shape inference.  Dequantized constants stay as they are, because readers need
their integers and scales.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from htvm.frontend.onnx.graph import OnnxTensor

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TypeProto

    from byoc_dory.layers import Array
    from htvm.frontend.limits import Budget
    from htvm.frontend.onnx.graph import OnnxNode

_log = logging.getLogger(__name__)

_SMALL = 1 << 10  # elements of a constant that shapes may be computed from

# What the package raises for nodes that contradict themselves.
_IMPOSSIBLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip

# Operations that count for an element, where the package computes each by itself.
_COSTS = dict.fromkeys(("Erf", "GatherND", "Sigmoid"), 256)

FOLDED = frozenset(
    """
    Abs Add And ArgMax ArgMin BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip
    Concat ConstantOfShape CumSum Div Equal Erf Exp Expand EyeLike Flatten Floor Gather
    GatherElements GatherND Gemm Greater GreaterOrEqual Identity IsInf IsNaN Less LessOrEqual Log
    MatMul Max Mean Min Mod Mul Neg Not OneHot Or Pad Pow QuantizeLinear Range Reciprocal
    ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Round Sigmoid Sign Slice
    Split Sqrt Squeeze Sub Sum Tanh Tile Transpose Trilu Unsqueeze Where Xor
    """.split()
)
"""Operators that are evaluated if all their inputs are constant."""


def folded(
    model: ModelProto,
    nodes: Sequence[OnnxNode],
    constants: MutableMapping[str, Array],
    inputs: Sequence[OnnxTensor],
    opset: int,
    budget: Budget,
) -> list[OnnxNode]:
    """Return the nodes that are left, and enter the results of the others into ``constants``.

    Args:
        model: the file; nodes know their place in it.
        nodes: nodes in an order in which they can be computed.
        constants: constants by name.
        inputs: inputs of the network, with their shapes.
        opset: version of the standard that the file follows.
        budget: counts elements and operations of the results.

    Raises:
        UnsupportedError: the results are beyond the limits.
    """
    from onnx import helper

    types = {
        item.name: helper.make_tensor_type_proto(_element_type(np.dtype(item.dtype)), item.shape)
        for item in inputs
    }
    asks_sizes = any(node.op in ("Shape", "Size") and not node.domain for node in nodes)
    remaining = []
    for node in nodes:
        proto = model.graph.node[node.index]
        results = _results(proto, node, constants, types, opset, budget)
        if results is not None:
            constants.update(results)
            continue
        remaining.append(node)
        if asks_sizes:
            given = [name for name in node.inputs if name in types]
            types.update(_types(proto, constants, {name: types[name] for name in given}, opset))
    if len(remaining) < len(nodes):
        _log.info("%d nodes of known results folded", len(nodes) - len(remaining))
    return remaining


def results_of(
    node: OnnxNode, constants: Mapping[str, Array], opset: int, budget: Budget
) -> dict[str, Array] | None:
    """Return the results by name of a node that is in no file; ``None`` if they are not known.

    Quantization is left to the reader, as whose it is decides how it rounds.  Arguments and errors
    as of `folded`.
    """
    if node.op not in FOLDED - {"QuantizeLinear"}:
        return None
    from onnx import helper

    given: dict[str, Any] = {n: value for n, value in node.set_attributes.items() if value != ()}
    proto = helper.make_node(node.op, node.inputs, node.outputs, **given)
    return _results(proto, node, constants, {}, opset, budget)


def _results(
    proto: NodeProto,
    node: OnnxNode,
    constants: Mapping[str, Array],
    types: Mapping[str, TypeProto],
    opset: int,
    budget: Budget,
) -> dict[str, Array] | None:
    """Return a node's results by name; ``None`` if they are not known."""
    if node.domain:
        return None
    if node.op in ("Shape", "Size") and len(node.inputs) == 1:
        name = node.inputs[0]
        shape = constants[name].shape if name in constants else _sizes(types.get(name))
        return None if shape is None else {node.outputs[0]: _shape(node, shape)}
    if node.op not in FOLDED or not all(name in constants for name in node.inputs if name):
        return None
    if any(constants[name].dtype.kind not in "iufb" for name in node.inputs if name):
        return None
    found = _evaluated(proto, node, constants, opset, budget)
    if found is None or any(item.dtype.kind not in "iufb" for item in found):
        return None
    return {name: item for name, item in zip(node.outputs, found, strict=False) if name}


def _shape(node: OnnxNode, shape: tuple[int, ...]) -> Array:
    if node.op == "Size":
        return np.asarray(math.prod(shape), np.int64)
    given = node.set_attributes
    start, end = given.get("start", 0), given.get("end")
    assert isinstance(start, int) and (end is None or isinstance(end, int))
    return np.asarray(shape[start:end], np.int64)


def _evaluated(
    proto: NodeProto,
    node: OnnxNode,
    constants: Mapping[str, Array],
    opset: int,
    budget: Budget,
) -> list[Array] | None:
    """Return the results of a node with constant inputs; ``None`` if it cannot be computed.

    Then the node stays, and its handler says what is wrong with it.
    """
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    values = {name: constants[name] for name in proto.input if name}
    types = _types(proto, values, {}, opset)
    results = [types[name] for name in proto.output if name in types]
    shapes = [_sizes(item) for item in results]
    texts = any(item.tensor_type.elem_type == TensorProto.STRING for item in results)
    if texts or None in shapes or len(results) < sum(map(bool, proto.output)):
        return None
    known_shapes = [shape for shape in shapes if shape is not None]
    for shape in known_shapes:
        node.check_axes(shape)
    elements = sum(map(math.prod, known_shapes))
    if node.op == "Range":  # whose size the package onnx computes in the type of its operands
        elements = max(elements, _count(*(constants[name] for name in proto.input)))
    read = sum(constants[name].size for name in proto.input if name)
    budget.spend("folded_elements", elements, node.where)
    budget.spend("folded_operations", _COSTS.get(node.op, 1) * (read + elements), node.where)
    if node.op in ("Gemm", "MatMul"):
        first = constants[node.inputs[0]]
        inner = max(first.shape[-2:], default=1) if node.op == "Gemm" else first.shape[-1]
        budget.spend("folded_operations", elements * inner, node.where)
    graph = helper.make_graph(
        [proto],
        "constant",
        [
            helper.make_tensor_value_info(name, _element_type(value.dtype), value.shape)
            for name, value in values.items()
        ],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in proto.output if n],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [np.asarray(item) for item in ReferenceEvaluator(model).run(None, values)]
    except _IMPOSSIBLE as error:  # whatever the file's contradictions lead to
        _log.debug("%s of constants cannot be computed: %s", proto.op_type, error)
        return None


def _count(start: Array, limit: Array, delta: Array) -> int:
    """Return how many numbers an arithmetic progression has."""
    first, last, step = (float(item.sum()) for item in (start, limit, delta))  # each has one
    count = (last - first) / step if step else 0.0
    return max(math.ceil(count), 0) if math.isfinite(count) else 0


# ------------------------------------------------------------------------------ shapes


def _types(
    proto: NodeProto,
    constants: Mapping[str, Array],
    types: Mapping[str, TypeProto],
    opset: int,
) -> dict[str, TypeProto]:
    """Return the types of a node's outputs, as far as the package onnx can infer them.

    It is asked for each node by itself: over a whole graph it would follow the values of shapes
    element by element through all lists, however long the file says that these are.

    Args:
        proto: the node.
        constants: constants by name.
        types: types of its other inputs.
        opset: version of the standard that the file follows.
    """
    from onnx import checker, defs, helper, numpy_helper, shape_inference

    parts = next((item.i for item in proto.attribute if item.name == "num_outputs"), None)
    if parts not in (None, len(proto.output)):  # the package would make this many types
        return {}
    values = {name: constants[name] for name in proto.input if name in constants}
    given = {
        name: helper.make_tensor_type_proto(_element_type(value.dtype), value.shape)
        for name, value in values.items()
    }
    # The sizes of results depend on values, too.
    data = {
        name: numpy_helper.from_array(np.asarray(value, order="C"), name)
        for name, value in values.items()
        if value.size <= _SMALL
    }
    imports = [helper.make_opsetid("", opset)]
    impossible = (defs.SchemaError, checker.ValidationError, shape_inference.InferenceError)
    try:
        schema = defs.get_schema(proto.op_type, opset, proto.domain)
        return shape_inference.infer_node_outputs(
            schema, proto, {**types, **given}, data, opset_imports=imports
        )
    # Contradictions are for handlers to name, and operators that are not of the standard.
    except (*_IMPOSSIBLE, *impossible) as error:
        _log.debug("the shapes of %s are not known: %s", proto.op_type, error)
        return {}


def _sizes(found: TypeProto | None) -> tuple[int, ...] | None:
    """Return the shape of a tensor if all of its sizes are known."""
    if found is None or not found.tensor_type.HasField("shape"):
        return None
    sizes = found.tensor_type.shape.dim
    # Sizes below zero are those of 64 bits that overflowed.
    if not all(size.HasField("dim_value") and size.dim_value >= 0 for size in sizes):
        return None
    return tuple(int(size.dim_value) for size in sizes)


def _element_type(dtype: np.dtype) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype))
