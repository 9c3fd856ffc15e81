"""What a quantized network computes, between reading the source and writing the integer form.

An `Activation` is a tensor, int8 unless it says otherwise; each but the inputs comes from one
operator, a frozen record with everything needed to write it.  Operators hold their inputs, so the
outputs hold the whole network.

A new operator needs no more than a class below `patterns/ops` and a handler in its frontend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from htvm.model import TensorInfo

if TYPE_CHECKING:
    from patterns.op import Op

__all__ = [
    "Activation",
    "Applied",
    "Clip",
    "Pads",
    "Pair",
    "Quantization",
    "info_of",
]

Clip: TypeAlias = tuple[int, int]
Pair: TypeAlias = tuple[int, int]
Pads: TypeAlias = tuple[int, int, int, int]  # top, left, bottom, right


@dataclass(frozen=True)
class Quantization:
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
    origin: Applied | str
    dtype: str = "int8"


@dataclass(frozen=True, eq=False)
class Applied:
    """An operator of the integer form applied to tensors.

    Attributes:
        position: place in the source, which orders the operators; the second number orders those
            made from one place.
        where: place in the source, for messages.
        inputs: tensors read.
        op: the operator.
        stem: what names are made of (``stem_0``, ``stem_1`` ...); the operator's own if empty.
    """

    position: Pair
    where: str
    inputs: tuple[Activation, ...]
    op: Op
    stem: str = ""


def info_of(
    name: str, activation: Activation, quantizations: Mapping[Activation, Quantization]
) -> TensorInfo:
    """What a model says of an input or output, its quantization included where it is known."""
    found = quantizations.get(activation)
    parameters = () if found is None else (found.scale, found.zero_point)
    return TensorInfo(name, activation.shape, activation.dtype, *parameters)
