"""Reading operators of matrices into layers: which tensor a matrix is, and functions of its rows.

A tensor of any rank whose last axis is C is a matrix of rows of C elements, row by row.  The
functions themselves are read beside their builders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from byoc_dory.layers import Add, MulShift, Rows, Tensor, matrix, rows_layer
from patterns.ops.pulp.ita import read_ita_gelu, read_ita_softmax
from patterns.ops.pulp.norm import read_affine_norm, read_layer_norm, read_rms_norm
from patterns.ops.pulp.softmax import read_integer_softmax

if TYPE_CHECKING:
    from tvm.relax import Call

    from byoc_dory.layers.rowwise import RowFunction

__all__ = ["Operand", "accumulate_layer", "matrix_of", "row_layer"]

_Reader: TypeAlias = "Callable[[Call, Mapping[str, Any]], RowFunction]"

_FUNCTIONS: Mapping[str, _Reader] = {
    "affine_norm": read_affine_norm,
    "integer_softmax": read_integer_softmax,
    "ita_gelu": read_ita_gelu,
    "ita_softmax": read_ita_softmax,
    "layer_norm": read_layer_norm,
    "rms_norm": read_rms_norm,
}
"""Kind of an operator -> how its call becomes a function of rows."""


@dataclass(frozen=True)
class Operand:
    """A tensor as an operator reads or writes it: name, shape (batch included), element type."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def matrix_of(operand: Operand) -> Tensor:
    """The tensor as one matrix: all axes but the last are rows."""
    columns = operand.shape[-1] if operand.shape else 1
    return matrix(operand.name, prod(operand.shape[:-1]), columns, operand.dtype)


def row_layer(
    kind: str,
    call: Call,
    attrs: Mapping[str, Any],
    inputs: Sequence[Operand],
    output: Operand,
) -> Rows | None:
    """The layer of an operator that computes a function of each row; ``None`` where it is none.

    Args:
        kind: of the operator.
        call: what its last variable is bound to.
        attrs: its attributes, as `patterns.reading.node.Node` has them.
        inputs: what it reads.
        output: what it computes.
    """
    if kind not in _FUNCTIONS:
        return None
    function = _FUNCTIONS[kind](call, attrs)
    return rows_layer(output.name, matrix_of(inputs[0]), function, output.dtype)


def accumulate_layer(attrs: Mapping[str, Any], inputs: Sequence[Operand], output: Operand) -> Add:
    """The sum of several matrices that `patterns.ops.pulp.ita.accumulate` wrote."""
    requant = MulShift((attrs["mul"],), (attrs["shift"],), (attrs["add"],))
    low, high = attrs["clip"]
    return Add(
        name=output.name, inputs=tuple(map(matrix_of, inputs)), output=matrix_of(output),
        requant=requant, clip=(low, high),
    )  # fmt: skip
