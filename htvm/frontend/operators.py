"""The operators of a quantized network, between reading the source and writing the integer form.

An `Activation` is a tensor, int8 by default; each except for the inputs is the result of one
operator, a frozen record with everything needed to write it.  Operators hold their inputs, so the
outputs hold the whole network.

A new operator needs only a class below `patterns/ops` and a handler in its frontend.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from byoc_dory.errors import UnsupportedError
from htvm.model import TensorInfo
from patterns.op import TensorType

if TYPE_CHECKING:
    from patterns.op import Op

MOST_ELEMENTS = 2**31 - 1
"""Elements of a tensor: what 32-bit indices reach."""

MOST_AXES = 32
"""Axes of a tensor: what arrays have everywhere."""

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
        shape: shape in the source's layout, including the batch.
        origin: the operator that computes it, or the name of the input.
        dtype: int8, uint8, int16, int32 or float32.

    Raises:
        UnsupportedError: it has more elements than 32-bit indices reach, or too many axes.
    """

    shape: tuple[int, ...]
    origin: Applied | str
    dtype: str = "int8"

    @classmethod
    def of(cls, operator: Applied) -> Activation:
        """Return the result of an operator.

        Raises:
            IntegerFormError: the tensors do not fit the operator.
            UnsupportedError: it could not be computed exactly, or as of the class.
        """
        return cls(operator.result.shape, operator, operator.result.dtype)

    @property
    def type(self) -> TensorType:
        """Shape and element type."""
        return TensorType(self.shape, self.dtype)

    def __post_init__(self) -> None:
        elements, axes = math.prod(self.shape), len(self.shape)
        if elements > MOST_ELEMENTS:
            what, most = (
                f"of shape {list(self.shape)}, which has {elements} elements",
                MOST_ELEMENTS,
            )
        elif axes > MOST_AXES:
            what, most = f"of {axes} axes", MOST_AXES
        else:
            return
        origin = self.origin
        raise UnsupportedError(
            f"a tensor {what}",
            where=f"input '{origin}'" if isinstance(origin, str) else origin.where,
            hint=f"at most {most}; check the shapes in the file",
        )


@dataclass(frozen=True, eq=False)
class Applied:
    """An operator of the integer form applied to tensors.

    Attributes:
        position: position in the source, which orders the operators; the second number orders those
            from one position.
        where: description of the place in the source, for messages.
        inputs: tensors that it reads.
        op: the operator.
        stem: stem of its name (``stem_0``, ``stem_1`` ...); the operator's own if empty.
    """

    position: Pair
    where: str
    inputs: tuple[Activation, ...]
    op: Op
    stem: str = ""

    @cached_property
    def result(self) -> TensorType:
        """The type of its result; errors as of `Op.result_of`."""
        return self.op.result_of([tensor.type for tensor in self.inputs])


def info_of(
    name: str, activation: Activation, quantizations: Mapping[Activation, Quantization]
) -> TensorInfo:
    """Return a model's description of an input or output, with its quantization if known.

    Scales that the caller knows are those of ONNX's QuantizeLinear, which rounds halves to even.
    """
    found = quantizations.get(activation)
    if found is None:
        return TensorInfo(name, activation.shape, activation.dtype)
    return TensorInfo(
        name, activation.shape, activation.dtype, found.scale, found.zero_point, halves_to_even=True
    )
