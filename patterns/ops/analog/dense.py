"""Fully connected layers on an in-memory array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tvm import relax
from tvm.relax import op as R

from byoc_dory.layers import Dense as DenseLayer
from byoc_dory.layers import Tensor
from patterns.match import Match
from patterns.op import TensorType, operator
from patterns.ops.analog.passes import InPasses, passes_of, read_passes
from patterns.ops.dense import vector
from patterns.ops.requantize import read_clip

if TYPE_CHECKING:
    from tvm.relax import Expr

    from byoc_dory.layers import Array

__all__ = ["AnalogDense"]


@operator
@dataclass(frozen=True, eq=False)
class AnalogDense(InPasses):
    """A fully connected layer of int8 (1, C) in passes over an in-memory array."""

    kind = "dense"

    @property
    def channel_axis(self) -> int:
        """See `InPasses.channel_axis`."""
        return 1

    def result_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """See `InPasses.result_shape`."""
        return (*shape[:-1], len(self.weight))

    def product(self, part: Expr, weight: Array) -> Expr:
        """See `InPasses.product`."""
        constant = np.asarray(weight[:, :, 0, 0].T, order="C")
        return R.matmul(part, relax.const(constant, "int8"), out_dtype="int32")

    @classmethod
    def matches(cls) -> tuple[Match, ...]:
        """See `ComposedOp.matches`, and `InPasses.matches_of`."""
        return cls.matches_of("relax.matmul")

    @classmethod
    def read(cls, slots: Mapping[str, Expr]) -> AnalogDense:
        """See `ComposedOp.read`."""
        matrices = [part.value.numpy().T for part in passes_of(slots, "weight")]
        weights = [part.reshape(*part.shape, 1, 1) for part in matrices]
        weight, requant = read_passes(slots, weights, 1)
        return cls(weight, requant, read_clip(slots))

    def layer(
        self, name: str, inputs: Sequence[tuple[str, TensorType]], output: TensorType
    ) -> DenseLayer:
        """See `Op.layer`."""
        ((source, kind),) = inputs
        return DenseLayer(
            name=name,
            inputs=(Tensor(source, vector(kind)[1:], kind.dtype, "C"),),
            output=Tensor(name, (len(self.weight),), output.dtype, "C"),
            weight=self.filters,
            bias=None,
            requant=self.requant,
            clip=self.clip,
        )
