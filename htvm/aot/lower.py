"""Lowering a scheduled PrimFunc to one whose parameters are plain pointers, ready for C.

TVM's default pipeline ends in its packed calling convention, which needs TVM's runtime.  Here its
passes run up to `LowerIntrin`, without `MakePackedAPI` and `LowerTVMBuiltin`; then the parameters
are rebuilt as pointers, and every large intermediate buffer becomes another pointer: a workspace
that the memory planner places.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import PointerType, PrimType
from tvm.tirx.stmt import AllocBuffer, DeclBuffer, For, ForKind, IfThenElse

from byoc_dory.errors import UnsupportedError
from htvm.aot.calls import call_intrinsics
from htvm.aot.lanes import call_mac
from htvm.aot.loops import bytes_of, elements_of, substituted
from htvm.aot.overlay import Overlay, overlays
from htvm.aot.rescale import call_least

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

    from htvm.aot.intrinsics import CoreKernels

NAME = "htvm_name"
"""Annotation of a loop: name of its variable in the C code."""

UNROLL = "htvm_unroll"
"""Annotation of a loop: number of iterations that the C compiler should unroll (or all)."""

OVERLAPS = "htvm.overlaps"
"""Attribute of a PrimFunc whose loops may compute an element twice, with the same result."""

STACK_BYTES = 256
"""A kernel keeps buffers up to this size on its stack; larger ones become workspaces."""

SMALL_STACK_BYTES = 64
"""The same where memory is scarce: a workspace lies in the arena, which is rarely full."""

_CHARACTERS = frozenset(("int8", "uint8"))
"""C's character types, as which any bytes may be accessed."""

UNROLL_SUFFIX = "__unroll"
"""Marks such a loop in its variable's name; followed by the factor."""


@dataclass(frozen=True)
class Parameter:
    """A pointer parameter of a kernel.

    Attributes:
        name: name in the C source.
        dtype: type of the elements.
        shape: shape of the tensor; for a workspace, its number of elements.
        const: whether the kernel only reads it.
        apart: whether it has bytes of its own.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    const: bool
    apart: bool = True


@dataclass(frozen=True, eq=False)
class PointerFunc:
    """A PrimFunc over pointers.

    Attributes:
        func: function lowered as far as the C code generator needs, without the packed calling
            convention.
        parameters: inputs and constants, outputs, then workspaces.
        workspaces: bytes of each trailing workspace.
        overlays: inputs over which the output may be written.
    """

    func: PrimFunc
    parameters: tuple[Parameter, ...]
    workspaces: tuple[int, ...]
    overlays: tuple[Overlay, ...] = ()


def lower(
    func: PrimFunc,
    symbol: str,
    names: Sequence[str],
    outputs: int,
    *,
    core: CoreKernels,
    unroll: bool = False,
    over: Collection[int] = (),
    stack_bytes: int = STACK_BYTES,
) -> PointerFunc:
    """Lower one PrimFunc (blocks or loops over buffers) to loops over pointers.

    Args:
        func: function whose parameters are buffers of static shape, the last ``outputs`` of them
            written.
        symbol: name of the C function.
        names: C names of the parameters.
        outputs: number of outputs.
        core: what its marked loops become calls of, if it has intrinsics.
        unroll: whether TVM unrolls loops itself, as its default pipeline does.
        over: parameters over which the output may be written, if the loops allow it.
        stack_bytes: buffers larger than this become workspaces.

    Raises:
        UnsupportedError: a part of the PrimFunc has no plain C form.
    """
    target = tvm.target.Target("c")
    func = func.with_attr("global_symbol", symbol).with_attr("target", target)
    func = func.with_attr("tirx.noalias", True)
    module = tvm.IRModule({symbol: func})
    with tvm.transform.PassContext(opt_level=3):
        func = tvm.transform.Sequential(_to_flat_buffers())(module)[symbol]
        func = _from_first_elements(func)
        found = overlays(func, len(names) - outputs) if over else ()
        if core.header:
            func = call_mac(call_intrinsics(func, core))
        if core.large:
            func = call_least(func)
        func = _without_single_turns(func)
        lowered = _with_intrinsics(func, symbol, unroll, share=True)
        if _mixes_types(lowered):
            lowered = _with_intrinsics(func, symbol, unroll, share=False)
    body = _compute_where_needed(_define_shift_left(_name_loops(lowered.body)))
    pointers = _with_pointers(lowered, body, list(names), outputs, stack_bytes)
    output = len(names) - 1
    allowed = tuple(
        each
        for each in found
        if each.parameter in over
        and _may_alias(*(pointers.parameters[at].dtype for at in (each.parameter, output)))
    )
    shared = {each.parameter for each in allowed} | ({output} if allowed else set())
    parameters = tuple(
        replace(parameter, apart=number not in shared)
        for number, parameter in enumerate(pointers.parameters)
    )
    return replace(pointers, parameters=parameters, overlays=allowed)


def serial(func: PrimFunc) -> PrimFunc:
    """Return a function whose loops are neither parallel nor vectors: C has one kind."""

    def visit(loop: Any) -> Any:
        if loop.kind == ForKind.SERIAL:
            return loop
        return For(loop.loop_var, loop.min, loop.extent, ForKind.SERIAL, loop.body)

    return func.with_body(tvm_ffi.structural_map(func.body, (For, visit)))


def _from_first_elements(func: PrimFunc) -> PrimFunc:
    """Let every parameter begin at its pointer; TVM's scans and scatters leave that open."""
    starts = [buffer.ty.elem_offset for buffer in func.params]
    loose = {start: 0 for start in starts if isinstance(start, tvm.ir.Var)}
    return func.with_body(substituted(func.body, loose)) if loose else func


def _may_alias(one: str, other: str) -> bool:
    """Whether C lets elements of two types be the same bytes.

    Compilers may take accesses of two types for independent, unless one of them is a character
    type (C11 6.5p7).
    """
    return one == other or not _CHARACTERS.isdisjoint((one, other))


def _without_single_turns(func: PrimFunc) -> PrimFunc:
    """Replace loops of one turn by their bodies; TVM keeps those that a schedule has marked."""

    def visit(loop: Any) -> Any:
        if not isinstance(loop.extent, tirx.IntImm) or int(loop.extent) != 1:
            return loop
        return substituted(loop.body, {loop.loop_var: loop.min})

    return func.with_body(tvm_ffi.structural_map(func.body, (For, visit)))


def _with_intrinsics(func: PrimFunc, symbol: str, unroll: bool, *, share: bool) -> PrimFunc:
    passes = tvm.transform.Sequential(_to_intrinsics(unroll, _has_conditions(func), share))
    return passes(tvm.IRModule({symbol: func}))[symbol]


def _mixes_types(func: PrimFunc) -> bool:
    """Whether an array is used as one of another type, too, in a way that C leaves undefined.

    TVM gives an array to a later buffer of any type that fits into its bytes.  In C, an array has
    the alignment of its own type, and what is in it may else be accessed as characters only (C11
    6.3.2.3p7, 6.5p7).
    """
    views: list[Any] = []
    tvm_ffi.structural_walk(func.body, (DeclBuffer, views.append))
    used = ((str(view.buffer.ty.dtype), str(view.data.args[0].ty.dtype)) for view in views)
    return any(dtype not in (own, *_CHARACTERS) for dtype, own in used)


def _has_conditions(func: PrimFunc) -> bool:
    found: list[Any] = []
    tvm_ffi.structural_walk(func.body, (IfThenElse, found.append))
    return bool(found)


# Both are parts of TVM's default pipeline for CPU targets, without passes for other targets or its
# runtime.
def _to_flat_buffers() -> list[Any]:
    block, plain = s_tir.transform, tirx.transform
    return [
        block.CanonicalizeLoop(),
        block.LowerInitBlock(),
        block.PlanAndUpdateBufferAllocationLocation(),
        block.ConvertBlocksToOpaque(),
        block.CompactBufferAllocation(),
        block.LowerMatchBuffer(),
        block.StmtSimplify(),
        block.LowerOpaqueBlock(),
        plain.FlattenBuffer(),
    ]


def _to_intrinsics(unroll: bool, conditions: bool, share: bool) -> list[Any]:
    block, plain = s_tir.transform, tirx.transform
    return [
        plain.NarrowDataType(32),
        block.LoopPartition(),
        *((plain.StorageRewrite(),) if share else ()),
        # It takes long for large expressions, even if there is nothing to hoist.
        *((block.HoistIfThenElse(),) if conditions else ()),
        *((plain.UnrollLoop(),) if unroll else ()),
        block.RenormalizeSplitPattern(),
        plain.StmtSimplify(),
        plain.RemoveNoOp(),
        block.RewriteUnsafeSelect(),
        plain.CommonSubexprElim(),
        plain.LowerIntrin(),
    ]


def _name_loops(body: Any) -> Any:
    """Name loop variables; an unroll factor goes into the name, which the C text keeps."""

    def rename(loop: Any) -> Any:
        notes = loop.annotations or {}
        if NAME not in notes and UNROLL not in notes:
            return loop
        old = loop.loop_var
        name = str(notes.get(NAME, old.name))
        if UNROLL in notes:
            name += f"{UNROLL_SUFFIX}{int(notes[UNROLL])}"
        new = tvm.ir.Var(name, old.ty)
        inner = substituted(loop.body, {old: new})
        return For(new, loop.min, loop.extent, loop.kind, inner)

    return tvm_ffi.structural_map(body, (For, rename))


def _define_shift_left(body: Any) -> Any:
    """Shift signed integers left as unsigned ones: C leaves shifts of negatives undefined."""

    def define(shift: Any) -> Any:
        dtype = str(shift.ty.dtype)
        if not dtype.startswith("int"):
            return shift
        value, amount = (tirx.Cast("u" + dtype, part) for part in (shift.a, shift.b))
        return tirx.Cast(dtype, tirx.LShift(value, amount))

    return tvm_ffi.structural_map(body, (tirx.LShift, define))


def _compute_where_needed(body: Any) -> Any:
    """Let C compute what is defined in a branch of a choice only where the branch is taken.

    TVM's passes get a `Select`: they take exponential time for nested conditions of expressions.
    """

    def branch(choice: Any) -> Any:
        if not any(isinstance(part, tirx.Let) for part in (choice.true_value, choice.false_value)):
            return choice
        return tirx.if_then_else(choice.condition, choice.true_value, choice.false_value)

    return tvm_ffi.structural_map(body, (tirx.Select, branch))


class _Pointers:
    """Replaces buffers' own storage by pointers."""

    def __init__(self, func: PrimFunc, names: list[str], outputs: int, stack_bytes: int) -> None:
        self.stack_bytes = stack_bytes
        self.buffers = list(func.params)
        self.variables: list[Any] = []
        self.parameters: list[Parameter] = []
        for index, (buffer, name) in enumerate(zip(self.buffers, names, strict=True)):
            shape = tuple(int(size) for size in buffer.ty.shape)
            const = index < len(names) - outputs
            self._add(name, str(buffer.ty.dtype), shape, const)
        self.workspaces: list[int] = []

    def _add(self, name: str, dtype: str, shape: tuple[int, ...], const: bool) -> Any:
        variable = tvm.ir.Var(name, PointerType(PrimType(dtype)))
        self.variables.append(variable)
        self.parameters.append(Parameter(name, dtype, shape, const))
        return variable

    def declare(self, stmt: Any) -> Any:
        """Bind a view of a parameter to the parameter's pointer."""
        for buffer, variable in zip(self.buffers, self.variables, strict=False):
            if len(stmt.data.args) == 1 and stmt.data.args[0].same_as(buffer):
                return DeclBuffer(stmt.buffer, data=variable)
        return stmt

    def allocate(self, stmt: Any) -> Any:
        """Turn a large allocation into a workspace parameter."""
        dtype = str(stmt.buffer.ty.dtype)
        elements, size = elements_of(stmt.buffer), bytes_of(stmt.buffer)
        if size <= self.stack_bytes:
            return stmt
        number = len(self.workspaces)
        self.workspaces.append(size)
        variable = self._add(f"workspace_{number}", dtype, (elements,), False)
        return DeclBuffer(stmt.buffer, data=variable)


def _with_pointers(
    func: PrimFunc, body: Any, names: list[str], outputs: int, stack_bytes: int
) -> PointerFunc:
    pointers = _Pointers(func, names, outputs, stack_bytes)

    def declare(stmt: Any) -> Any:
        return pointers.declare(stmt) if isinstance(stmt.data, tvm.ir.Call) else stmt

    body = tvm_ffi.structural_map(body, (DeclBuffer, declare))
    body = tvm_ffi.structural_map(body, (AllocBuffer, pointers.allocate))
    rebuilt = tirx.PrimFunc(pointers.variables, body, attrs=func.attrs)
    loose = tirx.analysis.undefined_vars(body, pointers.variables)
    if loose:
        raise UnsupportedError(
            f"'{', '.join(var.name for var in loose)}' has no plain C form",
            where=f"kernel '{func.attrs['global_symbol']}'",
        )
    return PointerFunc(rebuilt, tuple(pointers.parameters), tuple(pointers.workspaces))
