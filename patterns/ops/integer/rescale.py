"""Integers in another type: cast, or ``clip((x * mul + add) >> shift)``, with broadcasting.

A requantization that follows a layer is part of that layer (`patterns.ops.requantize`), and one
from int8 to int8 is a conversion (`patterns.ops.convert`); a rescaling is for all other cases:
wide tensors, factors per row, other types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import te, tirx

from byoc_dory.errors import UnsupportedError
from byoc_dory.layers.layer import Array, MulShift
from patterns.op import Range, TensorType, Work, operator
from patterns.ops.broadcast import broadcast_load
from patterns.ops.integer.limits import INT32_MAX, constant_of, magnitude
from patterns.primitive import Argument, Inputs, PrimitiveOp, type_of


@operator
@dataclass(frozen=True, eq=False)
class Rescale(PrimitiveOp):
    """``clip((x * mul + add) >> shift)`` of any integers, with a shift that floors.

    Attributes:
        mul, add: integers that fit int32 and broadcast to the shape of the input.
        shift: number of bits, 0 to 31.
        clip: inclusive range of the output.
        dtype: type of the output.
        bound: largest magnitude of the input, if smaller than its type allows.
    """

    kind = "rescale"
    work = Work.MOVE

    mul: Array
    add: Array
    shift: int
    clip: Range
    dtype: str = "int8"
    bound: int | None = None

    @classmethod
    def moving(cls, offset: int, clip: Range, dtype: str) -> Rescale:
        """Return the operator that adds an offset to integers, possibly changing their type."""
        return cls(np.ones((), "int32"), np.full((), offset, "int32"), 0, clip, dtype)

    @property
    def offset(self) -> int | None:
        """The offset, if it does nothing else than add one; ``None`` otherwise."""
        if self.shift or self.mul.size != 1 or self.add.size != 1 or self.mul.item() != 1:
            return None
        return int(self.add.item())

    @property
    def requantization(self) -> MulShift | None:
        """The equivalent requantization of a layer; ``None`` if the factors vary."""
        if self.mul.size != 1 or self.add.size != 1:
            return None
        return MulShift((int(self.mul.item()),), (self.shift,), (int(self.add.item()),))

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        if not 0 <= self.shift <= 31:
            raise UnsupportedError(f"a shift by {self.shift}", hint="0 to 31")
        return TensorType(inputs[0].shape, self.dtype)

    def arguments(self, inputs: Inputs) -> Sequence[Argument]:
        """See `PrimitiveOp.arguments`: the input, factors and summands."""
        rank = len(type_of(inputs[0]).shape)
        mul, add = (constant_of(part, rank) for part in (self.mul, self.add))
        return Argument("x", inputs[0]), Argument("mul", mul, "mul"), Argument("add", add, "add")

    def element(self, index: Sequence[Any], *tensors: te.Tensor) -> Any:
        source, factor, summand = tensors
        largest = magnitude(str(source.dtype)) if self.bound is None else self.bound
        worst = largest * int(np.abs(self.mul.astype("int64")).max())
        worst += int(np.abs(self.add.astype("int64")).max())
        wide = "int64" if worst > INT32_MAX else "int32"
        value = tirx.Cast(wide, source(*index))
        value = value * tirx.Cast(wide, broadcast_load(factor, index))
        value = value + tirx.Cast(wide, broadcast_load(summand, index))
        value = value >> tirx.const(self.shift, wide)
        low, high = (tirx.const(limit, wide) for limit in self.clip)
        return tirx.Cast(self.dtype, tirx.max(tirx.min(value, high), low))


@operator
@dataclass(frozen=True, eq=False)
class Cast(PrimitiveOp):
    """The same integers in another type, which must be able to hold them.

    Attributes:
        dtype: type of the result.
    """

    kind = "cast"
    work = Work.MOVE

    dtype: str

    def result(self, inputs: Sequence[TensorType]) -> TensorType:
        return TensorType(inputs[0].shape, self.dtype)

    def body(self, *tensors: te.Tensor) -> te.Tensor:
        (source,) = tensors
        return te.compute(source.shape, lambda *i: tirx.Cast(self.dtype, source(*i)), name="cast")
