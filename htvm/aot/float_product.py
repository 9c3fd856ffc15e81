"""onnxruntime's requantization in few instructions; `patterns.ops.onnxruntime.rounding` defines it.

Kernels call ``runtime_c/include/htvm_float_product.h``, in which a product takes as many
instructions as a fixed-point one, unless it is next to a tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from patterns.primitive import extents, shape_of

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

FLOAT_PRODUCT = "htvm_float_product"
"""Function that kernels call."""

HEADER = f"{FLOAT_PRODUCT}.h"
"""Header that has it (in ``runtime_c/include``)."""

# The mantissa's 24 bits are moved up to 31, so that results of scales below 1/2 are in the high
# word.
_RAISED = 7
_WORD = 32
_LARGEST_DROP = 30

# From this on, what a rounding changes in results below 256 is at least half a unit of the high
# word.
_WIDE_DROP = 17

# Up to this, accumulators that float32 rounds have results of at least 512, which are clipped.
_LARGE_DROP = 13


def short_float_product(
    acc: relax.Expr, factors: np.ndarray, axis: int, large: bool
) -> tuple[PrimFunc, list[relax.Expr]] | None:
    """Return the product of an accumulator and a float32 scale, rounded like float32 arithmetic.

    Exact for results below 256 in magnitude; larger ones are off by at most one, which a clip to 8
    bits hides.

    Args:
        acc: int32 tensor.
        factors: int32 ``[2, channels]``: mantissas, then shifts.
        axis: channel axis of ``acc``.
        large: whether ``acc`` can reach 2**24.

    Returns:
        A PrimFunc and its arguments; ``None`` if a scale is 1/4 or more, or tiny, or so small that
        accumulators count that float32 rounds.
    """
    mantissa, shift = factors.astype("int64")
    drop = np.where(mantissa > 0, shift + _RAISED - _WORD, 1)
    if drop.min() < 1 or drop.max() > (_LARGE_DROP if large else _LARGEST_DROP):
        return None
    shape, channels = shape_of(acc), int(drop.size)
    margin = np.where(drop >= _WIDE_DROP, 1 << np.maximum(drop - _WIDE_DROP, 0), 0)
    nudge = (1 << (drop - 1)) + margin
    constants = np.stack([mantissa << _RAISED, drop, nudge]).astype("int32")

    def element(*index: Any) -> Any:
        channel = index[axis] if channels > 1 else 0
        rows = [parameters[row, channel] for row in range(3)]
        return tirx.call_pure_extern("int32", FLOAT_PRODUCT, value(*index), *rows)

    value = te.placeholder(extents(shape), "int32", "acc")
    parameters = te.placeholder(extents((3, channels)), "int32", "factors")
    result = te.compute(extents(shape), element, name="requantized")
    func = te.create_prim_func([value, parameters, result]).without_attr("global_symbol")
    return func, [acc, relax.const(constants, "int32")]
