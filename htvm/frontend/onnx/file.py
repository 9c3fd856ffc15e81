"""Reading and checking the bytes of an ONNX file; the result is a `OnnxGraph`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import ModelError, UnsupportedError
from htvm.frontend.onnx.graph import Attribute, OnnxGraph, OnnxNode, OnnxTensor
from htvm.frontend.onnx.order import needed, ordered
from htvm.frontend.onnx.tensors import array_of, dtype_name, is_external

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

    from byoc_dory.layers import Array

__all__ = ["read_file"]

# Largest size of a protobuf message in bytes.
_MOST_BYTES = 2**31 - 1
_OLDEST_OPSET = 7

_DAMAGED = "the file is damaged, or no ONNX model; fetch or export it again"


def read_file(path: Path, dimensions: Mapping[str, int] | None = None) -> OnnxGraph:
    """Read and check an ONNX file.

    Args:
        path: path of the file; external data are beside it.
        dimensions: sizes of named dimensions that the file leaves open.

    Raises:
        ModelError: the file cannot be read, is not an ONNX model, or contradicts itself: sizes,
            names, cycles, values outside their type, missing external data.
        UnsupportedError: the file needs an unsupported feature: dynamic shapes, control flow,
            functions, sparse tensors.
    """
    model = _parsed(path)
    graph, source = model.graph, path.name
    if not graph.output:
        raise ModelError("the graph has no outputs", where=source, hint=_DAMAGED)
    if model.functions:
        raise UnsupportedError(
            f"functions, as '{model.functions[0].name}'", where=source, hint="inline them"
        )
    if graph.sparse_initializer:
        raise UnsupportedError("sparse initialisers", where=source, hint="store them densely")
    constants = _constants(graph, path)
    nodes, more = _nodes(graph, source)
    twice = [name for name in more if name in constants]
    if twice:
        raise ModelError(f"two tensors are called '{twice[0]}'", where=source)
    constants.update(more)
    inputs = tuple(
        _type(value, "input", source, dimensions or {}, needs_shape=True)
        for value in graph.input
        if value.name not in constants
    )
    outputs = tuple(
        _type(value, "output", source, dimensions or {}, needs_shape=False)
        for value in graph.output
    )
    for kind, named in (("inputs", inputs), ("outputs", outputs)):
        _check_names(kind, [item.name for item in named], source)
    _check_dimensions(graph, dimensions or {}, source)
    known = {item.name for item in inputs} | set(constants)
    kept = needed(ordered(nodes, known, source), [item.name for item in outputs], known, source)
    return OnnxGraph(
        source,
        _opset(model, source),
        inputs,
        outputs,
        kept,
        constants,
        alone=not any(map(is_external, graph.initializer)),
    )


def _parsed(path: Path) -> ModelProto:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import ModelProto

    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= _MOST_BYTES else b""
    except (OSError, ValueError) as error:
        raise ModelError(
            f"the file cannot be read: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            hint="check the path",
        ) from error
    if size > _MOST_BYTES:
        raise ModelError(
            f"not an ONNX model: {size:,} bytes are more than a protobuf can have",
            where=str(path),
        )
    try:
        model: ModelProto = ModelProto.FromString(data)
    except (DecodeError, RuntimeError, ValueError, RecursionError) as error:
        raise ModelError(f"not an ONNX model: {error}", where=path.name, hint=_DAMAGED) from error
    if not model.HasField("graph"):
        raise ModelError("not an ONNX model: there is no graph", where=path.name, hint=_DAMAGED)
    return model


def _opset(model: ModelProto, source: str) -> int:
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            if entry.version < _OLDEST_OPSET:
                raise UnsupportedError(
                    f"opset {entry.version}", where=source, hint=f"at least {_OLDEST_OPSET}"
                )
            return int(entry.version)
    raise ModelError("no version of the standard operators is given", where=source, hint=_DAMAGED)


def _constants(graph: GraphProto, path: Path) -> dict[str, Array]:
    constants: dict[str, Array] = {}
    for tensor in graph.initializer:
        where = f"initialiser '{_text(tensor.name, path.name)}' of {path.name}"
        if tensor.name in constants:
            raise ModelError(f"two initialisers are called '{tensor.name}'", where=path.name)
        constants[tensor.name] = array_of(tensor, where, path.parent)
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
        _text(text, f"node {place}")
    where = f"node '{proto.name}' ({proto.op_type}), {place}"
    outputs = tuple(proto.output)
    if not proto.op_type or not outputs or not outputs[0]:
        raise ModelError("a node without operator or output", where=where, hint=_DAMAGED)
    attributes = {_text(item.name, where): _attribute(item, where) for item in proto.attribute}
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    return OnnxNode(
        proto.op_type, domain, proto.name, index, tuple(proto.input), outputs, attributes, place
    )


def _text(value: object, where: str) -> str:
    """Return a text of the file: the decoder returns bytes that are not UTF-8 unchanged."""
    if not isinstance(value, str):
        raise ModelError(f"a name that is no text: {value!r:.60}", where=where, hint=_DAMAGED)
    return value


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
    for name, value in node.attributes.items():
        if name == "value" and isinstance(value, np.ndarray):
            return value
        if name in ("value_int", "value_ints"):
            return np.asarray(value, np.int64)
        if name in ("value_float", "value_floats"):
            return np.asarray(value, np.float32)
    raise node.unsupported("a constant that is no tensor of numbers")


# ------------------------------------------------------------------------------ interface


def _type(
    value: ValueInfoProto,
    kind: str,
    source: str,
    dimensions: Mapping[str, int],
    *,
    needs_shape: bool,
) -> OnnxTensor:
    where = f"{kind} '{_text(value.name, f'an {kind} of {source}')}' of {source}"
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        raise UnsupportedError("it is no tensor", where=where)
    dtype = dtype_name(tensor.elem_type, where)
    sizes: list[int] = []
    for axis, size in enumerate(tensor.shape.dim):
        name = _text(size.dim_param, where)
        if size.HasField("dim_value") and size.dim_value > 0:
            sizes.append(int(size.dim_value))
        elif name in dimensions:
            sizes.append(int(dimensions[name]))
        elif needs_shape:
            label = f"'{name}'" if name else "which has no name"
            hint = "export the model with static shapes"
            if name:
                hint = f'give its size: htvm.load(..., dimensions={{"{name}": 1}})'
            raise UnsupportedError(f"dimension {axis}, {label}, is dynamic", where=where, hint=hint)
        else:
            return OnnxTensor(value.name, None, dtype)
    if not tensor.HasField("shape"):
        if needs_shape:
            raise UnsupportedError(
                "the file does not say its shape", where=where, hint="export it with static shapes"
            )
        return OnnxTensor(value.name, None, dtype)
    return OnnxTensor(value.name, tuple(sizes), dtype)


def _check_names(kind: str, names: Sequence[str], source: str) -> None:
    for name in names:
        if not name:
            raise ModelError(f"one of the {kind} has no name", where=source, hint=_DAMAGED)
        if names.count(name) > 1:
            raise ModelError(f"two {kind} are called '{name}'", where=source, hint=_DAMAGED)


def _check_dimensions(graph: GraphProto, dimensions: Mapping[str, int], source: str) -> None:
    names = {size.dim_param for value in graph.input for size in value.type.tensor_type.shape.dim}
    for name, size in dimensions.items():
        if name not in names:
            raise ModelError(
                f"no input has a dimension called '{name}'",
                where=source,
                hint=f"it has {', '.join(sorted(filter(None, names))) or 'none with a name'}",
            )
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ModelError(f"{size!r} is no size for dimension '{name}'", where=source)
