"""Calls of intrinsics, on host cores with SIMD.

A schedule marks a loop over four neighbouring elements (`DOT4`); after lowering to flat buffers it
is replaced by a call of ``htvm_dot4``, which is one instruction on such a core and plain C
elsewhere.  TVM's own way, ``Schedule.tensorize``, crashes in the pinned version.  Other sums of
products, and limits to int8, are replaced likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import StringImm, TensorLoad
from tvm.tirx.stmt import BufferStore, For

from byoc_dory.errors import UnsupportedError
from htvm.aot.columns import COLUMN_CALLS
from htvm.aot.lanes import LANES_CALLS
from htvm.aot.loops import address_of, products_of, step_of, substituted
from htvm.aot.rows import ROWS_CALLS
from htvm.aot.runs import RUN_CALLS

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

DOT4 = "htvm_dot4"
"""Annotation of a loop over four products of int8 elements that lie side by side in both operands,
from a multiple of four on."""

SIMD = "htvm.simd"
"""Attribute of a PrimFunc that may call intrinsics."""

HEADER = "htvm_intrinsics.h"
"""Header that kernels with intrinsics include (in ``runtime_c/simd``)."""

INTRINSICS = (
    "htvm_dot4",
    "htvm_load4",
    "htvm_load4_any",
    "htvm_mac",
    "htvm_scale",
    "htvm_clip",
    *COLUMN_CALLS,
    *LANES_CALLS,
    *ROWS_CALLS,
    *RUN_CALLS,
)
"""Functions of the header that generated kernels call."""

_LOADS = ("htvm_load4", "htvm_load4_any")


def call_dot4(func: PrimFunc) -> PrimFunc:
    """Replace marked loops over flat buffers by calls.

    Raises:
        UnsupportedError: a marked loop is no sum of four products of neighbours.
    """

    def visit(loop: Any) -> Any:
        if DOT4 not in (loop.annotations or {}):
            return loop
        call = _call(loop)
        if call is None:
            raise UnsupportedError(
                "a loop marked for htvm_dot4 is no sum of four products of neighbouring elements",
                where=f"kernel '{(func.attrs or {}).get('global_symbol', '')}'",
            )
        return call

    return func.with_body(tvm_ffi.structural_map(func.body, (For, visit)))


def call_mac(func: PrimFunc) -> PrimFunc:
    """Replace what is left of int32 sums of products, ``acc += x * w``, by calls."""

    def visit(store: Any) -> Any:
        total = store.value
        if not isinstance(total, tirx.Add) or str(total.ty.dtype) != "int32":
            return store
        loaded = total.a
        same = (
            isinstance(loaded, TensorLoad)
            and loaded.source.same_as(store.buffer)
            and tvm_ffi.structural_equal(loaded.indices, store.indices)
        )
        if not same or not isinstance(total.b, tirx.Mul):
            return store
        value = tirx.call_extern("int32", "htvm_mac", total.b.a, total.b.b, loaded)
        return BufferStore(store.buffer, value, store.indices)

    return func.with_body(tvm_ffi.structural_map(func.body, (BufferStore, visit)))


def call_clip(func: PrimFunc) -> PrimFunc:
    """Replace casts of limited numbers to int8, ``int8(max(min(x, 127), -128))``, by calls."""

    def visit(cast: Any) -> Any:
        limited = cast.value
        if str(cast.ty.dtype) != "int8" or str(limited.ty.dtype) != "int32":
            return cast
        if not isinstance(limited, tirx.Max) or not isinstance(limited.a, tirx.Min):
            return cast
        limits = (limited.b, limited.a.b)
        if not all(isinstance(limit, tirx.IntImm) for limit in limits):
            return cast
        return tirx.Cast("int8", tirx.call_extern("int32", "htvm_clip", limited.a.a, *limits))

    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.Cast, visit)))


def _call(loop: Any) -> Any | None:
    """Return the store that a loop ``for b in range(4): acc += x[i + b] * w[j + b]`` becomes."""
    found = products_of(loop)
    if found is None or len(found.loops) != 1 or int(loop.extent) != 4:
        return None
    operands = [_operand(load, loop.loop_var) for load in (found.data, found.weights)]
    total = found.total.value
    if None in operands or str(total.ty.dtype) != "int32":
        return None
    value = tirx.call_extern("int32", "htvm_dot4", *operands, total.a)
    return BufferStore(found.total.buffer, value, found.total.indices)


def _operand(load: Any, variable: Any) -> Any | None:
    """Return the load of the four elements of an operand."""
    if str(load.ty.dtype) != "int8" or len(load.indices) != 1:
        return None
    if step_of(load.indices[0], variable) != 1:
        return None
    first = substituted(load.indices[0], {variable: 0})
    aligned = sym.Analyzer().can_prove_equal(tirx.floormod(first, 4), 0)
    name = "htvm_load4" if aligned else "htvm_load4_any"
    return tirx.call_extern("uint32", name, address_of(load, {variable: 0}))


def word_of(call: Any) -> Any | None:
    """Return the load of the first of the four elements that a call loads; ``None`` for others."""
    name = call.args[0] if call.args else None
    if not isinstance(name, StringImm) or str(name.value) not in _LOADS:
        return None
    return call.args[1].args[0]
