"""What a quantized network computes, between reading the source and writing the integer form.

An `Activation` is a tensor, int8 unless it says otherwise; each but the inputs comes from one
operator, a frozen record with everything needed to write it.  Operators hold their inputs, so the
outputs hold the whole network.

The operators with a record of their own are those that more than one frontend reads, and that
retargeting knows.  Everything else is a `Primitive`, which says how it is written itself: a new
operator needs no more than a builder in `patterns` and a handler in its frontend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from byoc_dory.layers import Array

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Var

    from patterns.op import Op

__all__ = [
    "BIAS_TOLERANCE",
    "Activation",
    "Applied",
    "Clip",
    "Conv",
    "Dense",
    "Operator",
    "Pads",
    "Pair",
    "Primitive",
    "Rounding",
    "Step",
    "Write",
]

Clip: TypeAlias = tuple[int, int]
Pair: TypeAlias = tuple[int, int]
Pads: TypeAlias = tuple[int, int, int, int]  # top, left, bottom, right
Rounding: TypeAlias = Literal["tflite", "onnx"]
Write: TypeAlias = "Callable[[BlockBuilder, Sequence[Var], str], Var]"


BIAS_TOLERANCE = 0.02
"""How far the scale of a bias may be from s_in * s_w for its integers to be taken as they are."""


@dataclass(frozen=True)
class Step:
    """Affine quantization of an activation: ``real = scale * (integer - zero_point)``."""

    scale: float
    zero_point: int


@dataclass(frozen=True, eq=False)
class Activation:
    """A tensor.

    Attributes:
        shape: in the source's layout, batch included.
        origin: the operator it comes from, or the name of the input it is.
        dtype: int8, uint8, int16, int32 or float32.
    """

    shape: tuple[int, ...]
    origin: Operator | str
    dtype: str = "int8"


@dataclass(frozen=True, eq=False)
class Operator:
    """Base of all operators.

    Attributes:
        position: place in the source, which orders the operators; the second number orders those
            made from one place.
        where: place in the source, for messages.
        inputs: tensors read.
    """

    position: Pair
    where: str
    inputs: tuple[Activation, ...]


@dataclass(frozen=True, eq=False)
class Applied(Operator):
    """An operator of the integer form applied to tensors.

    Attributes:
        op: the operator.
        stem: what names are made of (``stem_0``, ``stem_1`` ...); the operator's own if empty.
    """

    op: Op
    stem: str = ""


@dataclass(frozen=True, eq=False)
class Primitive(Operator):
    """An operator that says how it is written.

    Attributes:
        kind: what it is; names are made of it (``kind_0``, ``kind_1`` ...).
        write: builder of `patterns`, applied to the block builder, the variables of ``inputs`` and
            the operator's name; returns the variable of the result.
    """

    kind: str
    write: Write


@dataclass(frozen=True, eq=False)
class Conv(Operator):
    """A convolution; ``weight`` is ``[K, C / groups, fy, fx]``, ``ratios`` are s_in * s_w / s_out.

    ``ratios`` has one entry or one per output channel; ``bias`` is int32 in steps of s_in * s_w;
    ``rounding`` is whose requantization is meant.
    """

    weight: Array
    bias: Array
    ratios: tuple[float, ...]
    input_zero_point: int
    output_zero_point: int
    clip: Clip
    strides: Pair
    padding: Pads
    dilation: Pair
    groups: int
    layout: str
    rounding: Rounding = "tflite"


@dataclass(frozen=True, eq=False)
class Dense(Operator):
    """A fully connected layer; ``weight`` is ``[K, C]``, the rest as in `Conv`."""

    weight: Array
    bias: Array
    ratios: tuple[float, ...]
    input_zero_point: int
    output_zero_point: int
    clip: Clip
    rounding: Rounding = "tflite"
