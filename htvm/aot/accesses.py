"""The elements that a loop nest reads and writes, iteration by iteration.

Shapes are static, so this needs no symbolic analysis: index expressions are evaluated for all
values of the loop variables they depend on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, PrimType, StringImm, TensorLoad, Var
from tvm.tirx.stmt import (
    AllocBuffer,
    Bind,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    SeqStmt,
)

from htvm.aot.effects import call_of
from htvm.aot.loops import statements_of

if TYPE_CHECKING:
    from tvm.ir import Expr
    from tvm.tirx.stmt import Stmt

Indices: TypeAlias = npt.NDArray[np.int64]

# Largest number of evaluations of one index, so that a proof takes well under a second.
_MOST_EVALUATIONS = 1 << 24


class Unknown(Exception):
    """An index, a loop or a statement that this analysis cannot follow."""


@dataclass(frozen=True, eq=False)
class Access:
    """One load or store in the text of a kernel, or all that a call does at one of its pointers.

    Attributes:
        buffer: the buffer accessed.
        index: index of the element.
        store: whether it is a store.
        loops: variable and number of iterations of each loop around it, outermost first, then those
            of the function if it is called (`htvm.aot.effects`).
        known: values of variables bound around it.
        guards: conditions under which it happens.
        path: numbers of its loops and of its own statement, as they follow each other in the text.
    """

    buffer: Var
    index: Expr
    store: bool
    loops: tuple[tuple[Var, int], ...]
    known: Mapping[Var, Expr]
    guards: tuple[Expr, ...]
    path: tuple[int, ...]


def viewed(stmt: DeclBuffer) -> Var:
    """Return the buffer whose bytes a declaration gives another name.

    Raises:
        Unknown: it is another statement, or has elements of another type.
    """
    args: Any = getattr(stmt.data, "args", ())
    if len(args) != 1 or not isinstance(args[0], Var):
        raise Unknown("a view of something that is no buffer")
    if str(args[0].ty.dtype) != str(stmt.buffer.ty.dtype):
        raise Unknown("a view with elements of another type")
    return args[0]


def accesses_of(stmt: Stmt, views: Mapping[Var, Var] | None = None) -> tuple[Access, ...]:
    """Return all accesses of a statement to buffers declared outside of it.

    Args:
        stmt: the statement.
        views: buffers that are other names of others.

    Raises:
        Unknown: it has loops of varying length, or statements with other effects.
    """
    found: list[Access] = []
    numbers = itertools.count()
    inner: set[Var] = set()
    same: dict[Var, Var] = dict(views or {})

    def named(buffer: Var) -> Var:
        while buffer in same:
            buffer = same[buffer]
        return buffer

    def expression(expr: Expr, context: _Context) -> None:
        conditions = [(each, _loads(each)) for each in _conditions(expr)]

        def load(node: Any, places: Sequence[int] = (0,)) -> None:
            buffer, index = named(_buffer(node.source)), _index(node)
            # A condition that loads the element itself does not decide whether it is loaded.
            guards = [
                each
                for each, loads in conditions
                if not any(tvm_ffi.structural_equal(node, other) for other in loads)
            ]
            around = (context.loops, context.known, (*context.guards, *guards), context.path)
            found.extend(Access(buffer, index + n, False, *around) for n in places)

        def call(node: Any) -> None:
            first = _word_of(node)
            if first is not None:
                bits = (int(np.dtype(str(each.ty.dtype)).itemsize) for each in (node, first))
                load(first, range(1, next(bits) // next(bits)))

        tvm_ffi.structural_walk(expr, ((TensorLoad, load), (Call, call)))

    def called(stmt: Evaluate, context: _Context) -> None:
        call = call_of(stmt)
        if call is None or call.effects is None:
            raise Unknown("a call of which nothing says what it reads and writes")
        for store, pointers in ((False, call.effects.reads), (True, call.effects.writes)):
            for place, steps in pointers.items():
                first = call.pointers[place]
                buffer, index, loops = named(_buffer(first.source)), _index(first), context.loops
                for name, step in steps.items():
                    turn = Var(name, PrimType("int32"))
                    index, loops = index + turn * step, (*loops, (turn, call.effects.loops[name]))
                around = (loops, context.known, context.guards, context.path)
                found.append(Access(buffer, index, store, *around))

    def visit(stmt: Stmt, context: _Context) -> None:
        here = replace(context, path=(*context.path, next(numbers)))
        if isinstance(stmt, SeqStmt):
            for part in statements_of(stmt):
                visit(part, context)
                if isinstance(part, Bind):
                    context = replace(context, known={**context.known, part.var: part.value})
        elif isinstance(stmt, For):
            extent = _constant(stmt.extent)
            if _constant(stmt.min) != 0 or (stmt.step is not None and _constant(stmt.step) != 1):
                raise Unknown("a loop that does not count from 0 by 1")
            visit(stmt.body, replace(here, loops=(*context.loops, (stmt.loop_var, extent))))
        elif isinstance(stmt, IfThenElse):
            expression(stmt.condition, here)
            visit(stmt.then_case, replace(context, guards=(*context.guards, stmt.condition)))
            if stmt.else_case is not None:
                negated = (*context.guards, tirx.Not(stmt.condition))
                visit(stmt.else_case, replace(context, guards=negated))
        elif isinstance(stmt, BufferStore):
            for part in (stmt.value, *stmt.indices):
                expression(part, here)
            around = (context.loops, context.known, context.guards, here.path)
            found.append(Access(named(stmt.buffer), _index(stmt), True, *around))
        elif isinstance(stmt, Evaluate):
            called(stmt, here)
        elif isinstance(stmt, AllocBuffer):
            inner.add(stmt.buffer)
        elif isinstance(stmt, DeclBuffer):
            same[stmt.buffer] = viewed(stmt)
        elif isinstance(stmt, Bind):
            expression(stmt.value, here)
        else:
            raise Unknown(f"a statement of type {type(stmt).__name__}")

    visit(stmt, _Context((), {}, (), ()))
    return tuple(access for access in found if access.buffer not in inner)


def _word_of(call: Any) -> Any | None:
    """Return the load of the first element of a word that a call loads; ``None`` for others.

    The call's type has as many bytes as the word (`htvm.aot.calls`).
    """
    address = call.args[1] if len(call.args) == 2 and isinstance(call.args[0], StringImm) else None
    found = getattr(address, "args", [None])[0]
    return found if isinstance(found, TensorLoad) else None


@dataclass(frozen=True, eq=False)
class _Context:
    """The context of a statement."""

    loops: tuple[tuple[Var, int], ...]
    known: Mapping[Var, Expr]
    guards: tuple[Expr, ...]
    path: tuple[int, ...]


def _buffer(source: Any) -> Var:
    if not isinstance(source, Var):
        raise Unknown("a load from something that is no buffer")
    return source


def _index(access: Any) -> Expr:
    if len(access.indices) != 1:
        raise Unknown("a buffer of several dimensions")
    return access.indices[0]


def _constant(expr: Any) -> int:
    if not isinstance(expr, tirx.IntImm):
        raise Unknown("a loop of varying length")
    return int(expr.value)


def _conditions(expr: Expr) -> list[Expr]:
    """Return the conditions in an expression on which evaluation of parts depends."""
    found: list[Expr] = []

    def call(node: Any) -> None:
        if getattr(node.op, "name", "").endswith("if_then_else"):
            found.append(node.args[0])

    def select(node: Any) -> None:
        found.append(node.condition)

    tvm_ffi.structural_walk(expr, ((Call, call), (tirx.Select, select)))
    return found


def _loads(expr: Expr) -> list[TensorLoad]:
    """Return the loads of an expression that happen whenever it is evaluated."""
    if _conditions(expr):
        return []
    found: list[TensorLoad] = []
    tvm_ffi.structural_walk(expr, (TensorLoad, found.append))
    return found


# --- evaluation ------------------------------------------------------------------------------


def depends_on(expr: Expr, variables: set[Var], known: Mapping[Var, Expr]) -> bool:
    """Whether the value of an expression may depend on these variables, or on a tensor."""
    depends = False

    def variable(var: Any) -> None:
        nonlocal depends
        if var in variables or (var in known and depends_on(known[var], variables, known)):
            depends = True

    def load(_: Any) -> None:
        nonlocal depends
        depends = True

    tvm_ffi.structural_walk(expr, ((TensorLoad, load), (Var, variable)))
    return depends


def elements(access: Access, outer: int) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return the elements of an access, and which of them are really accessed.

    Args:
        access: the access, whose first ``outer`` loops count iterations, numbered in the order of
            execution.
        outer: number of these loops.

    Returns:
        Two arrays [iterations, accesses per iteration].  Conditions on data count as satisfied.

    Raises:
        Unknown: the index depends on data, or has too many values.
    """
    if len(access.loops) < outer:
        raise Unknown("an access between the loops")
    names = dict(access.loops)
    inner = [var for var, _ in access.loops[outer:] if _mentions(access, var)]
    axes = [*(var for var, _ in access.loops[:outer]), *inner]
    shape = [names[var] for var in axes]
    if math.prod(shape) > _MOST_EVALUATIONS:
        raise Unknown("too many iterations to list")
    values: dict[Var, Indices] = {}
    for axis, var in enumerate(axes):
        spread = [1] * len(axes)
        spread[axis] = names[var]
        values[var] = np.arange(names[var], dtype=np.int64).reshape(spread)
    index = np.broadcast_to(value_of(access.index, values, access.known), shape)
    happens = np.ones(shape, bool)
    for guard in access.guards:
        try:
            happens = happens & (value_of(guard, values, access.known) != 0)
        except Unknown:
            continue
    rows = math.prod(shape[:outer])
    return index.reshape(rows, -1), happens.reshape(rows, -1)


def _mentions(access: Access, var: Var) -> bool:
    return any(depends_on(expr, {var}, access.known) for expr in (access.index, *access.guards))


_BINARY = {
    tirx.Add: np.add,
    tirx.Sub: np.subtract,
    tirx.Mul: np.multiply,
    tirx.Min: np.minimum,
    tirx.Max: np.maximum,
    tirx.FloorDiv: np.floor_divide,
    tirx.FloorMod: np.mod,
    tirx.LT: np.less,
    tirx.LE: np.less_equal,
    tirx.GT: np.greater,
    tirx.GE: np.greater_equal,
    tirx.EQ: np.equal,
    tirx.NE: np.not_equal,
    tirx.And: np.logical_and,
    tirx.Or: np.logical_or,
}


def value_of(expr: Any, values: Mapping[Var, Any], known: Mapping[Var, Expr]) -> Any:
    """Evaluate an integer expression for all values of the loop variables.

    Args:
        expr: the expression.
        values: of loop variables, as arrays that broadcast.
        known: values of variables bound around it.

    Raises:
        Unknown: it depends on something else.
    """
    if isinstance(expr, tirx.IntImm):
        return np.int64(int(expr.value))
    if isinstance(expr, Var):
        if expr in values:
            return values[expr]
        if expr in known:
            return value_of(known[expr], values, known)
        raise Unknown(f"the variable '{expr.name}'")
    if isinstance(expr, tirx.Cast):
        return value_of(expr.value, values, known)  # indices are small enough for any type
    if isinstance(expr, tirx.Not):
        return np.logical_not(value_of(expr.a, values, known))
    function = _BINARY.get(type(expr))
    if function is None and not isinstance(expr, (tirx.Div, tirx.Mod)):
        raise Unknown(f"an index with a {type(expr).__name__}")
    a, b = (value_of(part, values, known) for part in (expr.a, expr.b))
    if function is not None:
        return function(a, b)
    if np.any(np.asarray(a) < 0) or np.any(np.asarray(b) <= 0):
        raise Unknown("a division of negative numbers")
    return np.floor_divide(a, b) if isinstance(expr, tirx.Div) else np.mod(a, b)
