"""`Layer`: one quantized operator with exact shapes, the form that all later stages use.

A layer depends neither on how it was found (no compiler IR) nor on where it will run (no SoC).
Rules check it, the tiler tiles it, the code generator turns it into C.  All shapes are without the
batch axis, in the order C-y-x, and weights in the order K-C-fy-fx, whatever the source's layout;
only the tensors at the border of a region have the source's layout.

This file has the common base; each kind of layer has a class in a file of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from byoc_dory.errors import ModelError
from byoc_dory.layers.requantization import (
    AnalogRequant,
    MulShift,
    OnnxRequant,
    Requant,
    Shift,
    TfliteRequant,
)
from byoc_dory.layers.tensor import Array, Layout, Tensor

__all__ = [
    "INT8",
    "AnalogRequant",
    "Array",
    "Layer",
    "Layout",
    "MulShift",
    "OnnxRequant",
    "Requant",
    "Shift",
    "Tensor",
    "TfliteRequant",
    "out_size",
]

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
