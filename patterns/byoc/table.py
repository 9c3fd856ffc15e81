"""The pattern table: the dataflow patterns offered to an accelerator.

One entry per operator, made from the pattern beside the operator's builder, so that exactly what is
written is matched.  The table knows no SoC: it takes the accelerator's name as a prefix and a
function that tells whether a named layer goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from patterns.names import name_of
from patterns.op import Scale

if TYPE_CHECKING:
    from tvm.ir import RelaxExpr
    from tvm.relax.dpl import DFPattern
    from tvm.relax.transform import FusionPattern, PatternCheckContext

    from patterns.byoc.composite import LayerForm
    from patterns.composed_op import ComposedOp
    from patterns.match import Match

LAYER_ATTRIBUTE = "layer"
"""Attribute of a composite function that carries the layer's name."""


def pattern_table(
    prefix: str,
    takes: Callable[[str], bool],
    patterns: Sequence[tuple[type[ComposedOp], Match]],
    shapes: Sequence[LayerForm] = (),
) -> list[FusionPattern]:
    """Return the fusion patterns for one family of accelerators.

    Args:
        prefix: composites are named ``<prefix>.<operator>``; TVM uses the prefix as their codegen.
        takes: whether the operator with this name belongs to a region of this family.
        patterns: from `patterns.composed_op.compositions`, of the operators that there are.
        shapes: patterns of layers without a builder's pattern, with the names of these layers.
    """
    special = {name for shape in shapes for name in shape.names}
    matches = [match for cls, match in patterns if cls.scale is not Scale.OWN]

    def taken_as(names: Collection[str]) -> Callable[[str], bool]:
        return lambda name: name in names and takes(name)

    def taken_alone(name: str) -> bool:
        return name not in special and takes(name)

    return [
        *(_fusion_pattern(f"{prefix}.layer", s.pattern, taken_as(s.names)) for s in shapes),
        *(_fusion_pattern(f"{prefix}.{m.kind}", m.pattern, taken_alone) for m in matches),
    ]


def _fusion_pattern(name: str, pattern: DFPattern, takes: Callable[[str], bool]) -> FusionPattern:
    from tvm.relax.transform import FusionPattern

    def layer_name(annotated: Mapping[str, RelaxExpr]) -> str:
        return name_of(annotated["root"]) or ""

    def check(context: PatternCheckContext) -> bool:
        return takes(layer_name(context.annotated_expr)) and not _leaks(context)

    def attributes(annotated: Mapping[str, RelaxExpr]) -> dict[str, str]:
        return {LAYER_ATTRIBUTE: layer_name(annotated)}

    return FusionPattern(name, pattern, {"root": pattern}, check, attributes)


def _leaks(context: PatternCheckContext) -> bool:
    """Whether a value inside the match is used outside it.

    TVM would fuse anyway and return the inner int32 value as a second output.
    """
    inside = {var for var, _ in context.matched_bindings.items()}
    root = context.value_to_bound_var[context.matched_expr]
    for var in inside:
        if var.same_as(root):
            continue
        users = context.var_usages[var] if var in context.var_usages else ()
        if any(not any(user.same_as(other) for other in inside) for user in users):
            return True
    return False
