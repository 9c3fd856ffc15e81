"""Signs by comparison: ``x - (x < 0)`` where TVM and our requantizations have ``x + (x >> 31)``.

C leaves right shifts of negative numbers to its implementation, and analysers object to one by all
bits but the sign.  Compilers make the same instruction of both forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm import tirx

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc


def compare_signs(func: PrimFunc) -> PrimFunc:
    """Return a function without right shifts that leave nothing of a signed number but its sign."""
    changes = (tirx.RShift, _compared), (tirx.Add, _subtracted)
    return func.with_body(tvm_ffi.structural_map(func.body, changes))


def _compared(shift: Any) -> Any:
    dtype = str(shift.ty.dtype)
    if not isinstance(shift.b, tirx.IntImm) or dtype != f"int{int(shift.b) + 1}":
        return shift
    return tirx.Sub(tirx.const(0, dtype), tirx.Cast(dtype, shift.a < 0))


def _subtracted(total: Any) -> Any:
    """``a + (0 - b)`` is ``a - b``."""
    if isinstance(total.b, tirx.Sub) and isinstance(total.b.a, tirx.IntImm) and int(total.b.a) == 0:
        return tirx.Sub(total.a, total.b.b)
    return total
