"""What readers of dialects take and return, and the choice of the reader for a file."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from byoc_dory.errors import UnsupportedError
from htvm.frontend.onnx.fold import FOLDED
from htvm.frontend.operators import Activation, Quantization

if TYPE_CHECKING:
    from htvm.frontend.onnx.graph import OnnxGraph, OnnxNode

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """The user's information about a file, besides its path.

    Attributes:
        input_types: numpy names of the integer types of inputs declared as reals, by name, as far
            as known.
        asked: names of those whose type the user gave.
    """

    input_types: Mapping[str, str] = field(default_factory=dict[str, str])
    asked: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Network:
    """A network as records of `htvm.frontend.operators`.

    Attributes:
        inputs: (name, tensor) of every input of the file, in its order.
        outputs: (name, tensor) of every output of the file, in its order.
        steps: quantization of those tensors that have one.
        sources: tensor -> its name in the file, for messages.
        wide: those int32 tensors that the file has as int64.
    """

    inputs: tuple[tuple[str, Activation], ...]
    outputs: tuple[tuple[str, Activation], ...]
    steps: Mapping[Activation, Quantization] = field(default_factory=dict[Activation, Quantization])
    sources: Mapping[Activation, str] = field(default_factory=dict[Activation, str])
    wide: Collection[Activation] = frozenset()


@dataclass(frozen=True)
class DialectReader:
    """What reads one dialect.

    Attributes:
        handlers: function for each operator.
        marks: returns the nodes that only this dialect has, or that distinguish it; may be none.
        read: returns the network.  It raises `UnsupportedError` if a node is not supported, which
            the message names, and `ModelError` if the file contradicts itself.
    """

    handlers: Mapping[str, object]
    marks: Callable[[OnnxGraph, Options], tuple[OnnxNode, ...]]
    read: Callable[[OnnxGraph, Options], Network]


@dataclass(frozen=True)
class ReaderEntry:
    """A reader, imported when it is used.

    Attributes:
        title: description for messages and the log.
        place: its module in this folder, and its name there.
        types: types of tensors that it reads.
        oracle: what its results are tested to equal.
        integers: whether tensors that are declared as reals hold integers.
    """

    title: str
    place: str
    types: str
    oracle: str
    integers: bool = False

    def load(self) -> DialectReader:
        """Return the reader itself."""
        found: DialectReader = resolve_name(f"htvm.frontend.onnx.{self.place}")
        return found


READERS: Mapping[str, ReaderEntry] = {
    "qdq": ReaderEntry(
        "scales at QuantizeLinear and DequantizeLinear",
        "quantized:QDQ",
        types="int8, uint8 (activations per tensor, weights per tensor or output channel), "
        "int4, uint4 (weights, also in blocks), float32",
        oracle="a default session of onnxruntime",
    ),
    "qoperator": ReaderEntry(
        "scales at the operators (QLinearConv ...)",
        "quantized:QOPERATOR",
        types="int8, uint8, int32 sums of ConvInteger and MatMulInteger, float32",
        oracle="a default session of onnxruntime",
    ),
    "pulp": ReaderEntry(
        "PULP's integers (RequantShift, iSoftmax ...)",
        "dialects.pulp:PULP",
        types="int8, uint8, int16, int32; declared as reals or as integers",
        oracle="recorded outputs of the flow's networks and kernels",
        integers=True,
    ),
    "quantlib": ReaderEntry(
        "quantlib's integers (multiply, add, divide, floor, clip)",
        "dialects.chains:QUANTLIB",
        types="int8, uint8, int32; declared as reals",
        oracle="recorded outputs of two networks",
        integers=True,
    ),
    "diana": ReaderEntry(
        "DIANA's integers (divide, floor, clip)",
        "dialects.chains:DIANA",
        types="int8, uint8, int32; declared as reals",
        oracle="its arithmetic in numpy; no recorded outputs are at hand",
        integers=True,
    ),
    "real": ReaderEntry(
        "standard operators on reals",
        "dialects.real:REAL",
        types="float32",
        oracle="the reference implementation of the package onnx, within 0.001",
    ),
}
"""Name of the dialect -> its reader.  ``dialect=`` of `htvm.load` takes these names."""


def reader_of(graph: OnnxGraph, options: Options, dialect: str | None = None) -> DialectReader:
    """Return the reader for a file, recognised by its nodes or forced.

    Raises:
        UnsupportedError: the forced dialect is unknown, the nodes belong to several dialects, or
            to none, or the dialect has no use for the types that the user gave.
    """
    name = _name_of(graph, options, dialect)
    reader = READERS[name]
    if options.asked and not reader.integers:
        first = options.asked[0]
        raise UnsupportedError(
            f"input '{first}' is not read as {options.input_types[first]}, but as reals: the file "
            f"is read as {reader.title}",
            where=graph.source,
            hint="leave out input_types, or force a dialect of integers with dialect=...: "
            + ", ".join(name for name, reader in READERS.items() if reader.integers),
        )
    return reader.load()


def _name_of(graph: OnnxGraph, options: Options, dialect: str | None) -> str:
    """Return the name of a file's dialect, recognised by its nodes or forced."""
    if dialect is not None:
        if dialect not in READERS:
            raise UnsupportedError(
                f"unknown dialect {dialect!r}",
                where=graph.source,
                hint=f"known dialects: {', '.join(READERS)}",
            )
        _log.info("%s: read as %s, as asked", graph.source, READERS[dialect].title)
        return dialect
    readers = {name: entry.load() for name, entry in READERS.items()}
    names = {
        name: marks[0]
        for name, reader in readers.items()
        if (marks := reader.marks(graph, options))
    }
    if len(names) > 1:
        raise UnsupportedError(
            "operators of several dialects: "
            + ", ".join(f"{node.op} ({name})" for name, node in names.items()),
            where="; ".join(node.where for node in names.values()),
            hint="export the whole network from one tool, or force one with dialect=...",
        )
    if not names:
        raise _unknown(graph)
    ((name, mark),) = names.items()
    _log.info("%s: %s, recognised by %s", graph.source, READERS[name].title, mark.where)
    return name


def _unknown(graph: OnnxGraph) -> UnsupportedError:
    """Return what keeps every reader from taking a file."""
    if not graph.nodes:
        return UnsupportedError(
            "no operator is left: every output is an input or a constant", where=graph.source
        )
    known = {op for entry in READERS.values() for op in entry.load().handlers}
    for node in graph.nodes:
        if node.op not in known:
            return _no_handler(graph, node, known)
    for node in graph.nodes:
        if node.domain:
            return node.unsupported(
                f"operator {node.op} of the domain '{node.domain}'",
                "in a network of reals operators must be the standard's",
            )
    kinds = ", ".join(sorted({node.op for node in graph.nodes}))
    types = ", ".join(sorted({item.dtype for item in graph.inputs}))
    return UnsupportedError(
        f"no dialect has these operators on tensors of {types or 'no type'}: {kinds}",
        where=graph.source,
        hint="integers need scales (QuantizeLinear and DequantizeLinear) or a requantization, "
        f"reals are float32; force a dialect with dialect=...: {', '.join(READERS)}",
    )


def _no_handler(graph: OnnxGraph, node: OnnxNode, operators: Collection[str]) -> UnsupportedError:
    """Return the error for a node that no reader has, and that was not folded."""
    if node.op in FOLDED and all(name in graph.constants for name in node.inputs if name):
        return node.unsupported(
            "a result of constants that cannot be computed ahead",
            "check its inputs; store the result as an initialiser",
        )
    domain = f" of the domain '{node.domain}'" if node.domain else ""
    near = difflib.get_close_matches(node.op, sorted(operators), n=1, cutoff=0.75)
    return node.unsupported(
        f"operator {node.op}{domain} is not supported",
        (f"the nearest is {near[0]}; " if near else "") + "docs/operators.md lists what is read",
    )
