"""What of a Relax module has a form in C, and messages for what has none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.tirx.stmt import For, ForKind

from byoc_dory.errors import UnsupportedError
from htvm.aot.literals import C_TYPES

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc

_MOST_ELEMENTS = 2**31 - 1
"""Of a tensor."""

_SCANS = ("relax.cumprod", "relax.cumsum")
"""Operators that TVM's backends lower, and not `LegalizeOps`."""

_WRITE = "write the function as a PrimFunc, and call it with relax.call_tir"

_OUTSIDE = {
    "relax.call_dps_packed": _WRITE,
    "relax.call_pure_packed": _WRITE,
    "relax.call_inplace_packed": _WRITE,
    "relax.call_py_func": _WRITE,
    "relax.call_tir_inplace": "use call_tir, whose result has a place of its own",
}
"""Calls of what is no part of the module, and what to do about them."""


@dataclass(frozen=True)
class Place:
    """Where something is in a module, for messages."""

    function: str
    binding: str = ""

    def __str__(self) -> str:
        binding = f", binding '{self.binding}'" if self.binding else ""
        return f"function '{self.function}'{binding}"


def shape_of(ty: Any) -> tuple[int, ...]:
    """Return the sizes of a tensor of static shape."""
    return tuple(int(size) for size in ty.shape)


def check_static(ty: Any, what: str, place: Place) -> None:
    """Refuse a tensor without a static shape, or of elements that C has no type for.

    Args:
        ty: its type.
        what: its name.
        place: where it is.

    Raises:
        UnsupportedError: it has none.
    """
    shape = getattr(ty, "shape", None)
    if not isinstance(ty, relax.TensorType) or not isinstance(shape, relax.ShapeExpr):
        reason = "has a shape that depends on data" if isinstance(ty, relax.TensorType) else (
            f"is no tensor but {ty}"
        )  # fmt: skip
        raise UnsupportedError(
            f"{what} {reason}",
            where=str(place),
            hint="C needs tensors of static shape; relax.op of a fixed number of results has one",
        )
    for axis, size in enumerate(shape):
        if not isinstance(size, tirx.IntImm):
            raise UnsupportedError(
                f"dimension {axis} of {what} is '{size}', which is not static",
                where=str(place),
                hint="give it a number with tvm.relax.transform.BindSymbolicVars",
            )
        if int(size) < 1:
            raise UnsupportedError(
                f"dimension {axis} of {what} is {int(size)}",
                where=str(place),
                hint="C has no empty arrays",
            )
    if math.prod(shape_of(ty)) > _MOST_ELEMENTS:
        raise UnsupportedError(
            f"{what} has {math.prod(shape_of(ty)):,} elements, at most {_MOST_ELEMENTS:,}",
            where=str(place),
            hint="the loops count in int32",
        )
    dtype = "" if ty.dtype is None else str(ty.dtype.dtype)
    if dtype not in C_TYPES:
        raise UnsupportedError(
            f"{what} has elements of {dtype or 'an unknown type'}, which C has not",
            where=str(place),
            hint=f"known are {', '.join(C_TYPES)}; convert with relax.op.astype",
        )


def check_operator(callee: Any, operator: str, args: Sequence[Any], place: Place) -> None:
    """Refuse what TVM does not lower to loops.

    Args:
        callee: an operator, or what else is called.
        operator: its name.
        args: what it is called with.
        place: where it is.

    Raises:
        UnsupportedError: it is none of those.
    """
    where = str(place)
    if isinstance(callee, relax.ExternFunc) or operator in _OUTSIDE:
        named = [each for each in (callee, *args) if isinstance(each, relax.ExternFunc)]
        what = str(named[0].global_symbol) if named else operator
        hint = _OUTSIDE.get(operator, _OUTSIDE["relax.call_pure_packed"])
        raise UnsupportedError(
            f"'{what}' calls a function that is not in the module", where=where, hint=hint
        )
    if not isinstance(callee, tvm.ir.Op):
        raise UnsupportedError(f"a call of '{operator}' has no C form", where=where)
    if callee.get_attr("FPurity") is False:
        raise UnsupportedError(
            f"'{operator}' has an effect, which C has not",
            where=where,
            hint="remove it: a function computes its results from its parameters",
        )
    known = operator in ("relax.call_tir", "relax.shape_of", *_SCANS)
    if not known and callee.get_attr("FLegalize") is None:
        raise UnsupportedError(
            f"TVM has no loops for '{operator}'",
            where=where,
            hint="relax.transform.LegalizeOps lowers operators; write this one as a PrimFunc",
        )


def check_prim_func(name: str, function: PrimFunc, place: Place) -> None:
    """Refuse a PrimFunc whose loops are not those of C.

    Args:
        name: its name.
        function: the PrimFunc.
        place: where it is called.

    Raises:
        UnsupportedError: a shape is not static, or its loops are divided among threads.
    """
    for buffer in function.params:
        ty = buffer.ty
        if not all(isinstance(n, tirx.IntImm) for n in getattr(ty, "shape", [None])):
            raise UnsupportedError(
                f"PrimFunc '{name}' has the parameter '{buffer.name}', whose shape is not static",
                where=str(place),
                hint="give its sizes numbers with tvm.relax.transform.BindSymbolicVars",
            )
    threads: list[Any] = []
    tvm_ffi.structural_walk(function.body, (For, threads.append))
    bound = [each for each in threads if each.kind == ForKind.THREAD_BINDING]
    if bound:
        raise UnsupportedError(
            f"PrimFunc '{name}' divides the loop '{bound[0].loop_var.name}' among "
            f"threads ({bound[0].thread_binding.thread_tag})",
            where=str(place),
            hint="C has one thread: hand over the PrimFunc before it is scheduled for a GPU",
        )
