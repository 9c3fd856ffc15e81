"""What a `Node` carries beyond its tensors: its `Layer`, or the attributes that stand for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from byoc_dory.layers import Layer
from patterns.ops.rescale import read_rescale
from patterns.primitive import parameters_of
from patterns.reading.matrix import Operand, accumulate_layer, row_layer
from patterns.reading.node import Attribute

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr

__all__ = ["layer_and_attrs"]


def layer_and_attrs(
    module: IRModule,
    kind: str,
    value: Expr,
    inputs: Sequence[Operand],
    output: Operand,
) -> tuple[Layer | None, dict[str, Attribute]]:
    """What a node of that kind carries: its layer, if it has one, and its attributes.

    Args:
        module: the module it is in.
        kind: of the operator, as `patterns.reading.recognise.recognised` finds it.
        value: what the operator's last variable is bound to.
        inputs: the tensors it reads.
        output: the tensor it computes.

    Raises:
        IntegerFormError: if its parameters are none of the integer form's.
    """
    attrs: dict[str, Attribute] = dict(parameters_of(module, value))
    if kind == "accumulate":
        return accumulate_layer(attrs, inputs, output), attrs
    if kind == "rescale":
        attrs |= read_rescale(value)
    return row_layer(kind, value, attrs, inputs, output), attrs
