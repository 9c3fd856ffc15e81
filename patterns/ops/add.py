"""The sum of two 8-bit tensors with the same shape and scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tvm.relax import op as R
from tvm.relax.dpl import is_op, wildcard

from byoc_dory.errors import IntegerFormError
from byoc_dory.layers import Array, MulShift, Shift
from patterns.names import emit
from patterns.op import INT8, Operands, Range, Scale, TensorType, Work, operator
from patterns.ops.layers import sum_layer
from patterns.ops.requantize import (
    check_requantization,
    read_clip,
    read_requantize,
    requantize,
    requantize_pattern,
    shifted,
)
from patterns.ops.scaling import requantized
from patterns.primitive import dtype_of
from patterns.relax_op import ComposedOp, Match
from patterns.rows import RowWindow, matching_rows

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Expr, Var

    from byoc_dory.layers import Layer

_BOUND = 510
"""Largest magnitude of a sum of two bytes."""


@operator
@dataclass(frozen=True, eq=False)
class Add(ComposedOp):
    """``clip(requant(a + b))`` of two 8-bit tensors of the same shape.

    Attributes:
        requant: requantization of the sum.
        clip: inclusive range of the output.
        dtype: type of the output.
    """

    kind = "add"
    work = Work.SUM
    scale = Scale.FREE
    neutral = True

    requant: Shift | MulShift
    clip: Range = INT8
    dtype: str = "int8"

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        check_requantization(self.requant)
        if len({item.shape for item in inputs}) != 1:
            shapes = " and ".join(str(item.shape) for item in inputs)
            raise IntegerFormError(f"a sum of tensors of shapes {shapes}")
        return TensorType(inputs[0].shape, self.dtype)

    def row_windows(
        self, inputs: Sequence[TensorType], output: TensorType
    ) -> tuple[RowWindow, ...] | None:
        return matching_rows([each.shape for each in inputs], output.shape)

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        first = emit(bb, R.astype(inputs[0], "int32"), name)
        second = emit(bb, R.astype(inputs[-1], "int32"), name)
        acc = emit(bb, R.add(first, second), name)
        return requantize(bb, acc, self.requant, self.clip, name, bound=_BOUND, dtype=self.dtype)

    def compute(self, inputs: Sequence[Array]) -> Array:
        first, second = (x.astype(np.int64) for x in inputs)
        return requantized(first + second, self.requant, self.clip, self.dtype)

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`; slots ``a``, ``b``, ``sum`` and the requantization's."""
        a, b = wildcard(), wildcard()
        total = is_op("relax.add")(is_op("relax.astype")(a), is_op("relax.astype")(b))
        root, slots = requantize_pattern(total)
        return (Match(cls.kind, root, {"a": a, "b": b, "sum": total, **slots}),)

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> Add:
        requant = read_requantize(slots)
        assert isinstance(requant, Shift | MulShift), requant
        return cls(requant, read_clip(slots), dtype_of(slots["cast"]))

    def layer(self, name: str, inputs: Operands, output: TensorType) -> Layer:
        operands = inputs if len(inputs) == 2 else [inputs[0], inputs[0]]
        return sum_layer(name, operands, output, self.requant, self.clip)

    def range(self, inputs: Sequence[Range]) -> Range:
        """See `Op.range`: a shift of the sum of the ranges."""
        if not isinstance(self.requant, Shift):
            return self.clip
        least, most = (sum(ends) for ends in zip(*inputs, strict=True))
        return shifted(least, most, self.requant, self.clip)
