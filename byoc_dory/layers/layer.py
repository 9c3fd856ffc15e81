"""`Layer`: one quantized operator with exact shapes, the form that all later stages use.

A layer depends neither on how it was found (no compiler IR) nor on where it will run (no SoC).
Rules check it, the tiler tiles it, the code generator turns it into C.  All shapes are without the
batch axis, in the order C-y-x, and weights in the order K-C-fy-fx, whatever the source's layout;
only the tensors at the border of a region have the source's layout.

This file has the common base, with tensors and requantizations.

In requantizations, ``acc`` is the accumulator, including the bias; ``clip`` is the layer's.
Divisions are shifts, and their rounding is part of the definition.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import ModelError

Array: TypeAlias = npt.NDArray[Any]
Layout: TypeAlias = Literal["CHW", "NHWC", "NCHW", "C"]

_LAYOUTS = get_args(Layout)


@dataclass(frozen=True)
class Tensor:
    """A named activation without its batch axis.

    Attributes:
        name: unique name within the model.
        shape: size in elements, ``(C, y, x)``, or ``(C,)`` for a vector; always in this order.
        dtype: numpy name of the element type.
        layout: order of the bytes in L2.  ``"CHW"`` is the accelerator's own layout (used inside a
            region); ``"NHWC"``, ``"NCHW"`` and ``"C"`` (a vector) are the source's layouts, which
            occur only at the border of a region.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "int8"
    layout: Layout = "CHW"

    def __post_init__(self) -> None:
        where = f"tensor '{self.name}'"
        if not self.name:
            raise ModelError("a tensor has no name", where=f"shape {self.shape}")
        if len(self.shape) not in (1, 3):
            raise ModelError(
                f"shape {self.shape} has {len(self.shape)} dimensions",
                where=where,
                hint="give (C, y, x) or (C,), without the batch axis",
            )
        if any(size < 1 for size in self.shape):
            raise ModelError(f"shape {self.shape} has an empty dimension", where=where)
        if self.layout not in _LAYOUTS:
            raise ModelError(
                f"unknown layout '{self.layout}'", where=where, hint=f"one of {_LAYOUTS}"
            )

    @property
    def elements(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @property
    def stored(self) -> Tensor:
        """The tensor whose bytes in L2 it has: itself, or the one that it is a part of."""
        return self


@dataclass(frozen=True)
class TensorPart(Tensor):
    """A range of bytes of another tensor.

    Attributes:
        whole: the other tensor.
        first: byte offset in it.
        inside: whether its bytes in L2 are those of ``whole``, not its own.
    """

    whole: Tensor = field(kw_only=True)
    first: int = field(kw_only=True)
    inside: bool = field(kw_only=True)

    @property
    def stored(self) -> Tensor:
        """The tensor whose bytes in L2 it has."""
        return self.whole if self.inside else self


@dataclass(frozen=True)
class MapRows(TensorPart):
    """Rows of a map, of all its channels.

    Attributes:
        first: number of the first one.
    """


def matrix(name: str, rows: int, columns: int, dtype: str = "int8") -> Tensor:
    """Return a matrix as a tensor ``(columns, rows, 1)``, stored row by row."""
    return Tensor(name, (columns, rows, 1), dtype, "NHWC")


@dataclass(frozen=True)
class Shift:
    """Requantization by an arithmetic right shift that floors: ``y = clip(acc >> shift)``."""

    shift: int


@dataclass(frozen=True)
class MulShift:
    """Requantization ``y = clip((acc * mul + add) >> shift)``; one entry, or one per channel."""

    mul: tuple[int, ...]
    shift: tuple[int, ...]
    add: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class TfliteRequant:
    """TFLite's fixed-point requantization with double rounding; one entry, or one per channel.

    Attributes:
        multiplier: Q31 multipliers, per tensor (one entry) or per output channel.
        shift: TFLite's exponents (positive: left), as many as there are multipliers; -1 for a
            multiplier of zero, which gives zero with any, because all right shifts are simpler.
        output_zero_point: added after scaling.
        input_zero_points: one per input tensor; subtracted from the activations.
    """

    multiplier: tuple[int, ...]
    shift: tuple[int, ...]
    output_zero_point: int = 0
    input_zero_points: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        factors = zip(self.multiplier, self.shift, strict=True)
        object.__setattr__(self, "shift", tuple(shift if mul else -1 for mul, shift in factors))


@dataclass(frozen=True)
class OnnxRequant:
    """onnxruntime's float32 requantization; one entry, or one per channel.

    ``y = clip(rint(float32(acc) * scale) + output_zero_point)``, ties to even, where the float32
    ``scale`` is ``multiplier * 2**-shift``.

    Attributes:
        multiplier: 24-bit mantissas (0 for a scale that takes every int32 to zero).
        shift: shifts of 1 to 62 bits, as many as there are multipliers.
        output_zero_point: added after scaling.
        input_zero_points: one per input tensor; subtracted from the activations.
    """

    multiplier: tuple[int, ...]
    shift: tuple[int, ...]
    output_zero_point: int = 0
    input_zero_points: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class OnnxSum(OnnxRequant):
    """onnxruntime's sum of two tensors of bytes, with a factor for each: float32 after each step.

    With ``f`` for rounding to float32, ``s`` for the factors and ``x`` for the bytes plus
    ``offset``, its kernel computes ``clip(rint(f(f(x[1] * s[1] + c) + x[0] * s[0])) - offset)``.
    There, ``c = f(o - f(z[0] * s[0] + f(z[1] * s[1])))``, with the zero points ``o`` and ``z`` plus
    ``offset``; if it is turned, its operands change places.  In reals, it is
    ``clip(rint(f(f(f(x[0] * steps[0]) + f(x[1] * steps[1])) / steps[2])) + o)``, with ``x`` less
    its zero points.

    Attributes:
        offset: what the kernel's integers are above int8: 0 or 128.
        turned: whether its operands change places.
        steps: scales of operands and result as float32, if it is computed in reals; else empty.
    """

    offset: int = 0
    turned: bool = False
    steps: tuple[float, ...] = ()


@dataclass(frozen=True)
class TorchRequant:
    """The requantization of quantized programs of torch; one entry, or one per channel.

    ``y = clip(rint((acc * multiplier + addend) / 2**shift) + output_zero_point)``, ties to even, in
    integers of 64 bits.

    Attributes:
        multiplier: multipliers below 2**31.
        shift: shifts of 1 to 61 bits, as many as there are multipliers.
        addend: what is left of the bias behind whole steps of the accumulator, below 2**31 in
            magnitude: one entry, or one per channel.
        output_zero_point: added after scaling.
        input_zero_points: one per input tensor; subtracted from the activations.
    """

    multiplier: tuple[int, ...]
    shift: tuple[int, ...]
    addend: tuple[int, ...] = (0,)
    output_zero_point: int = 0
    input_zero_points: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class AnalogRequant:
    """Requantization of an in-memory core with ternary weights, such as DIANA's analog core.

    Each pass over the array gives ``v = clip(floor(acc / gain), *adc)``; the passes are summed,
    and ``y = clip((v * mul + add) >> shift)``.

    Attributes:
        gain: value of one step of the ADC, a power of two.
        mul, add: 16-bit numbers, one entry or one per output channel.
        shift: number of bits of the arithmetic right shift, which floors.
        adc: inclusive range of the converter.
        rows: number of rows of the array; a pass takes as many whole input channels as they hold,
            which is ``rows // (fy * fx)`` channels for the filter that the core executes.
    """

    gain: int
    mul: tuple[int, ...]
    add: tuple[int, ...]
    shift: int
    rows: int
    adc: tuple[int, int] = (-32, 31)


Requant: TypeAlias = (
    Shift | MulShift | TfliteRequant | OnnxRequant | OnnxSum | TorchRequant | AnalogRequant
)


INT8 = (-128, 127)


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer(ABC):
    """One operator, including its requantization and clip.

    Attributes:
        name: unique name within the model; the generated function is named after it.
        inputs: the tensors that it reads, in the order of its operands.
        output: the result.
        requant: requantization from the int32 accumulator to the output type.
        clip: inclusive range (low, high) of the output.
        input_range: inclusive range (low, high) that all inputs are known to lie in.

    Raises:
        ModelError: the fields contradict each other.
    """

    name: str
    inputs: tuple[Tensor, ...]
    output: Tensor
    requant: Requant
    clip: tuple[int, int] = INT8
    input_range: tuple[int, int] = INT8

    of_matrices: ClassVar[bool] = False
    """Whether its tensors are matrices: rows of channels, stored one after another.

    The axes by which these rows are counted do not matter.  Retargeting writes maps and vectors in
    a core's number scheme, but does not change the scheme of matrices.
    """

    def __post_init__(self) -> None:
        if not self.name:
            raise ModelError("a layer has no name", where=f"a {self.op} layer")
        low, high = self.clip
        if low > high:
            raise self._error(f"clip range [{low}, {high}] is empty")
        if len(self.inputs) != self.operands:
            raise self._error(f"{len(self.inputs)} input tensors instead of {self.operands}")
        self._check()

    # ------------------------------------------------------------------ what each kind says

    @property
    @abstractmethod
    def op(self) -> str:
        """Name of the operator in reports and messages, e.g. ``conv2d``."""

    @property
    @abstractmethod
    def macs(self) -> int:
        """Multiply-accumulates, not counting padding."""

    @property
    @abstractmethod
    def shape_text(self) -> str:
        """The sizes as a short text, for comments and messages."""

    @property
    def sizes_text(self) -> str:
        """The sizes for tables, maps first: ``16x32x32 -> 32x16x16, 3x3/2`` (kernel / stride)."""
        sizes = f"{self.C}x{self.iy}x{self.ix} -> {self.K}x{self.oy}x{self.ox}"
        sy, sx = self.stride
        stride = "" if (sy, sx) == (1, 1) else f"/{sy}" if sy == sx else f"/{sy}x{sx}"
        return f"{sizes}, {self.fy}x{self.fx}{stride}"

    @property
    def operands(self) -> int:
        """Number of tensors that it reads."""
        return 1

    @property
    def geometry(self) -> tuple[object, ...]:
        """Everything but names and values: layers with equal geometry take the same cycles."""
        return (type(self), tuple(tensor.shape for tensor in self.inputs), self.output.shape)

    @abstractmethod
    def _check(self) -> None:
        """Raise `ModelError` if shapes or parameters contradict each other."""

    @property
    def whole_name(self) -> str:
        """Its name; of a part of a layer (`byoc_dory.blocks`) the name of that layer."""
        is_part = isinstance(self.output, TensorPart)
        return self.name.rpartition(".")[0] if is_part else self.name

    # ------------------------------------------------------------------ sizes

    @property
    def K(self) -> int:
        """Output channels."""
        return self.output.shape[0]

    @property
    def C(self) -> int:
        """Input channels."""
        return self.inputs[0].shape[0]

    @property
    def iy(self) -> int:
        """Height of the input (1 for vectors)."""
        return _height(self.inputs[0])

    @property
    def ix(self) -> int:
        """Width of the input (1 for vectors)."""
        return _width(self.inputs[0])

    @property
    def oy(self) -> int:
        """Height of the output (1 for vectors)."""
        return _height(self.output)

    @property
    def ox(self) -> int:
        """Width of the output (1 for vectors)."""
        return _width(self.output)

    @property
    def fy(self) -> int:
        """Height of the kernel (1 for all but convolutions)."""
        return 1

    @property
    def fx(self) -> int:
        """Width of the kernel (1 for all but convolutions)."""
        return 1

    @property
    def stride(self) -> tuple[int, int]:
        """Stride (y, x)."""
        return (1, 1)

    @property
    def pad(self) -> tuple[int, int, int, int]:
        """Zeros added at (top, left, bottom, right)."""
        return (0, 0, 0, 0)

    @property
    def dilation(self) -> tuple[int, int]:
        """Dilation (y, x)."""
        return (1, 1)

    @property
    def groups(self) -> int:
        """Number of groups of channels that are summed separately."""
        return 1

    @property
    def relu(self) -> bool:
        """Whether the clip range starts at zero."""
        return self.clip[0] == 0

    # ------------------------------------------------------------------ validation

    def _error(self, what: str, hint: str = "") -> ModelError:
        return ModelError(what, where=f"layer '{self.name}' ({self.op})", hint=hint)

    def _check_shape(self, tensor: Tensor, wanted: tuple[int, ...], hint: str = "") -> None:
        if tensor.shape != wanted:
            raise self._error(
                f"tensor '{tensor.name}' has shape {tensor.shape}, not {wanted}", hint
            )


def out_size(size: int, pads: int, kernel: int, stride: int, dilation: int = 1) -> int:
    """Return the output size of a window sliding along an axis; 0 if it does not fit."""
    span = size + pads - dilation * (kernel - 1) - 1
    return span // stride + 1 if span >= 0 else 0


def _height(tensor: Tensor) -> int:
    return tensor.shape[1] if len(tensor.shape) == 3 else 1


def _width(tensor: Tensor) -> int:
    return tensor.shape[2] if len(tensor.shape) == 3 else 1


@lru_cache(maxsize=256)  # asked several times for each layer of a region
def value_of(layer: Layer) -> bytes:
    """Return a digest of all fields of a layer, with the elements of its arrays.

    Equal layers may be computed, and planned, as one.  No field is left out by choice, so that none
    can be forgotten; only names are, of which it matters which operands are the same tensor.
    """
    found = hashlib.sha256()
    names: dict[str, int] = {}
    _enter(found, layer, names)
    return found.digest()


def sizes_of(layer: Layer) -> tuple[object, ...]:
    """Return kind and sizes of a layer, its tensors' types, and which operands are the same."""
    tensors = tuple((each.shape, each.dtype, each.layout) for each in (*layer.inputs, layer.output))
    return (layer.geometry, tensors, tuple(layer.inputs.index(each) for each in layer.inputs))


def _enter(found: hashlib._Hash, value: object, names: dict[str, int]) -> None:
    """Enter a value with its type and length, so that different ones give different texts."""
    found.update(f"{type(value).__module__}.{type(value).__qualname__}:".encode())
    if isinstance(value, np.ndarray):
        found.update(f"{value.dtype}{value.shape}".encode())
        found.update(value.tobytes())
    elif is_dataclass(value):
        for entry in fields(value):
            inner = getattr(value, entry.name)
            if entry.name == "name" and isinstance(value, Layer | Tensor):
                inner = names.setdefault(inner, len(names)) if isinstance(value, Tensor) else ""
            _enter(found, inner, names)
    elif isinstance(value, tuple | list):
        found.update(f"{len(value)}:".encode())
        for inner in value:
            _enter(found, inner, names)
    else:
        text = repr(value).encode()
        found.update(f"{len(text)}:".encode() + text)
