"""Names of operators and tensors, carried through the compiler in ``Call.span``.

Almost every pass renames variables, but the span of a call is kept.  An operator that consists of
several Relax calls puts its name into all of them.  The tensor that an operator computes has the
operator's name; an input of the model has its own name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tvm import relax
from tvm.ir import SourceName, Span

from byoc_dory.errors import HtvmError, IntegerFormError

if TYPE_CHECKING:
    from tvm.relax import BlockBuilder, Call, Expr, Var


class NameCounter:
    """Generates ``conv2d_0``, ``conv2d_1``, ``dense_0`` ... in order.

    Args:
        taken: names that must not be generated, e.g. those of the model's inputs.
    """

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        self._next: Counter[str] = Counter()
        self._taken = set(taken)

    def take(self, name: str) -> bool:
        """Take a name, and return whether it was free."""
        free = name not in self._taken
        self._taken.add(name)
        return free

    def fresh(self, kind: str) -> str:
        """Return the next free name of this kind."""
        while True:
            name = f"{kind}_{self._next[kind]}"
            self._next[kind] += 1
            if name not in self._taken:
                self._taken.add(name)
                return name


@contextmanager
def located(name: str) -> Iterator[None]:
    """Name the operator in errors that are raised inside and say no place."""
    try:
        yield
    except HtvmError as error:
        error.where = error.where or f"operator '{name}'"
        raise


def with_name(call: Call, name: str) -> Call:
    """Return the same call as a part of the operator ``name``."""
    span = Span(SourceName(name), 0, 0, 0, 0)
    return relax.Call(call.op, call.args, call.attrs, call.ty_args, span)


def name_of(expr: Expr) -> str | None:
    """Return the operator that a call belongs to, or ``None`` if it carries no name."""
    span = getattr(expr, "span", None)
    if span is None or not isinstance(span, Span):
        return None
    return str(span.source_name.name)


def tensor_name(expr: Expr) -> str:
    """Return the name of the tensor that ``expr`` stands for.

    ``expr`` is a variable without a binding at hand (an input of the function), or the value
    bound to one, as the pattern matcher reports it.

    Raises:
        IntegerFormError: it is a call that carries no name.
    """
    name = name_of(expr)
    if name is not None:
        return name
    if isinstance(expr, relax.Var):
        return str(expr.name)
    raise IntegerFormError(
        "an operator carries no name",
        where=f"call '{expr}'",
        hint="write operators with the builders of the package 'patterns'",
    )


def emit(bb: BlockBuilder, call: Call, name: str, *, last: bool = False) -> Var:
    """Bind ``call`` as a part of operator ``name``; the ``last`` part also names the variable."""
    return bb.emit(with_name(call, name), name if last else "")
