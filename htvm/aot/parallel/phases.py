"""Cutting a kernel into parts that cores run one after the other, each on its loop ranges.

Between two parts all cores wait for each other.  Loops in which no core touches elements that
another one writes form one part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tvm import tirx
from tvm.ir import PointerType, PrimType, Var
from tvm.tirx.stmt import AllocBuffer, Bind, DeclBuffer, For, ForKind, SeqStmt

from htvm.aot.accesses import Access, Unknown, accesses_of, viewed
from htvm.aot.constants import FreshNames
from htvm.aot.loops import (
    bytes_of,
    elements_of,
    nest_of,
    sequence,
    statements_of,
    substituted,
)
from htvm.aot.lower import OVERLAPS, UNROLL_SUFFIX, Parameter
from htvm.aot.parallel.dependence import Footprint, footprint, independent, meet, repeats
from htvm.aot.parallel.divide import divided

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from byoc_dory.soc.base import Target
    from htvm.aot.lower import PointerFunc

# Loops are merged until this share of the cores' time would be used.
_ENOUGH = 0.9


@dataclass(frozen=True)
class Cores:
    """Cores that run a kernel together, and the memory close to them.

    Attributes:
        count: number of cores.
        near_bytes: bytes of that memory that a kernel may use while it runs.
        stack: bytes of each core's stack.
    """

    count: int
    near_bytes: int
    stack: int


def cores_of(target: Target, l1_budget: int | None = None) -> Cores | None:
    """Return the cores that a target's CPU kernels may use; None for the host core alone.

    Of a SoC with accelerators, a target without them only has the host core.

    Args:
        target: the target of the build.
        l1_budget: bytes of the near memory that may be used; all of it by default.
    """
    cluster = target.soc.cluster
    if cluster is None or (target.soc.accelerators and not target.accelerators):
        return None
    near = 0 if cluster.memory == "L2" else target.soc.memory(cluster.memory).size
    room = near if l1_budget is None else min(near, l1_budget)
    return Cores(cluster.cores, room, cluster.worker_stack)


@dataclass(frozen=True, eq=False)
class KernelPart:
    """Loops that run without waiting in between.

    Attributes:
        func: function whose parameters are pointers, then begin and end of every shared loop.
        operands: names of the pointers.
        counts: iterations of every shared loop; if empty, the first core runs the part alone.
    """

    func: PrimFunc
    operands: tuple[str, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Phases:
    """A kernel as parts.

    Attributes:
        parts: parts in order.
        locals: arrays that live through several parts, on the stack of each core that runs them.
        traffic: number of loads and stores of each parameter over all iterations, by name.
        private: workspaces of which each core has its own, by name.
    """

    parts: tuple[KernelPart, ...]
    locals: tuple[Parameter, ...]
    traffic: dict[str, int]
    private: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class _Piece:
    """A statement of the kernel: a nest whose first ``depth`` loops are shared."""

    stmt: Any
    accesses: tuple[Access, ...]
    depth: int = 0
    footprint: Footprint | None = None
    private: tuple[Var, ...] = ()


def cut(lowered: PointerFunc, cores: Cores) -> Phases | None:
    """Cut a lowered kernel into parts; return None if its text cannot be analysed."""
    try:
        return _Cutter(lowered, cores).run()
    except Unknown:
        return None


class _Cutter:
    def __init__(self, lowered: PointerFunc, cores: Cores) -> None:
        self.func, self.cores = lowered.func, cores
        attrs = lowered.func.attrs or {}
        self.repeatable = OVERLAPS in attrs
        self.parameters: dict[Var, Parameter] = {}
        self.allocated: dict[Var, AllocBuffer] = {}
        self.views: list[DeclBuffer] = []
        self.aliases: list[DeclBuffer] = []
        self.same: dict[Var, Var] = {}  # the buffer that each alias stands for
        self.sizes: dict[Var, int] = {}
        self.body: list[Any] = []
        by_pointer = dict(zip(lowered.func.params, lowered.parameters, strict=True))
        workspaces = lowered.parameters[len(lowered.parameters) - len(lowered.workspaces) :]
        self.workspaces = {parameter.name for parameter in workspaces}
        for stmt in statements_of(lowered.func.body):
            if isinstance(stmt, DeclBuffer):
                self._declare(stmt, by_pointer)
            elif isinstance(stmt, AllocBuffer):
                self.allocated[stmt.buffer] = stmt
            elif isinstance(stmt, Bind):
                raise Unknown("a variable of the whole kernel")
            else:
                self.body.append(divided(stmt, cores.count))
                continue
            named = self.named(stmt.buffer)
            self.sizes[named] = max(self.sizes.get(named, 0), elements_of(stmt.buffer))

    def _declare(self, stmt: DeclBuffer, by_pointer: dict[Any, Parameter]) -> None:
        """Enter a view: a parameter's first view stands for it, all others for their buffers."""
        if not isinstance(stmt.data, Var):
            self.same[stmt.buffer] = viewed(stmt)
            self.aliases.append(stmt)
            return
        for view in self.views:
            if view.data.same_as(stmt.data):
                if str(view.buffer.ty.dtype) != str(stmt.buffer.ty.dtype):
                    raise Unknown("two views with elements of different types")
                self.same[stmt.buffer] = view.buffer
                self.aliases.append(stmt)
                return
        self.views.append(stmt)
        self.parameters[stmt.buffer] = by_pointer[stmt.data]

    def named(self, buffer: Var) -> Var:
        """Return the buffer that a name stands for."""
        while buffer in self.same:
            buffer = self.same[buffer]
        return buffer

    def run(self) -> Phases:
        plain = [_Piece(stmt, accesses_of(stmt, self.same)) for stmt in self.body]
        users: dict[Var, int] = {}
        for piece in plain:
            for buffer in {access.buffer for access in piece.accesses}:
                users[buffer] = users.get(buffer, 0) + 1
        alone = [
            buffer
            for buffer in (*self.allocated, *self.parameters)
            if users.get(buffer, 0) == 1 and self._is_scratch(buffer)
        ]
        pieces = [self._shared(piece, alone) for piece in plain]
        groups = self._grouped(pieces)
        private = {buffer for piece in pieces for buffer in piece.private}
        shared = [buffer for buffer in self.allocated if buffer not in private]
        views, locals_ = self._views(shared)
        parts = tuple(self._part(group, views) for group in groups)
        own = {self.parameters[buffer].name for buffer in private if buffer in self.parameters}
        return Phases(parts, tuple(locals_), self._traffic(plain), frozenset(own))

    def _is_scratch(self, buffer: Var) -> bool:
        """Whether nothing but the kernel uses a buffer."""
        parameter = self.parameters.get(buffer)
        return parameter is None or parameter.name in self.workspaces

    # --- loops ---------------------------------------------------------------------------

    def _shared(self, piece: _Piece, alone: Sequence[Var]) -> _Piece:
        """Determine how many of a nest's loops to share: as few as occupy the cores."""
        best, used = piece, 0.0
        count = 1
        for depth, loop in enumerate(nest_of(piece.stmt)[0], 1):
            count *= int(loop.extent)
            share = count / (-(-count // self.cores.count) * self.cores.count)
            if share <= used:
                continue
            found = self._try(piece, depth, alone)
            if found is not None:
                best, used = found, share
            if used >= _ENOUGH:
                break
        return best

    def _try(self, piece: _Piece, depth: int, alone: Sequence[Var]) -> _Piece | None:
        touched = {access.buffer for access in piece.accesses}
        private = tuple(
            buffer
            for buffer in alone
            if buffer in touched and repeats(piece.accesses, buffer, depth)
        )
        room = sum(bytes_of(buffer) for buffer in private if buffer in self.allocated)
        if room > self.cores.stack // 4:
            return None
        written = {access.buffer for access in piece.accesses if access.store} - set(private)
        try:
            done = footprint(piece.accesses, depth, written, self.sizes)
        except Unknown:
            return None
        if not independent(done, self.repeatable):
            return None
        return replace(piece, depth=depth, footprint=done, private=private)

    def _grouped(self, pieces: Sequence[_Piece]) -> list[list[_Piece]]:
        """Merge neighbouring pieces between which no core needs to wait for another."""
        written = {access.buffer for piece in pieces for access in piece.accesses if access.store}
        groups: list[list[_Piece]] = []
        for piece in pieces:
            if piece.depth:
                shared = written - set(piece.private)
                done = footprint(piece.accesses, piece.depth, shared, self.sizes)
                piece = replace(piece, footprint=done)
            if groups and all(_joins(before, piece) for before in groups[-1]):
                groups[-1].append(piece)
            else:
                groups.append([piece])
        return groups

    # --- functions -----------------------------------------------------------------------

    def _views(self, shared: Sequence[Var]) -> tuple[list[tuple[Any, Any, str]], list[Parameter]]:
        """Return views of all buffers that parts share: (declaration, pointer, name)."""
        views = [(view, view.data, self.parameters[view.buffer].name) for view in self.views]
        names = FreshNames(parameter.name for parameter in self.parameters.values())
        locals_ = []
        for buffer in shared:
            # TVM's names have that ending, which is removed when a body is printed.
            name = names.fresh(buffer.name.split("_intermediate")[0])
            dtype = str(buffer.ty.dtype)
            pointer = Var(name, PointerType(PrimType(dtype)))
            views.append((DeclBuffer(buffer, data=pointer), pointer, name))
            locals_.append(Parameter(name, dtype, (self.sizes[buffer],), False))
        return views, locals_

    def _part(self, group: Sequence[_Piece], views: Sequence[tuple[Any, Any, str]]) -> KernelPart:
        touched = {access.buffer for piece in group for access in piece.accesses}
        used = [(view, pointer, name) for view, pointer, name in views if view.buffer in touched]
        private = (buffer for piece in group for buffer in piece.private)
        body: list[Any] = [self.allocated[each] for each in private if each in self.allocated]
        body += [view for view, _, _ in used]
        body += [alias for alias in self.aliases if self.named(alias.buffer) in touched]
        bounds: list[Var] = []
        counts: list[int] = []
        alone = all(_turns(piece) <= 1 for piece in group)
        for piece in group:
            if alone or not piece.depth:
                body.append(piece.stmt)
                continue
            number = len(counts)
            begin, end = (Var(f"{name}_{number}", PrimType("int32")) for name in ("begin", "end"))
            stmt, count = _ranged(piece.stmt, piece.depth, begin, end)
            body.append(stmt)
            bounds += [begin, end]
            counts.append(count)
        parameters = [*(pointer for _, pointer, _ in used), *bounds]
        func = tirx.PrimFunc(parameters, sequence(body), attrs=self.func.attrs)
        return KernelPart(func, tuple(name for _, _, name in used), tuple(counts))

    def _traffic(self, pieces: Sequence[_Piece]) -> dict[str, int]:
        total: dict[str, int] = {}
        for piece in pieces:
            for access in piece.accesses:
                parameter = self.parameters.get(access.buffer)
                if parameter is not None:
                    times = math.prod(extent for _, extent in access.loops)
                    total[parameter.name] = total.get(parameter.name, 0) + times
        return total


def _turns(piece: _Piece) -> int:
    """Return the iterations that the cores share."""
    loops = nest_of(piece.stmt)[0][: piece.depth]
    return math.prod(int(loop.extent) for loop in loops) if loops else 0


def _joins(before: _Piece, piece: _Piece) -> bool:
    if before.footprint is None or piece.footprint is None:
        return False
    return not meet(before.footprint, piece.footprint)


def _ranged(stmt: For, depth: int, begin: Var, end: Var) -> tuple[For, int]:
    """The nest with its first loops merged into one from ``begin`` to ``end``, and its count."""
    loops = nest_of(stmt)[0][:depth]
    count = math.prod(int(loop.extent) for loop in loops)
    names = [str(loop.loop_var.name).split(UNROLL_SUFFIX)[0] for loop in loops]
    fresh = [Var(name, PrimType("int32")) for name in names]
    old = (loop.loop_var for loop in loops)
    body = substituted(loops[-1].body, dict(zip(old, fresh, strict=True)))
    if depth == 1:
        return For(fresh[0], begin, end - begin, ForKind.SERIAL, body), count
    number = Var("n", PrimType("int32"))
    parts, step = [], count
    for loop, var in zip(loops, fresh, strict=True):
        extent = int(loop.extent)
        step //= extent
        value: Any = number if step == 1 else tirx.Div(number, tirx.const(step, "int32"))
        if var is not fresh[0]:
            value = tirx.Mod(value, tirx.const(extent, "int32"))
        parts.append(Bind(var, value))
    return For(number, begin, end - begin, ForKind.SERIAL, SeqStmt([*parts, body])), count
