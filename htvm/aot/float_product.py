"""onnxruntime's requantization in few instructions (its definition is in `patterns.onnx_rounding`).

Almost every product is far from a tie; then adding a half and shifting the high word of the product
is enough.  Only the few that are near one, as the fraction bits of the high word tell, are compared
exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax, te, tirx

from patterns.primitive import extents, shape_of

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

__all__ = ["short_float_product"]

# The mantissa's 24 bits are moved up to 31: results of scales below 1/2 are in the high word then.
_RAISED = 7
_WORD = 32
_LARGEST_DROP = 30

# Results are exact below 2**_RESULT_BITS; what a rounding moves there is less than a unit of the
# high word, or 2**(drop - _EXACT_DROP) of them.
_EXACT_DROP = 16


def short_float_product(
    acc: relax.Expr, factors: np.ndarray, axis: int, large: bool
) -> tuple[PrimFunc, list[relax.Expr]] | None:
    """The product of an accumulator and a float32 scale, rounded as float32 arithmetic does.

    Exact for results below 256 in magnitude; larger ones are right within one, which a clip to 8
    bits hides.

    Args:
        acc: int32 tensor.
        factors: int32 ``[2, channels]``: mantissas, then shifts.
        axis: of ``acc``, that the channels follow.
        large: whether ``acc`` can reach 2**24.

    Returns:
        A PrimFunc and the arguments to call it with; ``None`` if a scale is 1/4 or more, or tiny,
        or an accumulator is large.
    """
    mantissa, shift = factors.astype("int64")
    drop = np.where(mantissa > 0, shift + _RAISED - _WORD, 1)
    if large or drop.min() < 1 or drop.max() > _LARGEST_DROP:
        return None
    shape, channels = shape_of(acc), int(drop.size)
    margin = 1 << np.maximum(drop - _EXACT_DROP, 0)
    offset = (1 << (drop - 1)) + margin
    constants = np.stack([mantissa << _RAISED, drop, offset, 2 * margin]).astype("int32")

    def element(*index: Any) -> Any:
        channel = index[axis] if channels > 1 else 0
        factor, amount, nudge, near = (parameters[row, channel] for row in range(4))
        product = _wide(value(*index)) * _wide(factor)
        high = tirx.Cast("int32", product >> tirx.const(_WORD, "int64"))
        nudged = high + nudge
        fraction = nudged & ((tirx.const(1, "int32") << amount) - 1)
        exact = _beside_tie(product, high, amount)
        return tirx.if_then_else(fraction <= near, exact, nudged >> amount)

    value = te.placeholder(extents(shape), "int32", "acc")
    parameters = te.placeholder(extents((4, channels)), "int32", "factors")
    result = te.compute(extents(shape), element, name="requantized")
    func = te.create_prim_func([value, parameters, result]).without_attr("global_symbol")
    return func, [acc, relax.const(constants, "int32")]


def _wide(value: Any) -> Any:
    return tirx.Cast("int64", value)


def _beside_tie(product: Any, high: Any, amount: Any) -> Any:
    """As `patterns.onnx_rounding` has it, with 32 bits where they do."""
    one, zero = tirx.const(1, "int64"), tirx.const(0, "int64")
    tie = (high >> (amount - 1)) | 1  # twice the tie
    above = _wide(tie << (amount - 1)) << tirx.const(_WORD, "int64")
    distance = product - above
    outside = tirx.max(tirx.abs(distance) - one, zero)
    outside = outside >> _wide(amount + (_WORD - 25))
    size = _wide(tirx.abs(tie))
    on_tie = tirx.Cast("int32", outside < size) & tirx.Cast("int32", outside < (outside ^ size))
    below = tie >> 1
    return below + (below & on_tie) + (tirx.Cast("int32", distance > zero) & (on_tie ^ 1))
