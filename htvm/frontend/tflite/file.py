"""The content of a TFLite file as typed records, with every index checked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from byoc_dory.errors import ModelError, UnsupportedError
from byoc_dory.layers import Array
from htvm.frontend.limits import Budget, Limits
from htvm.frontend.operators import MOST_AXES
from htvm.frontend.tflite.flatbuffer import FlatBuffer, FlatTable
from htvm.frontend.tflite.schema import (
    ELEMENT_TYPES,
    OPERATOR_NAMES,
    PACKED,
    elements,
    stored_bytes,
)

_IDENTIFIER = b"TFL3"
_MOST_ELEMENTS = 1 << 28
_DETAILS = {1: "a custom quantization", 2: "blockwise quantization"}
_MANY_GRAPHS = ("CALL_ONCE", "IF", "READ_VARIABLE", "VAR_HANDLE", "WHILE", "STABLEHLO_COMPOSITE")
_CUSTOM = "CUSTOM"
_HINT = "the file is damaged; fetch or export it again"


@dataclass(frozen=True, eq=False)
class TfliteTensor:
    """A tensor of the graph.

    Attributes:
        index: index in the file.
        name: name in the file; not necessarily unique.
        shape: shape including the batch.
        dtype: name of the element type, of `ELEMENT_TYPES`.
        data: constant value, flat, or ``None`` for an activation; int8 if ``dtype`` is int4.
        variable: whether it keeps its value from one run to the next.
        scales, zero_points: quantization; empty if it is not quantized.
        axis: axis of several scales.
        open: whether the file leaves a size open; ``shape`` may then be none that ever runs.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    data: Array | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    variable: bool = False
    open: bool = False

    @property
    def place(self) -> str:
        """Description of the tensor, for messages."""
        return f"tensor {self.index} '{self.name}'"


@dataclass(frozen=True)
class Spread:
    """Dilation and padding of a convolution that the file expresses by other operators.

    Attributes:
        dilation: (y, x).
        padding: number of elements (top, left, bottom, right).
    """

    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class TfliteOperator:
    """An operator of the graph.

    Attributes:
        index: index in execution order.
        kind: TFLite's name of the operator, such as ``CONV_2D``, or ``CUSTOM 'NAME'``.
        inputs, outputs: tensors; ``None`` for an optional input that is absent.
        options: table of its options, if any.
        options_type: kind of this table (TFLite's ``BuiltinOptions``).
        spread: dilation and padding from operators around it.
    """

    index: int
    kind: str
    inputs: tuple[TfliteTensor | None, ...]
    outputs: tuple[TfliteTensor, ...]
    options: FlatTable | None
    options_type: int
    spread: Spread | None = None

    @property
    def place(self) -> str:
        """Description of the operator, for messages."""
        tensor = f", computing {self.outputs[0].place}" if self.outputs else ""
        return f"operator {self.index} ({self.kind}){tensor}"


@dataclass(frozen=True, eq=False)
class TfliteFile:
    """The only graph of a file.

    Attributes:
        tensors: tensors by index.
        operators: operators in execution order.
        inputs, outputs: inputs and outputs of the graph.
        budget: counts what is made of its constants.
    """

    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[TfliteTensor, ...]
    outputs: tuple[TfliteTensor, ...]
    budget: Budget


def read_file(data: bytes, source: str, limits: Limits | None = None) -> TfliteFile:
    """Read and check the content of a TFLite file.

    Args:
        data: contents of the file.
        source: name of the file, for messages.
        limits: what reading it may take; by default those of `Limits`.

    Raises:
        ModelError: it is not a TFLite file, or damaged.
        UnsupportedError: it has several graphs, constants outside the flatbuffer, or takes more
            than the limits.
    """
    if len(data) < 8 or data[4:8] != _IDENTIFIER:
        raise ModelError(
            "not a TFLite model: the identifier 'TFL3' is missing",
            where=f"bytes 4 to 7 of {source} ({len(data)} bytes)",
            hint="give a .tflite or .onnx file, or a Relax IRModule",
        )
    budget = Budget(limits or Limits(), source, {"decoded_bytes": 4 * len(data)})
    return _FileReader(FlatBuffer(data, source, budget)).read()


class _FileReader:
    """Reads tensors and operators of the graph."""

    def __init__(self, buffer: FlatBuffer) -> None:
        self._root = buffer.root()
        self._source = buffer.source
        self._budget = buffer.budget

    def _corrupt(self, what: str, where: str = "") -> ModelError:
        place = f"{where} in {self._source}" if where else self._source
        return ModelError(f"corrupt model: {what}", where=place, hint=_HINT)

    def read(self) -> TfliteFile:
        """Read the graph."""
        version = self._root.integer(0, "I")
        if version != 3:
            raise self._corrupt(f"schema version {version} instead of 3")
        graphs = self._root.tables(2)
        if len(graphs) != 1:
            if not graphs:
                raise self._corrupt("it holds no graph")
            self._refuse_graphs(graphs)
        graph = graphs[0]
        codes = [self._code(table) for table in self._root.tables(1)]
        buffers = self._root.tables(4)
        tensors = _with_names(
            [self._tensor(index, table, buffers) for index, table in enumerate(graph.tables(0))]
        )
        operators = tuple(
            self._operator(index, table, codes, tensors)
            for index, table in enumerate(graph.tables(3))
        )
        inputs = self._tensors(graph, 1, tensors, "the graph's inputs")
        outputs = self._tensors(graph, 2, tensors, "the graph's outputs")
        self._budget.grant(tensor.data.size for tensor in tensors if tensor.data is not None)
        file = TfliteFile(
            tensors, operators, self._present(inputs), self._present(outputs), self._budget
        )
        self._check_order(file)
        return file

    def _refuse_graphs(self, graphs: tuple[FlatTable, ...]) -> None:
        codes = [self._code(table) for table in self._root.tables(1)]
        numbers = [table.integer(0, "I") for table in graphs[0].tables(3)]
        kinds = {codes[number] for number in numbers if number < len(codes)} & set(_MANY_GRAPHS)
        named = f" ({', '.join(sorted(kinds))})" if kinds else ""
        raise UnsupportedError(
            f"a model of {len(graphs)} graphs{named}",
            where=self._source,
            hint="control flow and resource variables are not supported; export one plain "
            "inference graph",
        )

    def _present(self, tensors: tuple[TfliteTensor | None, ...]) -> tuple[TfliteTensor, ...]:
        given = tuple(tensor for tensor in tensors if tensor is not None)
        if not given or len(given) != len(tensors):
            raise self._corrupt("inputs or outputs of the graph are missing")
        return given

    def _code(self, table: FlatTable) -> str:
        # Older files keep the code in eight bits, newer ones in both fields, some only in the
        # longer one; runtimes take the larger.
        short, code = table.integer(0, "b"), table.integer(3, "i")
        if code and short and short != min(code, 127):
            raise self._corrupt(f"operator codes {short} and {code} contradict each other")
        code = max(code, short)
        if not 0 <= code < len(OPERATOR_NAMES):
            raise self._corrupt(f"operator code {code} does not exist")
        if OPERATOR_NAMES[code] == _CUSTOM:
            return f"{_CUSTOM} '{table.string(1)}'"
        return OPERATOR_NAMES[code]

    def _tensor(self, index: int, table: FlatTable, buffers: tuple[FlatTable, ...]) -> TfliteTensor:
        name = table.string(3)
        where = f"tensor {index} '{name}'"
        shape = self._integers(table.vector(0, "int32"))
        # Without elements are the intermediate results that a fused LSTM only declares.
        if len(shape) > MOST_AXES:
            raise self._corrupt(f"{len(shape)} axes, of at most {MOST_AXES}", where)
        if min(shape, default=0) < 0 or math.prod(n or 1 for n in shape) > _MOST_ELEMENTS:
            raise self._corrupt(f"shape {shape}", where)
        code = table.integer(1, "b")
        if code not in ELEMENT_TYPES:
            raise self._corrupt(f"element type {code} does not exist", where)
        dtype = ELEMENT_TYPES[code]
        if table.table(6) is not None:
            raise UnsupportedError("a sparse tensor", where=where, hint="export it dense")
        scales, zero_points, axis = self._quantization(table.table(4), shape, where)
        number = table.integer(2, "I")
        if number >= len(buffers):
            raise self._corrupt(f"buffer {number} of {len(buffers)}", where)
        data = self._data(buffers[number], dtype, shape, where)
        variable = bool(table.integer(5, "B"))
        left_open = any(size < 0 for size in self._integers(table.vector(7, "int32")))
        return TfliteTensor(
            index, name, shape, dtype, data, scales, zero_points, axis, variable, left_open
        )

    def _data(
        self, table: FlatTable, dtype: str, shape: tuple[int, ...], where: str
    ) -> Array | None:
        if table.integer(1, "Q") > 1:
            raise UnsupportedError(
                "constants stored behind the flatbuffer", where=where, hint="export below 2 GB"
            )
        raw = table.vector(0, "uint8")
        if raw is None or raw.size == 0:
            return None
        expected = stored_bytes(dtype, math.prod(shape))
        if expected is not None and raw.size != expected:
            kind = " packed" if dtype in PACKED else ""
            raise self._corrupt(
                f"{raw.size} bytes of{kind} {dtype} instead of {expected} for shape {shape}", where
            )
        return elements(raw, dtype, math.prod(shape))

    def _quantization(
        self, table: FlatTable | None, shape: tuple[int, ...], where: str
    ) -> tuple[tuple[float, ...], tuple[int, ...], int]:
        if table is None:
            return (), (), 0
        found = table.vector(2, "float32")
        scales = () if found is None else tuple(found.tolist())
        zero_points = self._integers(table.vector(3, "int64"))
        axis = table.integer(6, "i")
        details = table.integer(4, "B")
        if details:
            name = _DETAILS.get(details, f"quantization of kind {details}")
            raise UnsupportedError(name, where=where, hint="quantize per tensor or per channel")
        if not scales:
            return (), (), 0
        if any(not (scale > 0 and math.isfinite(scale)) for scale in scales):
            raise self._corrupt("a scale that is not positive and finite", where)
        if len(zero_points) not in (1, len(scales)):
            raise self._corrupt(f"{len(zero_points)} zero points for {len(scales)} scales", where)
        if any(not -(2**31) <= zero_point < 2**31 for zero_point in zero_points):
            raise self._corrupt("a zero point beyond int32", where)
        if len(shape) == 1:
            axis = 0  # whatever the file says: old ones name the axis of the weights for a bias
        if not 0 <= axis < max(len(shape), 1):
            raise self._corrupt(f"quantized along axis {axis} of {shape}", where)
        if len(scales) > 1 and (not shape or shape[axis] != len(scales)):
            raise self._corrupt(f"{len(scales)} scales along axis {axis} of {shape}", where)
        if len(scales) > 1 and any(zero_points):
            raise UnsupportedError(
                "several scales with zero points", where=where, hint="quantize symmetrically"
            )
        return scales, zero_points, axis

    @staticmethod
    def _integers(values: Array | None) -> tuple[int, ...]:
        return () if values is None else tuple(values.tolist())

    def _operator(
        self,
        index: int,
        table: FlatTable,
        codes: list[str],
        tensors: tuple[TfliteTensor, ...],
    ) -> TfliteOperator:
        code = table.integer(0, "I")
        if code >= len(codes):
            raise self._corrupt(f"operator code {code} of {len(codes)}", f"operator {index}")
        where = f"operator {index} ({codes[code]})"
        outputs = self._tensors(table, 2, tensors, where)
        if not outputs or None in outputs:
            raise self._corrupt("it has no output", where)
        return TfliteOperator(
            index,
            codes[code],
            self._tensors(table, 1, tensors, where),
            tuple(tensor for tensor in outputs if tensor is not None),
            table.table(4),
            table.integer(3, "B"),
        )

    def _tensors(
        self, table: FlatTable, field: int, tensors: tuple[TfliteTensor, ...], where: str
    ) -> tuple[TfliteTensor | None, ...]:
        indices = self._integers(table.vector(field, "int32"))
        for index in indices:
            if not -1 <= index < len(tensors):
                raise self._corrupt(f"tensor {index} of {len(tensors)}", where)
        return tuple(None if index < 0 else tensors[index] for index in indices)

    def _check_order(self, file: TfliteFile) -> None:
        """Check that each activation is an input or written once before reads; names are unique."""
        written = {tensor.index for tensor in file.inputs}
        if len(written) != len(file.inputs):
            raise self._corrupt("an input is listed twice")
        written |= {tensor.index for tensor in file.tensors if tensor.variable}
        for operator in file.operators:
            # A custom operator may have memory to work in among its inputs.
            inputs = () if operator.kind.startswith(_CUSTOM) else operator.inputs
            for tensor in inputs:
                if tensor and tensor.data is None and tensor.index not in written:
                    raise self._corrupt(f"{tensor.place} is read before it is written",
                                        operator.place)  # fmt: skip
            for tensor in operator.outputs:
                if tensor.index in written or tensor.data is not None:
                    raise self._corrupt(f"{tensor.place} is written twice", operator.place)
                written.add(tensor.index)
        for tensor in file.outputs:
            if tensor.index not in written:
                raise self._corrupt(f"the output {tensor.place} is never written")


def _with_names(tensors: Sequence[TfliteTensor]) -> tuple[TfliteTensor, ...]:
    """Return the tensors with names of their own; files need not have any."""
    counts = Counter(tensor.name for tensor in tensors)
    used_names = set(counts)
    result = []
    for tensor in tensors:
        name = tensor.name
        if not name or counts[name] > 1:
            name = f"{name or 'tensor'}_{tensor.index}"
            while name in used_names:
                name += "_"
            used_names.add(name)
        result.append(replace(tensor, name=name))
    return tuple(result)
