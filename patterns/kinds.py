"""Which operator each PrimFunc is, collected from the files that write them.

To add an operator that is a PrimFunc, give its file a table ``PRIMITIVES`` (kind of the PrimFunc ->
kind of the operator) and enter the file in `_FILES`.
"""

from __future__ import annotations

from collections.abc import Mapping

from patterns import (
    arithmetic,
    floats,
    integer,
    integer_activation,
    integer_norm,
    integer_softmax,
    ita,
    movement,
    onnx_arithmetic,
    onnx_softmax,
    pool,
    real,
    real_functions,
    real_maps,
    rescale,
    softmax,
    table_map,
)

__all__ = ["PRIMITIVES"]

_FILES: tuple[Mapping[str, str], ...] = (
    arithmetic.PRIMITIVES,
    floats.PRIMITIVES,
    movement.PRIMITIVES,
    onnx_arithmetic.PRIMITIVES,
    onnx_softmax.PRIMITIVES,
    pool.PRIMITIVES,
    integer.PRIMITIVES,
    integer_activation.PRIMITIVES,
    integer_norm.PRIMITIVES,
    integer_softmax.PRIMITIVES,
    ita.PRIMITIVES,
    real.PRIMITIVES,
    real_functions.PRIMITIVES,
    real_maps.PRIMITIVES,
    rescale.PRIMITIVES,
    softmax.PRIMITIVES,
    table_map.PRIMITIVES,
)
PRIMITIVES: Mapping[str, str] = {
    "tflite_add": "add",
    **{kind: operator for table in _FILES for kind, operator in table.items()},
}
"""Kind of a PrimFunc (``htvm.kind``) -> kind of the operator it ends."""
