"""The pattern table: the dataflow patterns offered to an accelerator.

One entry per operator, made from the pattern beside the operator's builder, so that exactly what is
written is matched.  But all calls of PrimFuncs look alike, and groups of operators take many forms,
so their patterns are made from the bindings that were read.  Names then decide which matches are
accepted.  The table knows no SoC: it takes the accelerator's name as a prefix and a function that
tells whether a named layer goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm import relax
from tvm.ir import GenericConst, GlobalVar
from tvm.relax.dpl import is_const, is_gv, is_op, is_tuple, wildcard

from patterns.names import name_of
from patterns.op import Scale
from patterns.reading.walk import resolved

if TYPE_CHECKING:
    from tvm.ir import RelaxExpr
    from tvm.relax import Expr, Var
    from tvm.relax.dpl import DFPattern
    from tvm.relax.transform import FusionPattern, PatternCheckContext

    from patterns.relax_op import ComposedOp, Match


class LayerForm:
    """The common form of the bindings of some layers.

    Attributes:
        pattern: matches the last binding.
        names: the layers with this form.
    """

    def __init__(self, pattern: DFPattern) -> None:
        self.pattern = pattern
        self.names: set[str] = set()


def shapes_of(
    layers: Mapping[str, Sequence[str]], values: Mapping[Var, Expr]
) -> tuple[LayerForm, ...]:
    """Return the patterns of some layers, those with most bindings first.

    Args:
        layers: name of each layer -> the operators it consists of, the last of which has that name.
        values: all bindings of ``main``.
    """
    ends: dict[str, Var] = {}
    for var, value in values.items():
        name = name_of(value)
        if name is not None:
            ends[name] = var
    found: dict[str, tuple[int, LayerForm]] = {}
    for layer, parts in layers.items():
        tracer = _Tracer(frozenset(parts), values)
        pattern = tracer.of(ends[layer])
        size, shape = found.setdefault(tracer.text, (tracer.bindings, LayerForm(pattern)))
        shape.names.add(layer)
    ordered = sorted(found.values(), key=lambda entry: -entry[0])
    return tuple(shape for _, shape in ordered)


class _Tracer:
    """Makes a pattern from bindings, and a text that is the same for equal patterns."""

    def __init__(self, parts: frozenset[str], values: Mapping[Var, Expr]) -> None:
        self._parts = parts
        self._values = values
        self._known: dict[Var, tuple[int, DFPattern]] = {}
        self._text: list[str] = []
        self.bindings = 0

    @property
    def text(self) -> str:
        """The pattern as text; variables are numbered in the order in which they were traced."""
        return " ".join(self._text)

    def of(self, var: Var) -> DFPattern:
        """A variable's pattern: that of its binding, or a wildcard if the binding is outside."""
        var = resolved(var, self._values)
        if var in self._known:
            number, pattern = self._known[var]
            self._text.append(f"={number}")
            return pattern
        value = self._values.get(var)
        number = len(self._known)
        if value is None or name_of(value) not in self._parts:
            self._text.append("?")
            pattern = wildcard()
        else:
            self.bindings += 1
            # Number it before its arguments, which come after it in the text.
            self._known[var] = (number, wildcard())
            pattern = self._call(value)
        self._known[var] = (number, pattern)
        return pattern

    def _call(self, call: Expr) -> DFPattern:
        operation = str(call.op.name)
        self._text.append(f"{operation}(")
        arguments = [self._argument(argument) for argument in call.args]
        self._text.append(")")
        return is_op(operation)(*arguments)

    def _argument(self, value: Expr) -> DFPattern:
        if isinstance(value, relax.Var):
            return self.of(value)
        if isinstance(value, relax.Tuple):
            self._text.append("[")
            fields = [self._argument(field) for field in value.fields]
            self._text.append("]")
            return is_tuple(fields)
        kinds: tuple[tuple[type, str, Callable[[], DFPattern]], ...] = (
            (GenericConst, "c", is_const),
            (GlobalVar, "f", is_gv),
        )
        for kind, letter, pattern in kinds:
            if isinstance(value, kind):
                self._text.append(letter)
                return pattern()
        self._text.append("?")
        return wildcard()


def pattern_table(
    prefix: str,
    takes: Callable[[str], bool],
    patterns: Sequence[tuple[type[ComposedOp], Match]],
    attributes: Callable[[str], dict[str, Any]],
    shapes: Sequence[LayerForm] = (),
) -> list[FusionPattern]:
    """Return the fusion patterns for one family of accelerators.

    Args:
        prefix: composites are named ``<prefix>.<operator>``; TVM uses the prefix as their codegen.
        takes: whether the operator with this name belongs to a region of this family.
        patterns: from `patterns.relax_op.compositions`, of the operators that there are.
        attributes: those of the composite of the operator with this name.
        shapes: patterns of layers without a builder's pattern, with the names of these layers.
    """
    special = {name for shape in shapes for name in shape.names}
    matches = [match for cls, match in patterns if cls.scale is not Scale.OWN]

    def taken_as(names: Collection[str]) -> Callable[[str], bool]:
        return lambda name: name in names and takes(name)

    def taken_alone(name: str) -> bool:
        return name not in special and takes(name)

    return [
        *(
            _fusion_pattern(f"{prefix}.layer", s.pattern, taken_as(s.names), attributes)
            for s in shapes
        ),
        *(
            _fusion_pattern(f"{prefix}.{m.kind}", m.pattern, taken_alone, attributes)
            for m in matches
        ),
    ]


def _fusion_pattern(
    name: str,
    pattern: DFPattern,
    takes: Callable[[str], bool],
    attributes: Callable[[str], dict[str, Any]],
) -> FusionPattern:
    from tvm.relax.transform import FusionPattern

    def layer_name(annotated: Mapping[str, RelaxExpr]) -> str:
        return name_of(annotated["root"]) or ""

    def check(context: PatternCheckContext) -> bool:
        return takes(layer_name(context.annotated_expr)) and not leaks(context)

    def attributes_of(annotated: Mapping[str, RelaxExpr]) -> dict[str, Any]:
        return attributes(layer_name(annotated))

    return FusionPattern(name, pattern, {"root": pattern}, check, attributes_of)


def leaks(context: PatternCheckContext) -> bool:
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
