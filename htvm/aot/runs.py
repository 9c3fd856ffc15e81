"""Calls that copy or fill a run of bytes.

A schedule marks a loop over neighbouring bytes (`RUN`).  After lowering to flat buffers it becomes
one call of ``runtime_c/simd/htvm_runs.h``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx.stmt import Evaluate, For

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

__all__ = ["RUN", "RUN_CALLS", "call_runs"]

RUN = "htvm_run"
"""Annotation of a loop that copies a run of bytes, or fills it with a constant."""

RUN_CALLS = ("htvm_copy", "htvm_fill")
"""Functions of the header that generated kernels call."""


def call_runs(func: PrimFunc) -> PrimFunc:
    """Replace marked loops over flat buffers of bytes by calls."""

    def visit(loop: Any) -> Any:
        if RUN not in (loop.annotations or {}):
            return loop
        store = loop.body
        target = _first(store.buffer, store.indices, loop.loop_var)
        count = tirx.const(int(loop.extent), "uint32")
        if isinstance(store.value, TensorLoad):
            source = _first(store.value.source, store.value.indices, loop.loop_var)
            return Evaluate(tirx.call_extern("void", "htvm_copy", target, source, count))
        return Evaluate(tirx.call_extern("void", "htvm_fill", target, store.value, count))

    return func.with_body(tvm_ffi.structural_map(func.body, (For, visit)))


def _first(buffer: Any, indices: Any, variable: Any) -> Any:
    """Return the address of the first element of a run."""

    def replace(var: Any) -> Any:
        return tirx.const(0, str(variable.ty.dtype)) if var.same_as(variable) else var

    return tirx.address_of(buffer[tvm_ffi.structural_map(indices[0], (tvm.ir.Var, replace))])
