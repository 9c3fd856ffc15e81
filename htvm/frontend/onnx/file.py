"""Reading and checking the bytes of an ONNX file; the result is a `OnnxGraph`."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from htvm.files import model_bytes
from htvm.frontend.limits import Budget, Limits
from htvm.frontend.onnx.flattening import decide, inlined, needed, ordered, used
from htvm.frontend.onnx.fold import folded
from htvm.frontend.onnx.graph import Attribute, OnnxGraph, OnnxNode
from htvm.frontend.onnx.interface import Sizes, declared_tensor
from htvm.frontend.onnx.schema import newest_opset
from htvm.frontend.onnx.tensors import (
    DAMAGED,
    WIDER,
    array_of,
    external_bytes,
    is_external,
    text_of,
)

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto

    from byoc_dory.layers import Array

_log = logging.getLogger(__name__)

_OLDEST_OPSET = 7
_MOST_ROUNDS = 100  # of folding, after each of which branches are taken


def read_file(
    path: Path,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    limits: Limits | None = None,
) -> OnnxGraph:
    """Read and check an ONNX file.

    Args:
        path: path of the file; external data are beside it.
        dimensions: sizes of named dimensions that the file leaves open.
        shapes: shapes of inputs that the file leaves open, by name. Those that neither option has
            come from ``inputs.npz`` beside the file, if that is there. An input without elements
            is no input of the result, but a constant.
        limits: what reading it may take; by default those of `Limits`.

    Raises:
        ModelError: the file cannot be read, is not an ONNX model, or contradicts itself: sizes,
            names, cycles, values outside their type, missing external data.
        UnsupportedError: the file needs an unsupported feature: dynamic shapes, control flow,
            sparse tensors, operators of a later standard, more than the limits.
    """
    model = _parsed(path)
    budget = Budget(limits or Limits(), path.name)
    for _ in range(_MOST_ROUNDS):
        graph = _graph(model, path, dimensions or {}, shapes or {}, budget)
        branches = [node for node in graph.nodes if node.op == "If" and not node.domain]
        if not branches:
            return graph
        decide(model, branches, graph.constants)
    raise UnsupportedError(
        f"branches that lead to others, more than {_MOST_ROUNDS} deep",
        where=path.name,
        hint="export the network without control flow",
    )


def open_batches(path: Path) -> dict[str, str]:
    """Return the inputs of a file whose first size is open, with its name, which may be "".

    Raises:
        ModelError: the file cannot be read, or is not an ONNX model.
    """
    graph = _parsed(path).graph
    initialised = {constant.name for constant in graph.initializer}
    batches = {}
    for value in graph.input:
        sizes = value.type.tensor_type.shape.dim
        declared = bool(sizes) and sizes[0].HasField("dim_value")
        if value.name not in initialised and sizes and not declared:
            batches[value.name] = str(sizes[0].dim_param)
    return batches


def _graph(
    model: ModelProto,
    path: Path,
    dimensions: Mapping[str, int],
    shapes: Mapping[str, Sequence[int]],
    budget: Budget,
) -> OnnxGraph:
    """Return the graph of a file, in which nodes If may be left; arguments as of `read_file`."""
    graph, source = model.graph, path.name
    if not graph.output:
        raise ModelError("the graph has no outputs", where=source, hint=DAMAGED)
    if graph.sparse_initializer:
        raise UnsupportedError("sparse initialisers", where=source, hint="store them densely")
    constants = _constants(graph, path, budget)
    nodes, more = _nodes(graph, source)
    twice = [name for name in more if name in constants]
    if twice:
        raise ModelError(f"two tensors are called '{twice[0]}'", where=source)
    constants.update(more)
    entering = [value for value in graph.input if value.name not in constants]
    sizes = Sizes(path, tuple(value.name for value in entering), dimensions, shapes)
    sizes.check({d.dim_param for each in graph.input for d in each.type.tensor_type.shape.dim})
    inputs = tuple(declared_tensor(value, "input", source, sizes) for value in entering)
    outputs = tuple(declared_tensor(value, "output", source, None) for value in graph.output)
    for kind, named in (("inputs", inputs), ("outputs", outputs)):
        _check_names(kind, [item.name for item in named], source)
    for item in inputs:
        if item.shape is not None and 0 in item.shape:
            _log.info(
                "input '%s' of shape %s has no elements, and is left out", item.name, item.shape
            )
            constants[item.name] = np.zeros(item.shape, np.float32)
    inputs = tuple(item for item in inputs if item.name not in constants)
    known = {item.name for item in inputs} | set(constants)
    results, opset = [item.name for item in outputs], _opset(model, source)
    kept = needed(ordered(nodes, known, source), results, known, source)
    budget.grant(constant.size for constant in constants.values())
    kept = used(folded(model, kept, constants, inputs, opset, budget), results)
    _check_narrow(kept, constants)
    return OnnxGraph(
        source,
        opset,
        inputs,
        outputs,
        kept,
        constants,
        budget,
        declared=sizes.inputs,
        self_contained=not any(map(is_external, graph.initializer)),
    )


def _parsed(path: Path) -> ModelProto:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import ModelProto

    data = model_bytes(path, "an ONNX model", "a protobuf")
    try:
        model: ModelProto = ModelProto.FromString(data)
    except (DecodeError, RuntimeError, ValueError, RecursionError) as error:
        raise ModelError(f"not an ONNX model: {error}", where=path.name, hint=DAMAGED) from error
    if not model.HasField("graph"):
        raise ModelError("not an ONNX model: there is no graph", where=path.name, hint=DAMAGED)
    return inlined(model, path.name)


def _opset(model: ModelProto, source: str) -> int:
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            if entry.version < _OLDEST_OPSET:
                raise UnsupportedError(
                    f"opset {entry.version}", where=source, hint=f"at least {_OLDEST_OPSET}"
                )
            if entry.version > newest_opset():
                raise UnsupportedError(
                    f"opset {entry.version}",
                    where=source,
                    hint=f"at most {newest_opset()}: export with an earlier one",
                )
            return int(entry.version)
    raise ModelError("no version of the standard operators is given", where=source, hint=DAMAGED)


def _constants(graph: GraphProto, path: Path, budget: Budget) -> dict[str, Array]:
    constants: dict[str, Array] = {}
    budget.granted["decoded_bytes"] = 4 * external_bytes(graph.initializer, path.parent)
    for tensor in graph.initializer:
        where = f"initialiser '{text_of(tensor.name, path.name)}' of {path.name}"
        if tensor.name in constants:
            raise ModelError(f"two initialisers are called '{tensor.name}'", where=path.name)
        constants[tensor.name] = array_of(tensor, where, path.parent, budget)
    return constants


# ------------------------------------------------------------------------------ nodes


def _nodes(graph: GraphProto, source: str) -> tuple[list[OnnxNode], dict[str, Array]]:
    """Return the nodes in the order of the file, and the values of nodes ``Constant``."""
    nodes: list[OnnxNode] = []
    constants: dict[str, Array] = {}
    for index, proto in enumerate(graph.node):
        place = f"{index + 1} of {len(graph.node)} in {source}"
        node = _node(proto, index, place)
        if node.op == "Constant" and not node.domain:
            constants[node.outputs[0]] = _constant(node)
        else:
            nodes.append(node)
    return nodes, constants


def _node(proto: NodeProto, index: int, place: str) -> OnnxNode:
    for text in (proto.name, proto.op_type, proto.domain, *proto.input, *proto.output):
        text_of(text, f"node {place}")
    where = f"node '{proto.name}' ({proto.op_type}), {place}"
    outputs = tuple(proto.output)
    if not proto.op_type or not outputs or not outputs[0]:
        raise ModelError("a node without operator or output", where=where, hint=DAMAGED)
    given = [item for item in proto.attribute if proto.op_type != "If" or not item.HasField("g")]
    names = [text_of(item.name, where) for item in given]
    twice = _repeated(names)
    if twice is not None:
        raise ModelError(f"attribute '{twice}' is given twice", where=where, hint=DAMAGED)
    attributes = {item.name: _attribute(item, where) for item in given}
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    return OnnxNode(
        proto.op_type, domain, proto.name, index, tuple(proto.input), outputs, attributes, place
    )


def _attribute(proto: AttributeProto, where: str) -> Attribute:
    from onnx import AttributeProto as Kind

    if proto.type == Kind.INT:
        return int(proto.i)
    if proto.type == Kind.FLOAT:
        return float(proto.f)
    if proto.type == Kind.STRING:
        return bytes(proto.s).decode("utf-8", "replace")
    if proto.type == Kind.INTS:
        return tuple(int(item) for item in proto.ints)
    if proto.type == Kind.FLOATS:
        return tuple(float(item) for item in proto.floats)
    if proto.type == Kind.STRINGS:
        return tuple(bytes(item).decode("utf-8", "replace") for item in proto.strings)
    if proto.type == Kind.TENSOR:
        return array_of(proto.t, f"attribute '{proto.name}' of {where}", None)
    raise UnsupportedError(
        f"attribute '{proto.name}' is a graph or another thing that is not data",
        where=where,
        hint="control flow is not supported; export the model without it",
    )


def _constant(node: OnnxNode) -> Array:
    for name, value in node.set_attributes.items():
        if name == "value" and isinstance(value, np.ndarray):
            return value
        if name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
        if name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
    raise node.unsupported("a constant that is no tensor of numbers")


def _check_narrow(nodes: Sequence[OnnxNode], constants: Mapping[str, Array]) -> None:
    """Check that constants of 4 bits are quantized data.

    Raises:
        UnsupportedError: another operator reads one.
    """
    for node in nodes:
        for index, name in enumerate(node.inputs):
            dtype = constants[name].dtype.name if name in constants else ""
            if dtype in WIDER and node.op not in ("DequantizeLinear", "QuantizeLinear"):
                raise node.unsupported(
                    f"constant input {index} of {dtype}", "let a DequantizeLinear read it"
                )


def _check_names(kind: str, names: Sequence[str], source: str) -> None:
    if "" in names:
        raise ModelError(f"one of the {kind} has no name", where=source, hint=DAMAGED)
    twice = _repeated(names)
    if twice is not None:
        raise ModelError(f"two {kind} are called '{twice}'", where=source, hint=DAMAGED)


def _repeated(names: Sequence[str]) -> str | None:
    """Return the first name that occurs again; ``None`` if none does."""
    counts = Counter(names)
    return next((name for name in names if counts[name] > 1), None)
