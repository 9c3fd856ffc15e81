"""`Match`: a dataflow pattern together with the names of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tvm.relax import Expr, Var
    from tvm.relax.dpl import DFPattern

__all__ = ["Match", "find"]


@dataclass(frozen=True, eq=False)
class Match:
    """How an operator looks in the integer form.

    Attributes:
        kind: name of the operator.
        pattern: matches the value of the operator's last binding.
        slots: the parts a reader needs, by name; not all occur in every match.  They are what
            ``FusionPattern`` takes as annotation patterns.
    """

    kind: str
    pattern: DFPattern
    slots: Mapping[str, DFPattern]


def find(match: Match, value: Expr, bindings: Mapping[Var, Expr]) -> dict[str, Expr] | None:
    """The parts of ``value`` by slot name, or ``None`` where the pattern does not match.

    Args:
        match: what to look for.
        value: value of a binding.
        bindings: all bindings of the function (`tvm.relax.analysis.get_var2val`).
    """
    found = match.pattern.extract_matched_expr(value, bindings)
    if found is None:
        return None
    return {name: found[part] for name, part in match.slots.items() if part in found}
