"""Operators that are Relax calls: `CallOp`, which is one, and `ComposedOp`, which a pattern finds.

`Match` is a dataflow pattern together with the names of its parts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tvm import relax

from patterns.names import emit
from patterns.op import Op, TensorType
from patterns.primitive import dtype_of, shape_of

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Call, Expr, Var
    from tvm.relax.dpl import DFPattern
    from typing_extensions import Self


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


@dataclass(frozen=True, eq=False)
class CallOp(Op):
    """Base of operators that correspond to one Relax operator.

    Attributes:
        operation: name of the Relax operator, such as ``relax.reshape``.
    """

    operation: ClassVar[str] = ""

    @abstractmethod
    def call(self, x: Expr) -> Call:
        """Return the call, for one tensor."""

    @classmethod
    @abstractmethod
    def read(cls, call: Any) -> Self:
        """Return the operator for a call.

        Raises:
            IntegerFormError: the call has attributes that the operator does not support.
        """

    def result_of(self, inputs: Sequence[TensorType]) -> TensorType:
        """See `Op.result_of`."""
        (item,) = inputs
        x = relax.Var("x", relax.TensorType(item.shape, item.dtype))
        made = relax.BlockBuilder().normalize(self.call(x))
        return TensorType(shape_of(made), dtype_of(made))

    def write(self, bb: BlockBuilder, inputs: Sequence[Expr], name: str) -> Var:
        """See `Op.write`."""
        return emit(bb, self.call(inputs[0]), name, last=True)


@dataclass(frozen=True, eq=False)
class ComposedOp(Op):
    """Base of operators written as several calls; the class has the patterns that match them.

    Attributes:
        form: class whose patterns match it, if it has none of its own.
    """

    form: ClassVar[type[ComposedOp] | None] = None

    @classmethod
    @abstractmethod
    def matches(cls) -> tuple[Match, ...]:
        """Return the patterns of the forms that the operator may have."""

    @classmethod
    @abstractmethod
    def read(cls, slots: Mapping[str, Expr]) -> Op:
        """Return the operator matched, which may be of another class with the same form.

        Args:
            slots: the parts found by a pattern of `matches`, by name.

        Raises:
            IntegerFormError: its parameters are not allowed in the integer form.
        """


def compositions(classes: Iterable[type[Op]]) -> tuple[tuple[type[ComposedOp], Match], ...]:
    """Return every pattern that finds operators of these classes, those with a single form first.

    Operators that are one call need none.
    """
    forms = {cls.form or cls for cls in classes if issubclass(cls, ComposedOp)}
    ordered = sorted(forms, key=lambda cls: f"{cls.__module__}.{cls.__name__}")
    found = sorted(((cls, cls.matches()) for cls in ordered), key=lambda entry: len(entry[1]))
    return tuple((cls, match) for cls, matches in found for match in matches)
