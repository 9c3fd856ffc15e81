"""Tiles that do not divide the axis: the last one overlaps its neighbour.

Splitting an axis of 7 by 2 guards every statement with ``outer * 2 + inner < 7``, in the innermost
loop.  If a tile is computed from inputs alone, computing an element twice is harmless, so the last
tile can start at 5: ``min(outer * 2, 5) + inner``, and no guard is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import SBlockRealize

from htvm.aot.lower import OVERLAPS

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc


def overlap_tiles(func: PrimFunc) -> PrimFunc:
    """Replace the guards ``outer * factor + inner < extent`` of all blocks by overlapping tiles.

    Only for functions whose blocks may compute an element twice: all blocks of a tile must be
    inside the tile's loops.
    """

    overlaps = False

    def visit(realize: Any) -> Any:
        nonlocal overlaps
        guards = _conjunction(realize.predicate)
        starts = [start for start in map(_clamped, guards) if start is not None]
        if not guards or len(starts) < len(guards):
            return realize
        overlaps = True
        values = []
        for value in realize.iter_values:
            for guarded, clamped in starts:
                value = _replace(value, guarded, clamped)
            values.append(value)
        return SBlockRealize(values, tirx.const(True, "bool"), realize.block)

    func = func.with_body(tvm_ffi.structural_map(func.body, (SBlockRealize, visit)))
    return func.with_attr(OVERLAPS, True) if overlaps else func


def _conjunction(predicate: Any) -> list[Any]:
    if isinstance(predicate, tirx.And):
        return _conjunction(predicate.a) + _conjunction(predicate.b)
    if isinstance(predicate, tvm.tirx.IntImm):
        return []
    return [predicate]


def _clamped(guard: Any) -> tuple[Any, Any] | None:
    """(guarded index, index of the overlapping tile) of ``outer * factor + inner < extent``."""
    if not isinstance(guard, tirx.LT) or not isinstance(guard.a, tirx.Add):
        return None
    origin, inner = guard.a.a, guard.a.b
    if not isinstance(origin, tirx.Mul) or not isinstance(origin.b, tirx.IntImm):
        return None
    last = guard.b - origin.b
    return guard.a, tirx.min(origin, last) + inner


def _replace(expr: Any, old: Any, new: Any) -> Any:
    def visit(node: Any) -> Any:
        return new if tvm_ffi.structural_equal(node, old) else node

    return tvm_ffi.structural_map(expr, (tirx.Add, visit))
