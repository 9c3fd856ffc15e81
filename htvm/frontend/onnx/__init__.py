"""ONNX files: common code that checks them, and one reader for each dialect.

`file` reads and checks the protobuf, `graph` is the form that readers see, `dialect` has the
readers and recognises which one a file needs, `loader` makes a `Model` from a reader's result.

A `dialect.DialectReader` says which nodes only its dialect has (none: not its file), and reads a
graph as a `dialect.Network` of operators of `patterns.ops` (`htvm.frontend.operators.Applied`).
Enter it in `dialect.READERS`; nothing else has to know it.  What attributes say is read alike by
all (`forms`, `windows`).  Errors name the node with ``node.where``, and are `UnsupportedError`
where the file is sound.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_dory.emit.text import c_identifier
from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.plain import plain
from htvm.files import file_sha256
from htvm.frontend.integerize import integer_graph, scheme_of
from htvm.frontend.onnx.dialect import reader_of
from htvm.frontend.onnx.file import read_file
from htvm.frontend.onnx.interface import input_types_of
from htvm.frontend.onnx.schema import check_node
from htvm.frontend.operators import info_of
from htvm.model import Model, model_name

if TYPE_CHECKING:
    from htvm.frontend.limits import Limits
    from htvm.frontend.onnx.dialect import Network, Options
    from htvm.frontend.onnx.graph import OnnxGraph
    from htvm.frontend.operators import Activation

__all__ = ["load_onnx"]


_log = logging.getLogger(__name__)


def load_onnx(
    path: Path,
    name: str | None = None,
    *,
    dialect: str | None = None,
    input_types: Mapping[str, str] | None = None,
    dimensions: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    limits: Limits | None = None,
) -> Model:
    """Load an ONNX file into the integer form.

    Args:
        path: the file.
        name: name of the model; by default the file's, as a C identifier.
        dialect: one of `htvm.frontend.onnx.dialect.READERS`; recognised if not given.
        input_types: integer type of inputs that are declared as reals but hold integers, by name.
        dimensions: sizes of named dimensions that the file leaves open.
        input_shapes: shapes of inputs with sizes that the file leaves open (`read_file`).
        limits: what reading it may take; by default those of `Limits`.

    Raises:
        ModelError: the file cannot be read, is not an ONNX model, or contradicts itself.
        UnsupportedError: it uses an unsupported operator, type or dialect, or takes more than the
            limits.
    """
    try:
        graph = read_file(path, dimensions, input_shapes, limits)
    except ModelError as error:
        error.hint = error.hint or "the file contradicts itself; export it again"
        raise
    options = input_types_of(graph, path, input_types)
    loaded = model_of(graph, network_of(graph, options, dialect), name or path.stem)
    # The file's own hash would not change with weights in other files.
    return replace(
        loaded,
        source=plain(path.name),
        file_sha256=file_sha256(path) if graph.self_contained else "",
    )


def network_of(graph: OnnxGraph, options: Options, dialect: str | None = None) -> Network:
    """Return the network that the reader of a dialect makes of a graph; errors as above."""
    network = reader_of(graph, options, dialect).read(graph, options)
    for node in graph.nodes:
        # Checked here, because the reader's errors are better than the standard's for unknown
        # operators.
        check_node(node, graph.opset)
    return network


def model_of(
    graph: OnnxGraph,
    network: Network,
    name: str,
    labels: Mapping[Activation, str] | None = None,
) -> Model:
    """Return what a reader has made of a graph as a model in the integer form; errors as above.

    ``labels`` are names for the operators that compute some of the tensors.
    """
    _check_outputs(graph, network)
    outputs = [item for _, item in network.outputs]
    integers, names = integer_graph(_parameters(network), outputs, labels)
    _log.info("%s: %d operators imported", graph.source, len(integers.in_order))
    return Model(
        name=model_name(name),
        graph=integers,
        inputs=tuple(info_of(label, item, network.steps) for label, item in network.inputs),
        outputs=tuple(info_of(label, item, network.steps) for label, item in network.outputs),
        scheme=scheme_of(integers.in_order),
        sources={names[item]: label for item, label in network.sources.items() if item in names},
    )


def _check_outputs(graph: OnnxGraph, network: Network) -> None:
    """Compare the outputs with the file's declarations, if there are any.

    Files of research flows declare reals whatever a tensor holds.

    Raises:
        ModelError: they differ.
        UnsupportedError: they differ in the type of integers only.
    """
    for declared, (name, activation) in zip(graph.outputs, network.outputs, strict=True):
        shape = activation.shape if declared.shape is None else declared.shape
        dtype = "int64" if activation in network.wide else activation.dtype
        difference = f"the file declares {declared.dtype}{list(shape)}, "
        where = f"output '{name}' of {graph.source}"
        same = declared.dtype in ("float32", dtype)
        if tuple(shape) == tuple(activation.shape) and same:
            continue
        if tuple(shape) == tuple(activation.shape) and "float32" not in (declared.dtype, dtype):
            raise UnsupportedError(
                f"{difference}which is {dtype} here: integers do not wrap around",
                where=where,
                hint=f"end the network with a requantization, or declare {dtype}",
            )
        raise ModelError(
            f"{difference}its nodes compute {activation.dtype}{list(activation.shape)}",
            where=where,
            hint="export the file again",
        )


def _parameters(network: Network) -> list[tuple[str, Activation]]:
    """Return the inputs under names that are C identifiers; files allow any text."""
    used_names: set[str] = set()
    result = []
    for label, activation in network.inputs:
        wish = name = c_identifier(label)
        while name in used_names:
            name = f"{wish}_{len(used_names)}"
        used_names.add(name)
        result.append((name, activation))
    return result
