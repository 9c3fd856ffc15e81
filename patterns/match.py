"""`Match`: a dataflow pattern together with the names of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm import relax

from patterns.primitive import dtype_of

if TYPE_CHECKING:
    from tvm.relax import Expr, Var
    from tvm.relax.dpl import DFPattern


@dataclass(frozen=True, eq=False)
class Match:
    """The form of an operator in the integer form.

    Attributes:
        kind: name of the operator.
        pattern: matches the value of the operator's last binding.
        slots: the parts that a reader needs, by name; not all occur in every match.
            ``FusionPattern`` takes them as annotation patterns.
    """

    kind: str
    pattern: DFPattern
    slots: Mapping[str, DFPattern]


def find(match: Match, value: Expr, bindings: Mapping[Var, Expr]) -> dict[str, Expr] | None:
    """Return the parts of ``value`` by slot name; ``None`` if the pattern does not match.

    Args:
        match: pattern to match.
        value: value of a binding.
        bindings: all bindings of the function (`tvm.relax.analysis.get_var2val`).
    """
    found = match.pattern.extract_matched_expr(value, _within(value, bindings))
    if found is None:
        return None
    return {name: found[part] for name, part in match.slots.items() if part in found}


def _within(value: Expr, bindings: Mapping[Var, Expr]) -> dict[Var, Expr]:
    """Return the bindings that an operator ending in ``value`` may consist of.

    These are int32, slices, or renamings; restricting them saves time, because the matcher copies
    them.
    """
    found: dict[Var, Expr] = {}
    waiting = [value]
    while waiting:
        for var in variables(waiting.pop()):
            bound = bindings.get(var)
            if bound is None or var in found:
                continue
            if isinstance(bound, relax.Var) or dtype_of(var) == "int32" or is_slice(bound):
                found[var] = bound
                waiting.append(bound)
    return found


def is_slice(value: Expr) -> bool:
    """Whether it is a slice of a tensor, as read by the passes of an operator over its channels."""
    return str(getattr(getattr(value, "op", None), "name", "")) == "relax.strided_slice"


def variables(value: Expr) -> Iterator[Var]:
    """Yield the variables that a value reads, in order."""
    if isinstance(value, relax.Var):
        yield value
    elif isinstance(value, relax.Tuple):
        for item in value.fields:
            yield from variables(item)
    elif isinstance(value, relax.TupleGetItem):
        yield from variables(value.tuple_value)
    elif isinstance(value, relax.Call):
        for item in value.args:
            yield from variables(item)
