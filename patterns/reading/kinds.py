"""Which operator each PrimFunc is, collected from the files that write them.

To add an operator that is a PrimFunc, give its file a table ``PRIMITIVES`` (kind of the PrimFunc ->
kind of the operator) and enter the file in `_FILES`.
"""

from __future__ import annotations

from collections.abc import Mapping

from patterns.ops import integer, movement, pool, rescale, table_map
from patterns.ops.float32 import borders as floats
from patterns.ops.float32 import elementwise as real
from patterns.ops.float32 import functions as real_functions
from patterns.ops.float32 import maps as real_maps
from patterns.ops.onnxruntime import arithmetic as onnx_arithmetic
from patterns.ops.onnxruntime import softmax as onnx_softmax
from patterns.ops.pulp import activation as integer_activation
from patterns.ops.pulp import ita
from patterns.ops.pulp import norm as integer_norm
from patterns.ops.pulp import softmax as integer_softmax
from patterns.ops.tflite import arithmetic, softmax

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
