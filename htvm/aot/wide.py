"""Fixed-point products, written so that a 32-bit core computes them in few instructions.

A requantization multiplies two 32-bit numbers and keeps some 32 bits of the product.  TVM's
simplifier takes the sum apart that leads there (``int64(a + b) * c`` becomes
``(int64(a) + int64(b)) * c``), which costs a core without 64-bit registers several instructions
each.  It does not look behind memory: so every 32-bit number that enters or leaves 64-bit
arithmetic is stored in a local variable of its own, which the C compiler keeps in a register.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import relax, te, tirx
from tvm.s_tir import SBlock
from tvm.tirx.stmt import BufferStore, SeqStmt

from patterns.primitive import extents, shape_of

if TYPE_CHECKING:
    import numpy as np
    from tvm.tirx import PrimFunc

__all__ = ["name_wide_operands", "short_requantize"]


def name_wide_operands(func: PrimFunc) -> PrimFunc:
    """Store the 32-bit operands and results of 64-bit arithmetic in local variables.

    Only for functions that are scheduled: a block with several statements is no sum any more.
    """

    def visit(block: Any) -> Any:
        if not isinstance(block.body, BufferStore) or _is_guarded(block.body.value):
            return block
        locals_ = _Locals()
        value = tvm_ffi.structural_map(block.body.value, (tirx.Cast, locals_.visit))
        if not locals_.stores:
            return block
        store = BufferStore(block.body.buffer, value, block.body.indices)
        return SBlock(
            block.iter_vars,
            block.reads,
            block.writes,
            block.name_hint,
            SeqStmt([*locals_.stores, store]),
            block.init,
            [*block.alloc_buffers, *locals_.buffers],
            block.match_buffers,
            block.annotations,
        )

    return func.with_body(tvm_ffi.structural_map(func.body, (SBlock, visit)))


def _is_guarded(value: Any) -> bool:
    """Whether a part of the expression must be evaluated under a condition only."""
    found = False

    def visit(call: Any) -> None:
        nonlocal found
        found = found or getattr(call.op, "name", "") == "tirx.if_then_else"

    tvm_ffi.structural_walk(value, (tvm.ir.Call, visit))
    return found


class _Locals:
    """Replaces expressions by local variables, equal ones by the same."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []
        self.stores: list[Any] = []
        self._values: list[tuple[Any, Any]] = []

    def visit(self, cast: Any) -> Any:
        source, target = str(cast.value.ty.dtype), str(cast.ty.dtype)
        if (source, target) == ("int64", "int32"):
            return self._local(cast, "narrow")
        if (source, target) == ("int32", "int64") and not _is_leaf(cast.value):
            return tirx.Cast("int64", self._local(cast.value, "wide"))
        return cast

    def _local(self, value: Any, name: str) -> Any:
        for known, load in self._values:
            if tvm_ffi.structural_equal(known, value):
                return load
        buffer = tirx.decl_buffer((1,), "int32", name=f"{name}{len(self.buffers)}")
        zero = tirx.const(0, "int32")
        self.buffers.append(buffer)
        self.stores.append(BufferStore(buffer, value, [zero]))
        load = buffer[zero]
        self._values.append((value, load))
        return load


def _is_leaf(value: Any) -> bool:
    """Whether a value is at hand: loaded, constant, or widened from a load."""
    if isinstance(value, tirx.Cast):
        return _is_leaf(value.value)
    return isinstance(value, (tvm.ir.TensorLoad, tirx.IntImm, tvm.ir.Var))


def short_requantize(
    acc: relax.Expr, multiplier: np.ndarray, shift: np.ndarray, axis: int
) -> tuple[PrimFunc, Sequence[relax.Expr]] | None:
    """TFLite's requantization for factors below 1/2, in about ten instructions.

    With the multiplier doubled, the product's high word and one bit below are the rounded result
    (no 64-bit sum); the rounding right shift by e is one by e - 1, an increment and one by 1.

    Args:
        acc: int32 tensor.
        multiplier, shift: int32, one per channel or one for all; constants.
        axis: of ``acc``, that the channels follow.

    Returns:
        A PrimFunc and the arguments to call it with; ``None`` if a shift is not negative, or a
        multiplier is.
    """
    if shift.size != multiplier.size or shift.max() >= 0 or multiplier.min() < 0:
        return None
    shape, channels = shape_of(acc), int(shift.size)
    doubled = (multiplier.astype("uint32") * 2).view("int32")
    amount = (-shift - 1).astype("int32")

    def scaled(value: Any, factor: Any, drop: Any) -> Any:
        product = tirx.Cast("int64", value) * tirx.Cast("int64", tirx.Cast("uint32", factor))
        bit = (product >> tirx.const(31, "int64")) & tirx.const(1, "int64")
        high = tirx.Cast("int32", product >> tirx.const(32, "int64")) + tirx.Cast("int32", bit)
        return (((high + (high >> 31)) >> drop) + 1) >> 1

    def element(*index: Any) -> Any:
        channel = index[axis] if channels > 1 else 0
        return scaled(value(*index), factor(channel), drop(channel))

    value = te.placeholder(extents(shape), "int32", "acc")
    factor = te.placeholder(extents((channels,)), "int32", "multiplier")
    drop = te.placeholder(extents((channels,)), "int32", "shift")
    result = te.compute(extents(shape), element, name="requantized")
    func = te.create_prim_func([value, factor, drop, result]).without_attr("global_symbol")
    return func, [acc, relax.const(doubled, "int32"), relax.const(amount, "int32")]
