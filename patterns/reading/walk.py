"""Grouping the bindings of a module in the integer form into operators.

An operator ends in the binding of a tensor that other operators read: of any type except int32, or
int32 if nothing in the same operator reads it.  All int32 bindings between this and the tensors
that the operator reads belong to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm import relax

from byoc_dory.errors import IntegerFormError
from patterns.names import name_of
from patterns.primitive import dtype_of, kind_of
from patterns.reading.recognise import primitives
from patterns.relax_op import is_slice, variables

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Function, Var


@dataclass(frozen=True, eq=False)
class OperatorBindings:
    """The bindings that make up one operator.

    Attributes:
        var: the variable of the tensor it computes.
        value: the value of ``var``.
        parts: the variables bound inside, ``var`` last.
        inputs: the variables read, each once, in order of first use.
    """

    var: Var
    value: Expr
    parts: tuple[Var, ...]
    inputs: tuple[Var, ...]


def main_of(module: IRModule) -> Function:
    """Return the function ``main``.

    Raises:
        IntegerFormError: the module has no such function.
    """
    names = {str(var.name_hint): func for var, func in module.functions.items()}
    func = names.get("main")
    if not isinstance(func, relax.Function):
        raise IntegerFormError(
            "the module has no Relax function 'main'",
            where=f"functions: {', '.join(sorted(names)) or 'none'}",
        )
    return func


def bindings_of(func: Function) -> Iterator[tuple[Var, Expr]]:
    """Yield all (variable, value) pairs in execution order.

    Raises:
        IntegerFormError: a binding is not a plain one.
    """
    for block in func.body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, relax.VarBinding):
                raise IntegerFormError(
                    "a binding with a run-time check of its type",
                    where=f"variable '{binding.var.name}'",
                    hint="give all shapes statically",
                )
            yield binding.var, binding.value


def operators(module: IRModule) -> tuple[OperatorBindings, ...]:
    """Return the operators of ``main``, in execution order, of any kind."""
    func = main_of(module)
    values = dict(bindings_of(func))
    inner = _inner(module, func, values)
    found = []
    for var, value in values.items():
        if isinstance(value, relax.Var) or var in inner:
            continue
        parts: list[Var] = []
        inputs: list[Var] = []
        _collect(var, values, inner, parts, inputs)
        found.append(OperatorBindings(var, value, tuple(parts), tuple(inputs)))
    return tuple(found)


def _inner(module: IRModule, func: Function, values: Mapping[Var, Expr]) -> set[Var]:
    """The variables inside operators: int32, or slices of tensors that the operator reads."""
    readers: dict[Var, set[str | None]] = {}
    for value in values.values():
        for used in variables(value) if not isinstance(value, relax.Var) else ():
            readers.setdefault(resolved(used, values), set()).add(name_of(value))
    returned = set(results_of(func, values))
    found = set()
    for var, value in values.items():
        if isinstance(value, relax.Var) or not (dtype_of(var) == "int32" or is_slice(value)):
            continue
        name = name_of(value)
        if name is None and is_slice(value):
            ends = True
        elif name is None:  # not our module: readers are unknown
            ends = var in returned or primitives().get(kind_of(module, value) or "") is not None
        else:
            ends = (var in returned or var in readers) and name not in readers.get(var, ())
        if not ends:
            found.add(var)
    return found


def _collect(
    var: Var,
    values: Mapping[Var, Expr],
    inner: Collection[Var],
    parts: list[Var],
    inputs: list[Var],
) -> None:
    """Add ``var`` after all inner variables that it depends on."""
    for used in variables(values[var]):
        used = resolved(used, values)
        if used in inner:
            if used not in parts:
                _collect(used, values, inner, parts, inputs)
        elif used not in inputs:
            inputs.append(used)
    parts.append(var)


def resolved(var: Var, values: Mapping[Var, Expr]) -> Var:
    """The variable that ``var`` is another name of, or itself; ``values`` are all bindings."""
    while isinstance(values.get(var), relax.Var):
        var = values[var]
    return var


def _outputs(expr: Expr, values: Mapping[Var, Expr]) -> Iterator[Var]:
    if isinstance(expr, relax.Tuple):
        for item in expr.fields:
            yield from _outputs(item, values)
    elif isinstance(values.get(expr), relax.Tuple):
        yield from _outputs(values[expr], values)
    else:
        yield expr


def results_of(func: Function, values: Mapping[Var, Expr]) -> tuple[Var, ...]:
    """Return the variables that a function returns, in order; ``values`` are all its bindings."""
    return tuple(resolved(var, values) for var in _outputs(func.body.body, values))
