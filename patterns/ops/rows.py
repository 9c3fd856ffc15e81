"""Layers that apply a function to each row of a matrix.

A tensor of any rank with C as its last axis is a matrix whose rows have C elements, stored row by
row.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from byoc_dory.layers import Rows, Tensor, matrix, rows_layer

if TYPE_CHECKING:
    from byoc_dory.layers.rowwise import RowFunction
    from patterns.op import TensorType


def matrix_of(name: str, kind: TensorType) -> Tensor:
    """Return a tensor of this name and type as one matrix: all axes but the last are rows."""
    columns = kind.shape[-1] if kind.shape else 1
    return matrix(name, prod(kind.shape[:-1]), columns, kind.dtype)


def row_layer(
    name: str, source: tuple[str, TensorType], output: TensorType, function: RowFunction
) -> Rows:
    """Return the layer that applies ``function`` to each row of a tensor.

    Args:
        name: name of the operator, and of its result.
        source: name and type of the tensor it reads.
        output: type of its result.
        function: function of one row.
    """
    return rows_layer(name, matrix_of(*source), function, output.dtype)
