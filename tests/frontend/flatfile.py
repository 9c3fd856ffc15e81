"""Helper: write TFLite files, sound ones and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import flatbuffers
import numpy as np

from tests.reference.interpreter import Array

FLOAT32, INT32, UINT8, INT64, INT16, INT8, INT4, INT2, UINT4 = 0, 2, 3, 4, 7, 9, 17, 19, 20
CODES = {
    "ABS": 101,
    "ADD": 0,
    "ARG_MAX": 56,
    "ARG_MIN": 79,
    "AVERAGE_POOL_2D": 1,
    "BATCH_MATMUL": 126,
    "BATCH_TO_SPACE_ND": 37,
    "BROADCAST_TO": 130,
    "CONCATENATION": 2,
    "CONV_2D": 3,
    "CUSTOM": 32,
    "DEPTHWISE_CONV_2D": 4,
    "DEPTH_TO_SPACE": 5,
    "DEQUANTIZE": 6,
    "DIV": 42,
    "ELU": 111,
    "EXP": 47,
    "EXPAND_DIMS": 70,
    "FILL": 94,
    "FULLY_CONNECTED": 9,
    "GATHER": 36,
    "GELU": 150,
    "HARD_SWISH": 117,
    "L2_NORMALIZATION": 11,
    "LEAKY_RELU": 98,
    "LOGISTIC": 14,
    "LOG_SOFTMAX": 50,
    "LSTM": 16,
    "MAXIMUM": 55,
    "MAX_POOL_2D": 17,
    "MEAN": 40,
    "MINIMUM": 57,
    "MIRROR_PAD": 100,
    "MUL": 18,
    "NEG": 59,
    "PACK": 83,
    "PAD": 34,
    "PADV2": 60,
    "PRELU": 54,
    "QUANTIZE": 114,
    "REDUCE_MAX": 82,
    "REDUCE_MIN": 89,
    "RELU": 19,
    "RELU6": 21,
    "RESHAPE": 22,
    "RESIZE_BILINEAR": 23,
    "RESIZE_NEAREST_NEIGHBOR": 97,
    "REVERSE_V2": 105,
    "RSQRT": 76,
    "SHAPE": 77,
    "SLICE": 65,
    "SOFTMAX": 25,
    "SPACE_TO_BATCH_ND": 38,
    "SPACE_TO_DEPTH": 26,
    "SPLIT": 49,
    "SPLIT_V": 102,
    "SQUARED_DIFFERENCE": 99,
    "SQUEEZE": 43,
    "STRIDED_SLICE": 45,
    "SUB": 41,
    "SUM": 74,
    "SVDF": 27,
    "TANH": 28,
    "TILE": 69,
    "TRANSPOSE": 39,
    "TRANSPOSE_CONV": 67,
    "UNPACK": 88,
}
_SCALARS = {"B": "Uint8", "b": "Int8", "i": "Int32", "I": "Uint32", "f": "Float32", "?": "Bool"}

Options = tuple[int, Mapping[int, Any]]  # type of the options, their fields


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor to be written; ``data`` makes it constant (int8 for INT4, which is packed)."""

    name: str
    shape: tuple[int, ...]
    code: int = INT8
    data: Array | None = None
    scales: Sequence[float] = (0.05,)
    zero_points: Sequence[int] = (3,)
    axis: int = 0
    signature: tuple[int, ...] = ()
    """The shape with -1 for sizes that are left open."""
    block: int = 0
    """Elements of a block that have a scale of their own, which tensor 0 is said to hold."""

    @property
    def stored(self) -> Array:
        """The bytes of the constant."""
        assert self.data is not None
        found = np.frombuffer(self.data.tobytes(), np.uint8)
        if self.code != INT4:
            return found
        pairs = np.append(found, np.uint8(0))[: -(-found.size // 2) * 2].reshape(-1, 2) & 15
        return pairs[:, 0] | pairs[:, 1] << 4


@dataclass(frozen=True, eq=False)
class Op:
    """An operator to be written; tensors by index."""

    kind: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: Options | None = None


@dataclass(frozen=True, eq=False)
class Graph:
    """A model to be written."""

    tensors: Sequence[Tensor]
    operators: Sequence[Op]
    inputs: Sequence[int] = (0,)
    outputs: Sequence[int] = (-1,)
    copies: int = 1
    version: int = 3
    custom: Mapping[str, int] = field(default_factory=dict)
    short_codes: bool = True
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of custom operators."""

    def with_tensor(self, index: int, **changes: Any) -> Graph:
        """The same with one tensor changed."""
        tensors = list(self.tensors)
        tensors[index] = replace(tensors[index], **changes)
        return replace(self, tensors=tensors)

    def with_operator(self, index: int, **changes: Any) -> Graph:
        """The same with one operator changed."""
        operators = list(self.operators)
        operators[index] = replace(operators[index], **changes)
        return replace(self, operators=operators)

    def file(self) -> bytes:
        """The bytes of the file."""
        return _Writer(self).file()


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder = flatbuffers.Builder(1 << 12)

    def table(self, fields: Mapping[int, Any]) -> int:
        """A table from field number -> (scalar code, value), vector, string or offset."""
        ready: dict[int, tuple[str, Any]] = {}
        for number, value in fields.items():
            ready[number] = value if isinstance(value, tuple) else ("o", self.reference(value))
        self.builder.StartObject(max(ready, default=-1) + 1)
        for number, (code, value) in ready.items():
            if code == "o":
                self.builder.PrependUOffsetTRelativeSlot(number, value, 0)
            else:
                getattr(self.builder, f"Prepend{_SCALARS[code]}Slot")(number, value, None)
        return int(self.builder.EndObject())

    def reference(self, value: Any) -> int:
        if isinstance(value, str):
            return int(self.builder.CreateString(value))
        if isinstance(value, np.ndarray):
            return int(self.builder.CreateNumpyVector(value))
        if isinstance(value, list):
            self.builder.StartVector(4, len(value), 4)
            for item in reversed(value):
                self.builder.PrependUOffsetTRelative(item)
            return int(self.builder.EndVector())
        return int(value)

    def tensor(self, number: int, tensor: Tensor) -> int:
        fields: dict[int, Any] = {
            0: np.asarray(tensor.shape, np.int32),
            1: ("b", tensor.code),
            2: ("I", number + 1 if tensor.data is not None else 0),
            3: tensor.name,
        }
        if tensor.signature:
            fields[7] = np.asarray(tensor.signature, np.int32)
        if tensor.block:
            details = self.table({0: ("i", 0), 1: ("i", -1), 2: ("i", tensor.block)})
            fields[4] = self.table({4: ("B", 2), 5: details})
        elif tensor.scales:
            fields[4] = self.table(
                {
                    2: np.asarray(tensor.scales, np.float32),
                    3: np.asarray(tensor.zero_points, np.int64),
                    6: ("i", tensor.axis),
                }
            )
        return self.table(fields)

    def operator(self, kinds: list[str], op: Op) -> int:
        fields: dict[int, Any] = {
            0: ("I", kinds.index(op.kind)),
            1: np.asarray(op.inputs, np.int32),
            2: np.asarray(op.outputs, np.int32),
        }
        if op.options is not None:
            kind, options = op.options
            fields[3] = ("B", kind)
            fields[4] = self.table(options)
        return self.table(fields)

    def file(self) -> bytes:
        graph = self.graph
        kinds = sorted({op.kind for op in graph.operators})
        codes = []
        for kind in kinds:
            code = CODES[kind]
            short = {0: ("b", min(code, 127))} if graph.short_codes else {}
            name = {1: graph.names[kind]} if kind in graph.names else {}
            codes.append(self.table({**short, **name, 3: ("i", code)}))
        last = len(graph.tensors)
        graphs = []
        for _ in range(graph.copies):
            graphs.append(
                self.table(
                    {
                        0: [self.tensor(at, item) for at, item in enumerate(graph.tensors)],
                        1: np.asarray(graph.inputs, np.int32),
                        2: np.asarray([at % last for at in graph.outputs], np.int32),
                        3: [self.operator(kinds, op) for op in graph.operators],
                        4: "main",
                    }
                )
            )
        buffers = [self.table({})]
        for tensor in graph.tensors:
            buffers.append(self.table({} if tensor.data is None else {0: tensor.stored}))
        root = self.table(
            {0: ("I", graph.version), 1: codes, 2: graphs, 3: "written by a test", 4: buffers}
        )
        self.builder.Finish(root, b"TFL3")
        return bytes(self.builder.Output())


def small_network(seed: int = 0) -> Graph:
    """Convolution, depthwise, add, pools, dense and softmax on an 8x6x3 input."""
    rng = np.random.default_rng(seed)

    def weights(*shape: int) -> Array:
        return rng.integers(-127, 128, shape).astype(np.int8)

    def bias(channels: int) -> Array:
        return rng.integers(-500, 500, channels).astype(np.int32)

    per_channel = [0.01, 0.02, 0.015, 0.012]
    zeros = [0] * 4
    fine = [0.01 * 0.4]
    tensors = [
        Tensor("input", (1, 8, 6, 3)),
        Tensor("conv/weights", (4, 3, 3, 3), data=weights(4, 3, 3, 3), scales=per_channel,
               zero_points=zeros),
        Tensor("conv/bias", (4,), INT32, bias(4), [0.05 * scale for scale in per_channel], zeros),
        Tensor("conv", (1, 8, 6, 4), scales=[0.2], zero_points=[-128]),
        Tensor("depthwise/weights", (1, 3, 3, 4), data=weights(1, 3, 3, 4), scales=per_channel,
               zero_points=zeros, axis=3),
        Tensor("depthwise/bias", (4,), INT32, bias(4), [0.2 * scale for scale in per_channel],
               zeros),
        Tensor("depthwise", (1, 8, 6, 4), scales=[0.3], zero_points=[5]),
        Tensor("sum", (1, 8, 6, 4), scales=[0.4], zero_points=[-20]),
        Tensor("max", (1, 4, 3, 4), scales=[0.4], zero_points=[-20]),
        Tensor("average", (1, 1, 1, 4), scales=[0.4], zero_points=[-20]),
        Tensor("shape", (2,), INT32, np.asarray([-1, 4], np.int32), (), ()),
        Tensor("flat", (1, 4), scales=[0.4], zero_points=[-20]),
        Tensor("dense/weights", (5, 4), data=weights(5, 4), scales=[0.01], zero_points=[0]),
        Tensor("dense/bias", (5,), INT32, bias(5), fine, [0]),
        Tensor("logits", (1, 5), scales=[0.1], zero_points=[7]),
        Tensor("probabilities", (1, 5), scales=[1 / 256], zero_points=[-128]),
    ]  # fmt: skip
    one = ("i", 1)
    operators = [
        Op("CONV_2D", [0, 1, 2], [3], (1, {0: ("b", 0), 1: one, 2: one, 3: ("b", 1)})),
        Op("DEPTHWISE_CONV_2D", [3, 4, 5], [6],
           (2, {0: ("b", 0), 1: one, 2: one, 3: one, 4: ("b", 0)})),
        Op("ADD", [3, 6], [7], (11, {0: ("b", 0)})),
        Op("MAX_POOL_2D", [7], [8],
           (5, {0: ("b", 1), 1: ("i", 2), 2: ("i", 2), 3: ("i", 2), 4: ("i", 2)})),
        Op("AVERAGE_POOL_2D", [8], [9],
           (5, {0: ("b", 1), 1: ("i", 3), 2: ("i", 4), 3: ("i", 3), 4: ("i", 4)})),
        Op("RESHAPE", [9, 10], [11], (17, {0: np.asarray([-1, 4], np.int32)})),
        Op("FULLY_CONNECTED", [11, 12, 13], [14], (8, {0: ("b", 0)})),
        Op("SOFTMAX", [14], [15], (9, {0: ("f", 1.0)})),
    ]  # fmt: skip
    return Graph(tensors, operators)
