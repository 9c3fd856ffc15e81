"""Patterns made from the operators found: for layers of PrimFunc calls, or of several operators.

Most operators have a pattern written beside their builder.  But all calls of PrimFuncs look alike,
and groups of operators take many forms, so their patterns are made from the bindings that were
read.  Names then decide which matches are accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tvm import relax
from tvm.ir import GenericConst, GlobalVar
from tvm.relax.dpl import is_const, is_gv, is_op, is_tuple, wildcard

from patterns.names import name_of
from patterns.reading.walk import resolved

if TYPE_CHECKING:
    from tvm.relax import Expr, Var
    from tvm.relax.dpl import DFPattern


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
