"""A model's CPU calls as units that read and write tensors by rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from htvm.aot.steps import Alias, ModelCall
from patterns.ops.moves.pad import Pad
from patterns.rows import RowWindow, has_rows

if TYPE_CHECKING:
    from htvm.aot.assembler import Assembly
    from patterns.op import Op
    from patterns.reading.graph import Graph
    from patterns.reading.node import Node


@dataclass(frozen=True)
class RowTensor:
    """A tensor as rows; one without rows counts as a single row.

    Attributes:
        name: name in the calls.
        rows: number of rows.
        width: pixels of a row.
        pixel: bytes of a pixel.
        shape, dtype: as in the calls.
    """

    name: str
    rows: int
    width: int
    pixel: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def row(self) -> int:
        """Bytes of a row."""
        return self.width * self.pixel

    @property
    def bytes(self) -> int:
        """Bytes of the whole."""
        return self.rows * self.row

    def is_of_one_byte(self, value: int) -> bool:
        """Whether all bytes of an element of this value are the same."""
        size = int(np.dtype(self.dtype).itemsize)
        return len(set((value % (1 << 8 * size)).to_bytes(size, "little"))) == 1

    @classmethod
    def of(cls, name: str, shape: Sequence[int], dtype: str) -> RowTensor:
        """Return a tensor of this shape and type."""
        size = int(np.dtype(dtype).itemsize)
        if not has_rows(shape):
            return cls(name, 1, 1, prod(shape) * size, tuple(shape), dtype)
        _, rows, width, channels = shape
        return cls(name, rows, width, channels * size, tuple(shape), dtype)


@dataclass(frozen=True)
class Reading:
    """How a unit reads a tensor: by windows of rows, or as a whole if there is no window."""

    tensor: str
    window: RowWindow | None


@dataclass(frozen=True, eq=False)
class Unit:
    """Operators that are computed together: those of one kernel, or of several that share one.

    Attributes:
        nodes: the operators, without paddings that its readings have.
        calls: the calls that compute them as a whole.
        reads: what they read, paddings included.
        result: the tensor that they compute.
        of_sums: what computes the result of the sums over all rows, if it is a function of these.
    """

    nodes: tuple[Node, ...]
    calls: tuple[ModelCall, ...]
    reads: tuple[Reading, ...]
    result: str
    of_sums: Op | None = None

    @property
    def name(self) -> str:
        """The name of its last operator."""
        return self.nodes[-1].name

    @property
    def has_rows(self) -> bool:
        """Whether it can be computed row by row."""
        return all(reading.window is not None for reading in self.reads)

    @property
    def windows(self) -> tuple[tuple[str, RowWindow], ...]:
        """What it reads for a row of its result: tensors and their rows; sums are of one row."""
        return tuple(
            (reading.tensor, reading.window if self.of_sums is None else RowWindow())
            for reading in self.reads
            if reading.window is not None
        )


@dataclass(frozen=True, eq=False)
class Network:
    """The units of a model in execution order.

    Attributes:
        units: units of operators.
        tensors: the tensors that units read or compute, by name.
        inputs: names of those that the caller hands over.
        outside: names of the inputs that do not lie in the arena.
        streamed: name of the input that comes row by row; empty for none.
        results: names of those that are returned.
        pads: the calls that compute a padded tensor as a whole, by its name in the calls.
    """

    units: tuple[Unit, ...]
    tensors: Mapping[str, RowTensor]
    inputs: tuple[str, ...]
    outside: frozenset[str]
    results: tuple[str, ...]
    pads: Mapping[str, ModelCall]
    streamed: str = ""

    @cached_property
    def made(self) -> Mapping[str, int]:
        """The number of the unit that computes a tensor; -1 for inputs."""
        computed = {unit.result: number for number, unit in enumerate(self.units)}
        return {**dict.fromkeys(self.inputs, -1), **computed}

    def in_arena(self, tensor: str) -> bool:
        """Whether a tensor lies in the arena, if it exists as a whole."""
        return tensor not in self.outside and (tensor in self.inputs or tensor not in self.results)

    @cached_property
    def last(self) -> Mapping[str, int]:
        """The number of the last unit that reads a tensor; behind all units if it is returned."""
        found: dict[str, int] = {}
        for number, unit in enumerate(self.units):
            for reading in unit.reads:
                found[reading.tensor] = number
        return {**found, **dict.fromkeys(self.results, len(self.units))}

    def dies(self, tensor: str) -> int:
        """Return the number of the last unit that needs a tensor."""
        return self.last.get(tensor, self.made.get(tensor, -1))


def network_of(graph: Graph, given: Assembly) -> Network | None:
    """Return the units of a program without regions; ``None`` if its calls are not its operators.

    Args:
        graph: the operators.
        given: the calls, each operator as a whole.
    """
    return _Reader(graph, given).read()


class _Reader:
    def __init__(self, graph: Graph, given: Assembly) -> None:
        self.graph = graph
        self.given = given
        self.layers = {kernel.symbol: kernel.layers for kernel in given.cpu_kernels}
        self.roots: dict[str, str] = {}  # the tensor whose bytes another one shares
        self.padded: dict[str, ModelCall] = {}  # by the padding's name
        self.tensors: dict[str, RowTensor] = {}
        names = given.parameters or [info.name for info in given.inputs]
        self.inputs = tuple(names)
        for name, info in zip(names, given.inputs, strict=True):
            self.tensors[name] = RowTensor.of(name, info.shape, info.dtype)

    def read(self) -> Network | None:
        groups = self._groups()
        if groups is None:
            return None
        units: list[Unit] = []
        for layers, calls in groups:
            pad = self._pad(layers, calls)
            if pad:
                self.padded[pad] = calls[0]
                continue
            unit = self._unit(layers, calls)
            if unit is None:
                return None
            units.append(unit)
        results = tuple(self._root(name) for name in self.given.results)
        pads = {call.outputs[0].name: call for call in self.padded.values()}
        overwritten = {self.inputs[number] for number in self.given.overwritten}
        outside = frozenset(self.inputs) - overwritten
        return Network(tuple(units), self.tensors, self.inputs, outside, results, pads)

    def _groups(self) -> list[tuple[list[str], list[ModelCall]]] | None:
        """Return runs of calls that share operators: the operators and the calls of each."""
        groups: list[tuple[list[str], list[ModelCall]]] = []
        for call in self.given.calls:
            if isinstance(call, Alias):
                self.roots[call.output.name] = call.source
                self._enter(call.output.name, call.output.shape, call.output.dtype)
                continue
            layers = self.layers.get(call.target)
            if layers is None or any(layer not in self.graph.nodes for layer in layers):
                return None
            names, calls, others = list(layers), [call], []
            for group in reversed(groups):
                if set(group[0]) & set(names):
                    names = [*group[0], *(name for name in names if name not in group[0])]
                    calls = [*group[1], *calls]
                else:
                    others.append(group)
            if len(calls) > 1:
                # Calls between these stay before them, so they must not read their results.
                made = {value.name for each in calls for value in each.outputs}
                read = {name for _, group in others for each in group for name in each.inputs}
                if made & read:
                    return None
            groups = [*reversed(others), (names, calls)]
        return groups

    def _enter(self, name: str, shape: Sequence[int], dtype: str) -> None:
        self.tensors[name] = RowTensor.of(name, shape, dtype)

    def _root(self, name: str) -> str:
        while name in self.roots:
            name = self.roots[name]
        return name

    def _pad(self, layers: Sequence[str], calls: Sequence[ModelCall]) -> str:
        """Return the name of the tensor if it is a padding that readers of rows may have."""
        node = self.graph.nodes[layers[0]]
        if len(layers) != 1 or len(calls) != 1 or not isinstance(node.op, Pad):
            return ""
        if node.op.layout != "NHWC" or not has_rows(node.output_shape):
            return ""
        if self.graph.is_result(node.name) or self._is_padding(node.inputs[0]):
            return ""
        return node.name

    def _is_padding(self, tensor: str) -> bool:
        return tensor in self.padded

    def _unit(self, layers: Sequence[str], calls: Sequence[ModelCall]) -> Unit | None:
        nodes = tuple(node for node in self.graph.in_order if node.name in set(layers))
        values = calls[-1].outputs
        last = nodes[-1]
        inner = {node.name for node in nodes[:-1]}
        if len(values) != 1 or any(not self.graph.is_inner(name, set(layers)) for name in inner):
            return None
        if values[0].name != last.name or values[0].shape != last.output_shape:
            return None
        self._enter(last.name, last.output_shape, last.output_dtype)
        reads = self._readings(nodes, inner)
        of_sums = last.op.of_sums([kind for _, kind in last.read], last.result)
        padded = [each for each in reads if each.window is None or each.window.is_padded]
        if len(nodes) > 1 or padded:
            of_sums = None
        return Unit(nodes, tuple(calls), reads, last.name, of_sums)

    def _readings(self, nodes: Sequence[Node], inner: set[str]) -> tuple[Reading, ...]:
        """Return what a unit reads from outside, each operand of each operator in order."""
        found: list[Reading] = []
        simple = True  # whether all operators behind the first ones have the same rows
        for node in nodes:
            types = [kind for _, kind in node.read]
            windows = node.op.row_windows(types, node.result)
            for at, name in enumerate(node.inputs):
                window = windows[at] if windows is not None else None
                if name in inner:
                    simple = simple and window == RowWindow()
                else:
                    found.append(self._reading(name, window))
        return tuple(found) if simple else tuple(replace(each, window=None) for each in found)

    def _reading(self, name: str, window: RowWindow | None) -> Reading:
        if not self._is_padding(name):
            root = self._root(name)
            same = self.tensors[root].shape == self.tensors[name].shape
            return Reading(root, window if same else None)
        node = self.graph.nodes[name]
        assert isinstance(node.op, Pad)
        source = node.inputs[0]
        root = self._root(source)
        if window is None or self.tensors[root].shape != self.tensors[source].shape:
            return Reading(root, None)
        if window.is_padded and window.fill != node.op.value:
            return Reading(root, None)
        top, left, bottom, right = node.op.padding
        return Reading(
            root,
            replace(
                window,
                top=window.top + top,
                left=window.left + left,
                bottom=window.bottom + bottom,
                right=window.right + right,
                fill=node.op.value,
            ),
        )
