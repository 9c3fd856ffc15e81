"""onnxruntime's requantization in few instructions; `patterns.ops.onnxruntime.rounding` defines it.

Almost every product is far from a tie; then adding a half and shifting the high word of the product
is enough.  Only the few that are near a tie, according to the fraction bits of the high word, are
compared exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, te, tirx
from tvm.s_tir import SBlock
from tvm.tirx.stmt import BufferStore, IfThenElse, SeqStmt

from patterns.primitive import extents, shape_of

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

__all__ = ["short_float_product", "spell_float_products"]

_MARK = "htvm_float_product"

# The mantissa's 24 bits are moved up to 31, so that results of scales below 1/2 are in the high
# word.
_RAISED = 7
_WORD = 32
_LARGEST_DROP = 30
_PRECISION = 25  # bits of a float32's mantissa, and the bit that is rounded away

# Results are exact below 2**_RESULT_BITS; there, a rounding changes less than a unit of the high
# word, or 2**(drop - _EXACT_DROP) of them.
_EXACT_DROP = 16


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
        A PrimFunc and its arguments, to be followed by `spell_float_products`; ``None`` if
        a scale is 1/4 or more, or tiny, or an accumulator is large.
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
        rows = [parameters[row, channel] for row in range(4)]
        return tirx.call_pure_extern("int32", _MARK, value(*index), *rows)

    value = te.placeholder(extents(shape), "int32", "acc")
    parameters = te.placeholder(extents((4, channels)), "int32", "factors")
    result = te.compute(extents(shape), element, name="requantized")
    func = te.create_prim_func([value, parameters, result]).without_attr("global_symbol")
    return func, [acc, relax.const(constants, "int32")]


# ------------------------------------------------------------------------------ statements


def spell_float_products(func: PrimFunc) -> PrimFunc:
    """Expand the products that `short_float_product` only names into statements.

    Until a function is scheduled, each product is one call; TVM would repeat the parts of a single
    expression wherever they are used.
    """

    def visit(block: Any) -> Any:
        if not isinstance(block.body, BufferStore):
            return block
        products = _Products()
        value = tvm_ffi.structural_map(block.body.value, (tvm.ir.Call, products.visit))
        if not products.statements:
            return block
        store = BufferStore(block.body.buffer, value, block.body.indices)
        return SBlock(
            block.iter_vars,
            block.reads,
            block.writes,
            block.name_hint,
            SeqStmt([*products.statements, store]),
            block.init,
            [*block.alloc_buffers, *products.buffers],
            block.match_buffers,
            block.annotations,
        )

    return func.with_body(tvm_ffi.structural_map(func.body, (SBlock, visit)))


class _Products:
    """Replaces each named product by a local variable, computed before."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []
        self.statements: list[Any] = []
        self._results: dict[int, list[tuple[Any, Any]]] = {}

    def visit(self, call: Any) -> Any:
        """Return the variable for a product; the same for all copies that inlining has made."""
        if not len(call.args) or getattr(call.args[0], "value", None) != _MARK:
            return call
        alike = self._results.setdefault(tvm_ffi.structural_hash(call), [])
        for other, result in alike:
            if tvm_ffi.structural_equal(call, other):
                return result
        result = self._spelled(*call.args[1:])
        alike.append((call, result))
        return result

    def _local(self, name: str, dtype: str) -> Any:
        buffer = tirx.decl_buffer((1,), dtype, name=name)
        self.buffers.append(buffer)
        return buffer

    def _spelled(self, acc: Any, factor: Any, amount: Any, nudge: Any, near: Any) -> Any:
        zero = tirx.const(0, "int32")
        product, result = self._local("product", "int64"), self._local("rounded", "int32")
        nudged = self._local("nudged", "int32")

        def store(buffer: Any, value: Any) -> Any:
            return BufferStore(buffer, value, [zero])

        high = tirx.Cast("int32", product[zero] >> tirx.const(_WORD, "int64"))
        fraction = nudged[zero] & ((tirx.const(1, "int32") << amount) - 1)
        self.statements += [
            store(product, _wide(acc) * _wide(factor)),
            store(nudged, high + nudge),
            store(result, nudged[zero] >> amount),
            IfThenElse(fraction <= near, self._beside_tie(store, product, result, amount), None),
        ]
        return result[zero]

    def _beside_tie(self, store: Any, product: Any, result: Any, amount: Any) -> Any:
        """Test for a tie as in `patterns.ops.onnxruntime.rounding`, one branch after the other."""
        zero = tirx.const(0, "int32")
        tie, size, distance, outside = (
            self._local(name, dtype)
            for name, dtype in (
                ("tie", "int32"), ("size", "int64"), ("distance", "int64"), ("outside", "int64"),
            )
        )  # fmt: skip
        high = tirx.Cast("int32", product[zero] >> tirx.const(_WORD, "int64"))
        shift = _wide(amount + (_WORD - 1))
        one, none = tirx.const(1, "int64"), tirx.const(0, "int64")
        below = tie[zero] >> 1
        leading = tirx.all(outside[zero] < size[zero], outside[zero] < (outside[zero] ^ size[zero]))
        return SeqStmt(
            [
                store(tie, (high >> (amount - 1)) | 1),  # twice the tie
                store(distance, product[zero] - (_wide(tie[zero]) << shift)),
                store(size, tirx.abs(_wide(tie[zero]))),
                store(outside, tirx.abs(distance[zero])),
                store(
                    outside,
                    tirx.max(outside[zero] - one, none) >> _wide(amount + (_WORD - _PRECISION)),
                ),
                store(result, below + tirx.Cast("int32", distance[zero] > none)),
                IfThenElse(leading, store(result, below + (below & 1)), None),
            ]
        )


def _wide(value: Any) -> Any:
    return tirx.Cast("int64", value)
