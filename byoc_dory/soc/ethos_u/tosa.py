"""`TosaGraph`: writes a network in TOSA's file format, which Vela compiles.

TOSA says a requantization as a multiplier and a shift for each channel, so the numbers of our
layers reach the accelerator as they are; TFLite's format has float32 scales, from which they cannot
be computed back.  Only what regions need is here.  The numbers of fields, operators and types are
those of the schema of TOSA 1.0 (``tosa.fbs`` of Arm's serialization library, Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from byoc_dory.layers import Array
from byoc_dory.soc.ethos_u.tables import table

Rounding: TypeAlias = Literal["single", "double"]

_TYPES = {"int8": 3, "int16": 4, "int32": 5, "int48": 6}
_NUMPY = {"int48": "int64"}
_SUMS = {"int8": "int32", "int16": "int48"}
"""Type of sums of products by that of what is multiplied with weights of int8."""
_ROUNDINGS = {"single": 1, "double": 3}
_PROPAGATE_NAN = 1

# Operators, which are also the numbers of their attributes in the union.
_AVG_POOL2D, _CONV2D, _DEPTHWISE_CONV2D, _MAX_POOL2D, _TRANSPOSE_CONV2D = 2, 3, 5, 8, 10
_CLAMP, _ADD, _MUL, _SUB, _TABLE = 11, 15, 28, 30, 31
_CONCAT, _PAD, _RESHAPE, _SLICE = 55, 56, 57, 59
_RESIZE, _RESCALE, _CONST, _CONST_SHAPE = 64, 66, 67, 75
_NEAREST = 1

_Field: TypeAlias = tuple[str, Any]
"""Kind and value of a table's field."""


@dataclass(frozen=True)
class _Operator:
    code: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    fields: tuple[_Field, ...] = ()


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    data: bytes = b""


@dataclass
class TosaGraph:
    """A network in TOSA, built operator by operator; maps are NHWC, with the batch.

    Each method that adds an operator takes the names of what it reads, and gives its result the
    name and shape that it is given.
    """

    inputs: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    _tensors: dict[str, _Tensor] = field(default_factory=dict[str, _Tensor])
    _shapes: list[tuple[str, tuple[int, ...]]] = field(
        default_factory=list[tuple[str, tuple[int, ...]]]
    )
    _operators: list[_Operator] = field(default_factory=list[_Operator])

    # ------------------------------------------------------------------ tensors

    def input(self, name: str, shape: Sequence[int], dtype: str = "int8") -> str:
        """Add an input of the network, and return its name."""
        self.inputs.append(name)
        return self._tensor(name, shape, dtype)

    def constant(self, array: Array) -> str:
        """Add a constant, and return its name; int64 is written as int48."""
        name = f"constant_{len(self._tensors)}"
        data, dtype = np.asarray(array, order="C"), array.dtype.name
        content = data.tobytes()
        if dtype == "int64":
            dtype, content = "int48", data.reshape(-1, 1).view(np.uint8)[:, :6].tobytes()
        self._tensors[name] = _Tensor(name, data.shape, dtype, content)
        self._operators.append(_Operator(_CONST, (), (name,)))
        return name

    def _tensor(self, name: str, shape: Sequence[int], dtype: str) -> str:
        self._tensors[name] = _Tensor(name, tuple(map(int, shape)), dtype)
        return name

    def _type(self, name: str) -> str:
        return self._tensors[name].dtype

    def _shape(self, values: Sequence[int]) -> str:
        name = f"shape_{len(self._shapes)}"
        self._shapes.append((name, tuple(map(int, values))))
        self._operators.append(_Operator(_CONST_SHAPE, (), (name,)))
        return name

    def _zero_point(self, value: int, dtype: str) -> str:
        return self.constant(np.array([value], _NUMPY.get(dtype, dtype)))

    # ------------------------------------------------------------------ operators

    def convolution(
        self,
        source: str,
        weight: Array,
        bias: Array,
        result: str,
        shape: Sequence[int],
        *,
        depthwise: bool,
        pad: tuple[int, int, int, int],
        stride: tuple[int, int],
        dilation: tuple[int, int],
        zero_point: int,
    ) -> str:
        """Add sums of products with constant weights, of type int32, or int48 of int16.

        Args:
            source: name of the input, int8 or int16.
            weight: int8 ``[K, fy, fx, C]``; depthwise ``[fy, fx, C, K / C]``.
            bias: int32 ``[K]``, beside int16 int64.
            result: name of the sums.
            shape: their shape, ``[1, y, x, K]``.
            depthwise: whether each input channel is filtered separately.
            pad: (top, left, bottom, right), filled with the zero point.
            stride: stride (y, x).
            dilation: dilation (y, x).
            zero_point: of the input.
        """
        top, left, bottom, right = pad
        code = _DEPTHWISE_CONV2D if depthwise else _CONV2D
        places = ((top, bottom, left, right), stride, dilation)
        return self._sums(code, source, weight, bias, zero_point, places, result, shape)

    def transposed(
        self,
        source: str,
        weight: Array,
        bias: Array,
        result: str,
        shape: Sequence[int],
        *,
        before: tuple[int, int],
        stride: tuple[int, int],
        zero_point: int,
    ) -> str:
        """Add a transposed convolution with constant weights, to int32, or int48 of int16.

        Args:
            source: name of the input, int8 or int16 ``[1, y, x, C]``.
            weight: int8 ``[K, fy, fx, C]``.
            bias: int32 ``[K]``, beside int16 int64.
            result: name of the sums.
            shape: their shape, ``[1, y, x, K]``.
            before: row and column of the sums that the first element's first product goes to.
            stride: distance (y, x) between the products of neighbours.
            zero_point: of the input.
        """
        sizes = self._tensors[source].shape[1:3]
        top, left = before
        bottom, right = (
            shape[1 + n] - (sizes[n] - 1) * stride[n] - before[n] - weight.shape[1 + n]
            for n in range(2)
        )
        places = ((top, bottom, left, right), stride)
        code = _TRANSPOSE_CONV2D
        return self._sums(code, source, weight, bias, zero_point, places, result, shape)

    def _sums(
        self,
        code: int,
        source: str,
        weight: Array,
        bias: Array,
        zero_point: int,
        places: Sequence[tuple[int, ...]],
        result: str,
        shape: Sequence[int],
    ) -> str:
        """Add products with constant weights, whose first fields are ``places``."""
        dtype = self._type(source)
        inputs = (
            source,
            self.constant(weight),
            self.constant(bias),
            self._zero_point(zero_point, dtype),
            self._zero_point(0, "int8"),
        )
        local_bound, sums_type = ("bool", False), ("uint32", _TYPES[_SUMS[dtype]])
        fields = (*(("int32s", each) for each in places), local_bound, sums_type)
        self._operators.append(_Operator(code, inputs, (result,), fields))
        return self._tensor(result, shape, _SUMS[dtype])

    def rescale(
        self,
        source: str,
        multipliers: Sequence[int],
        shifts: Sequence[int],
        rounding: Rounding,
        result: str,
        shape: Sequence[int],
        *,
        zero_points: tuple[int, int],
        dtype: str,
    ) -> str:
        """Add ``((x - z) * multiplier >> shift) + z'``, rounded and saturated.

        Args:
            source: name of the input.
            multipliers: from 0 to 2**31 - 1, of int48 to 2**15 - 1; one or one for each channel.
            shifts: from 2 to 62, as many.
            rounding: ``"single"``: half up; ``"double"``: as TFLite rounds.
            result: name of the result.
            shape: its shape.
            zero_points: of the input (0 if that has 32 bits or more) and the result.
            dtype: type of the result.
        """
        short = self._type(source) == "int48"
        inputs = (
            source,
            self.constant(np.array(multipliers, np.int16 if short else np.int32)),
            self.constant(np.array(shifts, np.int8)),
            self._zero_point(zero_points[0], self._type(source)),
            self._zero_point(zero_points[1], dtype),
        )
        fields = (
            ("bool", not short),
            ("uint32", _ROUNDINGS[rounding]),
            ("bool", len(multipliers) > 1),
            ("bool", False),
            ("bool", False),
        )
        self._operators.append(_Operator(_RESCALE, inputs, (result,), fields))
        return self._tensor(result, shape, dtype)

    def clamp(self, source: str, bounds: tuple[int, int], result: str, shape: Sequence[int]) -> str:
        """Add a clip of an int8 or int16 tensor to these inclusive bounds."""
        dtype = self._type(source)
        fields = tuple(("bytes", np.array([bound], dtype).tobytes()) for bound in bounds)
        fields = (*fields, ("uint32", _PROPAGATE_NAN))
        self._operators.append(_Operator(_CLAMP, (source,), (result,), fields))
        return self._tensor(result, shape, dtype)

    def add(self, a: str, b: str, result: str, shape: Sequence[int]) -> str:
        """Add the sum of two int32 tensors of this shape, or with axes of one element."""
        self._operators.append(_Operator(_ADD, (a, b), (result,)))
        return self._tensor(result, shape, "int32")

    def subtract(self, a: str, b: str, result: str, shape: Sequence[int]) -> str:
        """Add the difference of two such tensors."""
        self._operators.append(_Operator(_SUB, (a, b), (result,)))
        return self._tensor(result, shape, "int32")

    def multiply(self, a: str, b: str, result: str, shape: Sequence[int]) -> str:
        """Add the product of two such tensors of int16, int32."""
        shift = self._zero_point(0, "int8")
        self._operators.append(_Operator(_MUL, (a, b, shift), (result,)))
        return self._tensor(result, shape, "int32")

    def pool(
        self,
        kind: Literal["average", "max"],
        source: str,
        result: str,
        shape: Sequence[int],
        *,
        kernel: tuple[int, int],
        stride: tuple[int, int],
        pad: tuple[int, int, int, int],
    ) -> str:
        """Add averages or maxima of windows of a map; padding does not count."""
        top, left, bottom, right = pad
        fields: tuple[_Field, ...] = (
            ("int32s", kernel),
            ("int32s", stride),
            ("int32s", (top, bottom, left, right)),
        )
        if kind == "average":
            zeros = (self._zero_point(0, self._type(source)) for _ in range(2))
            inputs = (source, *zeros)
            fields = (*fields, ("uint32", _TYPES["int32"]))
            self._operators.append(_Operator(_AVG_POOL2D, inputs, (result,), fields))
        else:
            fields = (*fields, ("uint32", _PROPAGATE_NAN))
            self._operators.append(_Operator(_MAX_POOL2D, (source,), (result,), fields))
        return self._tensor(result, shape, self._type(source))

    def reshape(self, source: str, result: str, shape: Sequence[int]) -> str:
        """Add a reshape of a tensor."""
        self._operators.append(_Operator(_RESHAPE, (source, self._shape(shape)), (result,)))
        return self._tensor(result, shape, self._type(source))

    def pad(
        self,
        source: str,
        sizes: tuple[int, int, int, int],
        value: int,
        result: str,
        shape: Sequence[int],
    ) -> str:
        """Add (top, left, bottom, right) rows and columns of a value to a map."""
        top, left, bottom, right = sizes
        axes = self._shape((0, 0, top, bottom, left, right, 0, 0))
        fill = self.constant(np.array([value], self._type(source)))
        self._operators.append(_Operator(_PAD, (source, axes, fill), (result,)))
        return self._tensor(result, shape, self._type(source))

    def concat(self, sources: Sequence[str], axis: int, result: str, shape: Sequence[int]) -> str:
        """Add tensors one behind the other along an axis."""
        fields = (("int32", axis),)
        self._operators.append(_Operator(_CONCAT, tuple(sources), (result,), fields))
        return self._tensor(result, shape, self._type(sources[0]))

    def repeat(self, source: str, factor: int, result: str, shape: Sequence[int]) -> str:
        """Add a map with each row and column so many times: a power of two."""
        sizes = (
            self._shape((2 * factor, 2, 2 * factor, 2)),
            self._shape((1 - factor, 1 - factor)),
            self._shape((factor - 1, factor - 1)),
        )
        fields = (("uint32", _NEAREST),)
        self._operators.append(_Operator(_RESIZE, (source, *sizes), (result,), fields))
        return self._tensor(result, shape, self._type(source))

    def crop(self, source: str, begin: Sequence[int], sizes: Sequence[int], result: str) -> str:
        """Add so many elements of a tensor along each axis, from a place on."""
        start = self._shape(begin)
        self._operators.append(_Operator(_SLICE, (source, start, self._shape(sizes)), (result,)))
        return self._tensor(result, sizes, self._type(source))

    def table(self, source: str, values: Array, result: str, shape: Sequence[int]) -> str:
        """Add a look-up: int8 ``[256]``, for arguments from -128 to 127."""
        inputs = (source, self.constant(np.asarray(values, np.int8)))
        self._operators.append(_Operator(_TABLE, inputs, (result,)))
        return self._tensor(result, shape, "int8")

    # ------------------------------------------------------------------ the file

    def content(self) -> bytes:
        """Return the file."""
        import flatbuffers

        builder = flatbuffers.Builder(1 << 16)
        version = _table(builder, ("int32", 1), ("int32", 0), ("int32", 0), ("bool", False))
        operators = [_operator(builder, entry) for entry in self._operators]
        tensors = [_tensor(builder, entry) for entry in self._tensors.values()]
        shapes = [_shape(builder, *entry) for entry in self._shapes]
        block = _table(
            builder,
            ("text", "main"),
            ("tables", operators),
            ("tables", tensors),
            ("texts", self.inputs),
            ("texts", self.outputs),
            ("tables", shapes),
        )
        region = _table(builder, ("text", "main"), ("tables", [block]))
        graph = _table(builder, ("table", version), ("tables", [region]))
        builder.Finish(graph, file_identifier=b"TOSA")
        return bytes(builder.Output())


def _table(builder: Any, *fields: _Field) -> int:
    return table(builder, dict(enumerate(fields)))


def _operator(builder: Any, entry: _Operator) -> int:
    attribute = _table(builder, *entry.fields)
    return _table(
        builder,
        ("uint32", entry.code),
        ("uint8", entry.code),  # which class of attribute it is
        ("table", attribute),
        ("texts", entry.inputs),
        ("texts", entry.outputs),
    )


def _tensor(builder: Any, entry: _Tensor) -> int:
    return _table(
        builder,
        ("text", entry.name),
        ("int32s", entry.shape),
        ("uint32", _TYPES[entry.dtype]),
        ("bytes", entry.data),
    )


def _shape(builder: Any, name: str, values: tuple[int, ...]) -> int:
    data = np.array(values, np.int64).tobytes()
    return _table(builder, ("text", name), ("uint32", len(values)), ("bytes", data))
