"""Calls that copy or fill a run of bytes.

A schedule marks a loop over neighbouring bytes (`RUN`).  After lowering to flat buffers it becomes
one call of ``runtime_c/simd/htvm_runs.h``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx.stmt import For

from htvm.aot.loops import address_of, call

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

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
        first, count = {loop.loop_var: 0}, tirx.const(int(loop.extent), "uint32")
        target = address_of(store, first)
        if isinstance(store.value, TensorLoad):
            return call("htvm_copy", target, address_of(store.value, first), count)
        return call("htvm_fill", target, store.value, count)

    return func.with_body(tvm_ffi.structural_map(func.body, (For, visit)))
