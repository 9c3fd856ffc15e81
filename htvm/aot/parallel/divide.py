"""Calls that compute a whole kernel, as loops of calls that each compute a part of it."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.ir import PrimType, Var
from tvm.tirx.stmt import For, ForKind

from htvm.aot.effects import KernelCall, call_of
from htvm.aot.loops import call


def divided(stmt: Any, parts: int) -> Any:
    """Return a loop of one turn per part, of equal parts, for a call that can be divided so
    (`htvm.aot.effects.Division`); a loop of one turn for any other call that is described; and
    any other statement as it is."""
    found = call_of(stmt)
    if found is None or found.effects is None:
        return stmt
    turns = parts if _is_divisible(found, parts) else 1
    turn = Var("part", PrimType("int32"))
    return For(turn, 0, turns, ForKind.SERIAL, _part(found, turn, turns) if turns > 1 else stmt)


def _is_divisible(found: KernelCall, parts: int) -> bool:
    how = found.effects and found.effects.division
    if not found.effects or not how:
        return False
    each, left = divmod(found.effects.loops[how.loop], parts)
    return left == 0 and each >= how.least and each % how.multiple == 0


def _part(found: KernelCall, turn: Var, parts: int) -> Any:
    """Return the call of one of so many parts."""
    effects = found.effects
    assert effects is not None and effects.division is not None
    how = effects.division
    each = effects.loops[how.loop] // parts
    arguments = list(found.arguments)
    arguments[how.argument] = tirx.const(each, str(arguments[how.argument].ty.dtype))
    for place, first in found.pointers.items():
        moved = {**effects.reads, **effects.writes}[place].get(how.loop, 0) * each
        if moved:
            arguments[place] = tirx.address_of(first.source[first.indices[0] + turn * moved])
    return call(found.name, *arguments)
