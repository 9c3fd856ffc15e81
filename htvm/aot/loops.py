"""Reading and changing loops and blocks, for schedules and passes that make calls of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import sym, tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock
from tvm.tirx.stmt import BufferStore, Evaluate, For, ForKind, SeqStmt


def substituted(node: Any, values: Mapping[Any, Any]) -> Any:
    """Replace variables by other expressions, or by numbers of their own types."""

    def replace(var: Any) -> Any:
        value = values.get(var, var)
        return tirx.const(value, str(var.ty.dtype)) if isinstance(value, int) else value

    return tvm_ffi.structural_map(node, (tvm.ir.Var, replace))


def step_of(index: Any, variable: Any) -> int | None:
    """Return how far an index moves with a variable from 0 to 1; ``None`` if that varies."""
    first, second = (substituted(index, {variable: number}) for number in (0, 1))
    step = sym.Analyzer().simplify(second - first)
    return int(step) if isinstance(step, tirx.IntImm) else None


def address_of(place: Any, values: Mapping[Any, Any]) -> Any:
    """Return the address of the element of a load or store for these values of variables."""
    buffer = place.source if isinstance(place, TensorLoad) else place.buffer
    index = sym.Analyzer().simplify(substituted(place.indices[0], values))
    return tirx.address_of(buffer[index])


def call(name: str, *arguments: Any) -> Any:
    """Return the statement that calls a function without a result."""
    return Evaluate(tirx.call_extern("void", name, *arguments))


def changed_block(block: SBlock, body: Any, buffers: Sequence[Any] = ()) -> SBlock:
    """Return a block with another body, and maybe with further buffers."""
    return SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        block.name_hint,
        body,
        block.init,
        [*block.alloc_buffers, *buffers],
        block.match_buffers,
        block.annotations,
    )


def elements_of(buffer: Any) -> int:
    """Return the number of a buffer's elements."""
    return math.prod(int(size) for size in buffer.ty.shape)


def bytes_of(buffer: Any) -> int:
    """Return the bytes of a buffer."""
    return elements_of(buffer) * int(np.dtype(str(buffer.ty.dtype)).itemsize)


def sequence(statements: Sequence[Any]) -> Any:
    """Return statements, at least one, as one."""
    return statements[0] if len(statements) == 1 else SeqStmt(statements)


def statements_of(stmt: Any) -> Iterator[Any]:
    """Yield the statements of a sequence, flattening nested sequences."""
    if isinstance(stmt, SeqStmt):
        for part in stmt.seq:
            yield from statements_of(part)
    else:
        yield stmt


def nest_of(stmt: Any) -> tuple[list[For], Any]:
    """Return perfectly nested loops, outermost first, and the statement inside of them."""
    loops = []
    while isinstance(stmt, For):
        loops.append(stmt)
        inner = list(statements_of(stmt.body))
        stmt = inner[0] if len(inner) == 1 else stmt.body
    return loops, stmt


def without_note(loop: Any, note: str, body: Any = None) -> For:
    """Return a loop without one of its annotations, and maybe with another body."""
    notes = {key: value for key, value in loop.annotations.items() if key != note}
    body = loop.body if body is None else body
    return For(loop.loop_var, 0, loop.extent, ForKind.SERIAL, body, annotations=notes)


def factors_of(store: Any) -> tuple[Any, Any] | None:
    """Return the loads of ``sum = sum + cast(data) * cast(weight)``; ``None`` for others."""
    value = store.value if isinstance(store, BufferStore) else None
    if not isinstance(value, tirx.Add) or not isinstance(value.b, tirx.Mul):
        return None
    factors = (value.b.a, value.b.b)
    if not all(isinstance(f, tirx.Cast) and isinstance(f.value, TensorLoad) for f in factors):
        return None
    return factors[0].value, factors[1].value


@dataclass(frozen=True, eq=False)
class Axis:
    """A loop around products that are added to sums.

    Attributes:
        variable, extent: of the loop.
        data, weights, total: how many elements a step moves in each; ``None`` if that varies.
        notes: annotations of the loop.
    """

    variable: Any
    extent: int
    data: int | None
    weights: int | None
    total: int | None
    notes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ProductLoops:
    """Loops that add products of two tensors to sums, over flat buffers.

    Attributes:
        axes: the loops, outermost first.
        total: the store to a sum.
        data, weights: loads of the factors.
    """

    axes: list[Axis]
    total: BufferStore
    data: TensorLoad
    weights: TensorLoad


def products_of(loop: Any) -> ProductLoops | None:
    """Read a loop nest; ``None`` if it is no sum of products."""
    loops, store = nest_of(loop)
    factors = factors_of(store)
    if factors is None:
        return None

    def axis(each: Any) -> Axis:
        places = (*factors, store)
        data, weights, total = (step_of(place.indices[0], each.loop_var) for place in places)
        notes = each.annotations or {}
        return Axis(each.loop_var, int(each.extent), data, weights, total, notes)

    return ProductLoops(list(map(axis, loops)), store, *factors)


def macs_of(func: tirx.PrimFunc) -> int:
    """Return the multiply-accumulates of all sums of products in an unscheduled PrimFunc."""
    total = 0

    def visit(block: Any) -> None:
        nonlocal total
        reduces = any(int(axis.iter_type) == 2 for axis in block.iter_vars)
        value = getattr(block.body, "value", None)
        if reduces and isinstance(value, tirx.Add) and isinstance(value.b, tirx.Mul):
            total += math.prod(int(axis.dom.extent) for axis in block.iter_vars)

    tvm_ffi.structural_walk(func.body, (SBlock, visit))
    return total
