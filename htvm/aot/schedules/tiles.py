"""Changes of scheduled loops: tiles that do not divide an axis, sums that start with a bias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx.stmt import BufferStore

from htvm.aot.loops import changed_block
from htvm.aot.lower import OVERLAPS

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc


def overlap_tiles(func: PrimFunc) -> PrimFunc:
    """Replace the guards ``outer * factor + inner < extent`` of all blocks by overlapping tiles.

    Splitting an axis of 7 by 2 guards every statement with ``outer * 2 + inner < 7``, in the
    innermost loop.  If a tile is computed from inputs alone, computing an element twice is
    harmless, so the last tile can start at 5: ``min(outer * 2, 5) + inner``, and no guard is left.
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


def start_with_bias(func: PrimFunc) -> PrimFunc:
    """Move ``acc[.., k] + bias[k]`` from a function's last block to where ``acc`` is set to 0.

    That saves an addition per output.
    Only for functions in which each element of ``acc`` is read by one such addition and written by
    sums that wrap around; all others are returned unchanged.
    """
    found: list[tuple[Any, Any, int]] = []  # accumulator, load of the bias, axis of its index

    def collect(total: Any) -> None:
        if isinstance(total.a, TensorLoad) and isinstance(total.b, TensorLoad):
            acc, bias = total.a, total.b
            channel = [index for index in bias.indices if not isinstance(index, tirx.IntImm)]
            if str(total.ty.dtype) == "int32" and len(channel) == 1:
                for axis, index in enumerate(acc.indices):
                    if index.same_as(channel[0]):
                        found.append((acc.source, bias, axis))

    tvm_ffi.structural_walk(func.body, (tirx.Add, collect))
    if len(found) != 1:
        return func
    acc, bias, axis = found[0]
    starts, loads = _uses(func, acc)
    if starts != 1 or loads != 2:  # those of the sum and of the addition
        return func

    def begin(block: Any) -> Any:
        store = block.body
        if not _is_start(store, acc):
            return block
        value = bias.source[
            tuple(
                index if isinstance(index, tirx.IntImm) else store.indices[axis]
                for index in bias.indices
            )
        ]
        return changed_block(block, BufferStore(store.buffer, value, store.indices))

    def drop(total: Any) -> Any:
        added = isinstance(total.b, TensorLoad) and total.b.source.same_as(bias.source)
        same = isinstance(total.a, TensorLoad) and total.a.source.same_as(acc)
        return total.a if added and same else total

    body = tvm_ffi.structural_map(func.body, (tirx.Add, drop))
    return func.with_body(tvm_ffi.structural_map(body, (SBlock, begin)))


def _is_start(store: Any, acc: Any) -> bool:
    if not isinstance(store, BufferStore) or not store.buffer.same_as(acc):
        return False
    return isinstance(store.value, tirx.IntImm) and int(store.value) == 0


def _uses(func: PrimFunc, acc: Any) -> tuple[int, int]:
    """Return how many statements set ``acc`` to 0, and how many load it."""
    starts = loads = 0

    def count_start(store: Any) -> None:
        nonlocal starts
        starts += _is_start(store, acc)

    def count_load(load: Any) -> None:
        nonlocal loads
        loads += load.source.same_as(acc)

    tvm_ffi.structural_walk(func.body, (BufferStore, count_start))
    tvm_ffi.structural_walk(func.body, (TensorLoad, count_load))
    return starts, loads
