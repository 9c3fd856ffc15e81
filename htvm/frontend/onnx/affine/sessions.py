"""Which kernel a default session of onnxruntime has for a node between quantized tensors.

A session fuses a node, the DequantizeLinear of each operand and the QuantizeLinear of the result
into one kernel if all their integers are of one type; else the node runs in reals.  Both round
differently.  On x86, int8 becomes uint8 between a QuantizeLinear and its DequantizeLinear if one
node alone reads the tensor, so that a second reader of a tensor decides how its first one runs.
Before that, nodes that quantize the same tensor alike are merged, and a pair of QuantizeLinear and
DequantizeLinear is added behind moves of a dequantized tensor, and before moves of a tensor that is
quantized.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable

    from byoc_dory.layers import Array
    from htvm.frontend.onnx.graph import Attribute, OnnxGraph, OnnxNode

_FUSED = ("Add", "AveragePool", "GlobalAveragePool", "Mul", "Softmax")
_MOVES = ("MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
_SHARED = 8  # elements of the largest constants that are compared by value, those of 8 bits aside


class Session:
    """A graph as a session sees it before it fuses nodes.

    Args:
        graph: the graph.
        fuses: whether anything is fused, which other runtimes do not.
    """

    def __init__(self, graph: OnnxGraph, *, fuses: bool = True) -> None:
        self._fuses = fuses
        self._constants = graph.constants
        self._types = {item.name: item.dtype for item in graph.inputs}
        self._names: dict[str, str] = {}
        self._made: dict[str, OnnxNode] = {}
        self._readers: defaultdict[str, list[OnnxNode]] = defaultdict(list)
        found: dict[Hashable, OnnxNode] = {}
        for node in graph.nodes:
            first = found.setdefault(self._key(node), node)
            for name, own in zip(node.outputs, first.outputs, strict=False):
                self._names[name] = own
            if first is node:
                self._made.update((name, node) for name in node.outputs)
                for name in node.inputs:
                    self._readers[self._name(name)].append(node)
        self._ends = {self._name(item.name) for item in graph.outputs}

    def _name(self, name: str) -> str:
        """Return the name that a tensor shares with all that are equal."""
        return self._names.get(name, name)

    def _key(self, node: OnnxNode) -> Hashable:
        """Return what is equal for nodes that compute the same."""
        made = (self._made.get(self._name(name)) for name in node.inputs)
        if any(item is not None and item.op == "DequantizeLinear" for item in (node, *made)):
            return node.index  # each reader of a dequantized tensor dequantizes it for itself
        attributes = sorted((key, _text(item)) for key, item in node.set_attributes.items())
        inputs = tuple(self._value(name) for name in node.inputs)
        return node.op, node.domain, inputs, tuple(attributes), len(node.outputs)

    def _value(self, name: str) -> Hashable:
        constant = self._constants.get(name)
        if constant is None or constant.size > _SHARED or constant.dtype.itemsize == 1:
            return self._name(name)
        return _text(constant)

    # ------------------------------------------------------------------ kernels

    def kernel(self, node: OnnxNode) -> str | None:
        """Return the type that the fused kernel of a function reads and writes: int8 or uint8.

        Returns:
            ``None`` if the node runs in reals, between dequantized tensors and a QuantizeLinear.
            Products of weights are not asked for, nor operators that round alike in both forms.
        """
        if not self._fuses or node.op not in _FUSED:
            return None
        kinds = {self._read(name) for name in node.inputs} | {self._written(node)}
        return kinds.pop() if len(kinds) == 1 else None

    def _read(self, name: str) -> str | None:
        """Return the type of the integers that an operand is dequantized from, if it is."""
        name = self._name(name)
        node = self._made.get(name)
        if node is None:
            return None
        if node.op == "DequantizeLinear":
            turned = self._is_turned(self._name(node.inputs[0]))
            return "uint8" if turned else self._type(node)
        origin = self._origin(node)
        if origin is None:
            return None
        readers = [item for item in self._readers[name] if item.op != "QuantizeLinear"]
        alone = len(readers) + (name in self._ends) == 1
        return _as_pair(self._type(origin), len(origin.inputs) == 3 and alone)

    def _origin(self, node: OnnxNode) -> OnnxNode | None:
        """Return the DequantizeLinear in front of moves that end with this node."""
        while node.op in _MOVES:
            before = self._made.get(self._name(node.inputs[0]))
            if before is None or before.op == "DequantizeLinear":
                return before
            node = before
        return None

    def _written(self, node: OnnxNode) -> str | None:
        """Return the type of the integers that a result is quantized to, if nothing else is."""
        moved = False
        name = self._name(node.outputs[0])
        while name not in self._ends and len(self._readers[name]) == 1:
            (reader,) = self._readers[name]
            if reader.op == "QuantizeLinear":
                turned = self._is_turned(self._name(reader.outputs[0]))
                return _as_pair(self._type(reader), turned or (moved and len(reader.inputs) == 3))
            if reader.op in _MOVES:
                moved = True
            elif moved or not self._is_idle(reader):
                return None
            name = self._name(reader.outputs[0])
        return None

    def _is_idle(self, node: OnnxNode) -> bool:
        """Whether a rectifier bounds nothing that the QuantizeLinear behind it does not."""
        readers = self._readers[self._name(node.outputs[0])]
        while len(readers) == 1 and readers[0].op in _MOVES:
            readers = self._readers[self._name(readers[0].outputs[0])]
        if len(readers) != 1 or readers[0].op != "QuantizeLinear":
            return False
        dtype = self._type(readers[0])
        if dtype not in ("int8", "uint8"):
            return False
        limits, zero = np.iinfo(dtype), self._number(readers[0], 2, 0)
        if node.op == "Relu":
            return bool(zero == limits.min)
        if node.op != "Clip":
            return False
        scale = self._number(readers[0], 1, np.nan)
        low, high = (self._number(node, at, end) for at, end in ((1, -np.inf), (2, np.inf)))
        with np.errstate(all="ignore"):
            ends = np.rint(np.asarray([low, high], "float32") / np.float32(scale)) + zero
        return bool(ends[0] <= limits.min and ends[1] >= limits.max)

    def _number(self, node: OnnxNode, index: int, default: float) -> float:
        """Return an optional input of one element; not a number if it is computed."""
        if index >= len(node.inputs) or not node.inputs[index]:
            key = ("min", "max")[index - 1]
            given = node.set_attributes.get(key, default) if node.op == "Clip" else default
            return float(given) if isinstance(given, int | float) else np.nan
        value = self._constants.get(node.inputs[index])
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else np.nan

    def _is_turned(self, name: str) -> bool:
        """Whether a quantized tensor of int8 becomes one of uint8."""
        node, readers = self._made.get(name), self._readers[name]
        pair = [node, *readers]
        if node is None or node.op != "QuantizeLinear" or name in self._ends:
            return False
        if any(item.op != "DequantizeLinear" for item in readers):
            return False
        if any(len(item.inputs) < 3 or self._type(item) != "int8" for item in pair if item):
            return False
        real = [self._name(item.outputs[0]) for item in readers]
        return sum(len(self._readers[each]) + (each in self._ends) for each in real) == 1

    def _type(self, node: OnnxNode) -> str:
        """Return the type of the integers of a QuantizeLinear or DequantizeLinear."""
        for name in node.inputs[:1:-1] + node.inputs[:1]:
            if name in self._constants:
                return str(self._constants[name].dtype)
        if node.op == "QuantizeLinear":
            return "int8" if node.set_attributes.get("output_dtype") == 3 else "uint8"
        name = self._name(node.inputs[0])
        before = self._made.get(name)
        if before is not None and before.op == "QuantizeLinear":
            return self._type(before)
        return self._types.get(name, "")


def _as_pair(dtype: str, turned: bool) -> str:
    """Return the type between a QuantizeLinear and its DequantizeLinear."""
    return "uint8" if turned and dtype == "int8" else dtype


def _text(item: Attribute | Array) -> Hashable:
    if isinstance(item, np.ndarray):
        return item.dtype.name, item.shape, item.tobytes()
    return item
