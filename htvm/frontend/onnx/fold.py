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
from typing import TYPE_CHECKING

import numpy as np

from htvm.frontend.onnx.graph import OnnxTensor

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from byoc_dory.layers import Array
    from htvm.frontend.onnx.graph import OnnxNode

__all__ = ["FOLDED", "folded"]

_log = logging.getLogger(__name__)

_MOST_ELEMENTS = 1 << 26
_SMALL = 1 << 10  # elements of a constant that shapes may be computed from

# What the package raises for nodes that contradict themselves.
_IMPOSSIBLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RuntimeError,
    TypeError, ValueError,
)  # fmt: skip

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
) -> list[OnnxNode]:
    """Return the nodes that are left, and enter the results of the others into ``constants``.

    Args:
        model: the file; nodes know their place in it.
        nodes: nodes in an order in which they can be computed.
        constants: constants by name.
        inputs: inputs of the network, with their shapes.
        opset: version of the standard that the file follows.
    """
    shapes = {item.name: item.shape for item in inputs if item.shape is not None}
    left = _once(model, nodes, constants, shapes, opset)
    while any(node.op in ("Shape", "Size") and not node.domain for node in left):
        known = _inferred(model, left, constants, inputs, opset)
        after = _once(model, left, constants, {**known, **shapes}, opset)
        if len(after) == len(left):
            break
        left = after
    if len(left) < len(nodes):
        _log.info("%d nodes of known results folded", len(nodes) - len(left))
    return left


def _once(
    model: ModelProto,
    nodes: Sequence[OnnxNode],
    constants: MutableMapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
    opset: int,
) -> list[OnnxNode]:
    left = []
    for node in nodes:
        results = _results(model.graph.node[node.index], node, constants, shapes, opset)
        if results is None:
            left.append(node)
        else:
            constants.update(results)
    return left


def _results(
    proto: NodeProto,
    node: OnnxNode,
    constants: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
    opset: int,
) -> dict[str, Array] | None:
    """Return a node's results by name; ``None`` if they are not known."""
    if node.domain:
        return None
    if node.op in ("Shape", "Size") and len(node.inputs) == 1:
        name = node.inputs[0]
        shape = constants[name].shape if name in constants else shapes.get(name)
        return None if shape is None else {node.outputs[0]: _shape(node, shape)}
    if node.op not in FOLDED or not all(name in constants for name in node.inputs if name):
        return None
    if any(constants[name].dtype.kind not in "iufb" for name in node.inputs if name):
        return None
    found = _evaluated(proto, constants, opset)
    if found is None or any(
        not isinstance(item, np.ndarray)
        or item.dtype.kind not in "iufb"
        or item.size > _MOST_ELEMENTS
        for item in found
    ):
        return None
    return {name: item for name, item in zip(node.outputs, found, strict=False) if name}


def _shape(node: OnnxNode, shape: tuple[int, ...]) -> Array:
    if node.op == "Size":
        return np.asarray(math.prod(shape), np.int64)
    given = node.set_attributes
    start, end = given.get("start", 0), given.get("end")
    assert isinstance(start, int) and (end is None or isinstance(end, int))
    return np.asarray(shape[start:end], np.int64)


def _evaluated(proto: NodeProto, constants: Mapping[str, Array], opset: int) -> list[Array] | None:
    """Return the results of a node with constant inputs; ``None`` if it cannot be computed.

    Then the node stays, and its handler says what is wrong with it.
    """
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    names = [name for name in dict.fromkeys(proto.input) if name]
    values = {name: constants[name] for name in names}
    if sum(value.size for value in values.values()) > _MOST_ELEMENTS or _grows(proto, values):
        return None
    graph = helper.make_graph(
        [proto],
        "constant",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(values[name].dtype), values[name].shape
            )
            for name in names
        ],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in proto.output if n],
    )
    alone = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [np.asarray(item) for item in ReferenceEvaluator(alone).run(None, values)]
    except _IMPOSSIBLE as error:  # whatever the file's contradictions lead to
        _log.debug("%s of constants cannot be computed: %s", proto.op_type, error)
        return None


def _grows(proto: NodeProto, values: Mapping[str, Array]) -> bool:
    """Whether sizes among the inputs ask for more than a constant may have."""
    if proto.op_type not in ("ConstantOfShape", "Expand", "Tile", "Range", "Pad", "OneHot"):
        return False
    numbers = [np.abs(item.astype("float64")) for item in values.values() if item.size <= 16]
    return math.prod(float(max(n, 1.0)) for item in numbers for n in item.flat) > _MOST_ELEMENTS


def _inferred(
    model: ModelProto,
    nodes: Sequence[OnnxNode],
    constants: Mapping[str, Array],
    inputs: Sequence[OnnxTensor],
    opset: int,
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of computed tensors, as far as the package onnx can infer them."""
    from onnx import helper, numpy_helper, shape_inference

    needed = {name for node in nodes for name in node.inputs if name in constants}
    types = helper.np_dtype_to_tensor_dtype
    entering = [
        helper.make_tensor_value_info(item.name, types(np.dtype(item.dtype)), item.shape)
        for item in inputs
    ]
    entering += [
        helper.make_tensor_value_info(name, types(constants[name].dtype), constants[name].shape)
        for name in needed
        if constants[name].size > _SMALL
    ]
    graph = helper.make_graph(
        [model.graph.node[node.index] for node in nodes],
        "shapes",
        entering,
        [],
        [
            numpy_helper.from_array(np.asarray(constants[name], order="C"), name)
            for name in needed
            if constants[name].size <= _SMALL
        ],
    )
    imports = [entry for entry in model.opset_import if entry.domain not in ("", "ai.onnx")]
    copy = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *imports])
    try:
        inferred = shape_inference.infer_shapes(copy, data_prop=True)
    except _IMPOSSIBLE as error:  # contradictions are for the handlers to name
        _log.debug("shapes cannot be inferred: %s", error)
        return {}
    result = {}
    for value in inferred.graph.value_info:
        sizes = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in sizes):
            result[value.name] = tuple(int(size.dim_value) for size in sizes)
    return result
