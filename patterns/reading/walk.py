"""Grouping the bindings of a module in the integer form into operators, and recognising these.

An operator ends in the binding of a tensor that other operators read: of any type except int32, or
int32 if nothing in the same operator reads it.  All int32 bindings between this and the tensors
that the operator reads belong to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import tvm
from tvm import relax
from tvm.ir import GenericConst

from byoc_dory.errors import IntegerFormError
from patterns.names import name_of
from patterns.ops import classes
from patterns.primitive import PrimitiveOp, dtype_of, kind_of, parameters_of, read_primitive
from patterns.relax_op import CallOp, ComposedOp, Match, compositions, find, is_slice, variables

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Function, Var

    from patterns.op import Op


_Class = TypeVar("_Class")

_ENDS = ("relax.astype", "relax.add")
"""Name of the operation or the PrimFunc of a composition's last call."""


@cache
def _compositions() -> tuple[tuple[type[ComposedOp], Match], ...]:
    return compositions(classes())


def recognised(module: IRModule, value: Expr, values: Mapping[Var, Expr]) -> Op:
    """Return the operator that ends in ``value``.

    Args:
        module: the module that contains it.
        value: the value of the operator's last binding.
        values: all bindings of ``main``.

    Raises:
        IntegerFormError: it is not part of the integer form, or its attributes do not fit its
            class.
    """
    if isinstance(value, relax.Call):
        operation = str(getattr(value.op, "name", ""))
        if (call := _calls().get(operation)) is not None:
            return call.read(value)
        if (written := primitives().get(kind_of(module, value) or "")) is not None:
            return read_primitive(written, parameters_of(module, value), value)
        for cls, match in _compositions() if operation in _ENDS else ():
            slots = find(match, value, values)
            if slots is not None:
                return cls.read(slots)
    raise IntegerFormError(
        "not an operator of the integer form",
        where=f"value '{_brief(value)}'",
        hint="write operators with the classes of the package 'patterns'",
    )


@cache
def primitives() -> Mapping[str, type[PrimitiveOp]]:
    """Return the classes of operators that are PrimFuncs, by the PrimFunc's kind.

    Raises:
        IntegerFormError: two classes write PrimFuncs of the same kind.
    """
    return _by_name((cls.tag or cls.kind, cls) for cls in _derived(PrimitiveOp))


@cache
def _calls() -> Mapping[str, type[CallOp]]:
    """Return the classes of operators that are Relax calls, by the name of the Relax operator.

    Raises:
        IntegerFormError: two classes write the same call.
    """
    return _by_name((cls.operation, cls) for cls in _derived(CallOp))


def _derived(base: Any) -> Iterator[type[Any]]:
    return (cls for cls in classes() if issubclass(cls, base))


def _by_name(named: Iterable[tuple[str, type[_Class]]]) -> Mapping[str, type[_Class]]:
    found: dict[str, type[_Class]] = {}
    for name, cls in named:
        other = found.setdefault(name, cls)
        if other is not cls:
            raise IntegerFormError(
                f"two classes of operators are '{name}' in a module",
                where=f"{other.__module__} and {cls.__module__}",
                hint="give one of them a name of its own",
            )
    return found


def _brief(value: Any) -> str:
    if isinstance(value, relax.Call):
        return str(getattr(value.op, "name", getattr(value.op, "name_hint", value.op)))
    return type(value).__name__


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


def module_sha256(module: IRModule) -> str:
    """Return the SHA-256 of a module's computation and its operators' names, in hexadecimal.

    It covers ``main`` as TVM prints it, the names of its operators, the attributes of the functions
    that it calls (the whole functions if they have no such attributes), and the bytes of all
    constants.  So it is the same in every process and on every little-endian machine, but may
    change if TVM changes how it prints.
    """
    main = main_of(module)
    parts = [tvm.IRModule({"main": main}).script(show_meta=False)]
    parts += [name_of(value) or "" for _, value in bindings_of(main)]
    for variable, function in sorted(module.functions.items(), key=lambda item: str(item[0])):
        if str(variable.name_hint) != "main":
            attributes = function.attrs
            told = attributes is not None and "htvm.kind" in attributes
            parts.append(f"{variable.name_hint}: {attributes if told else function.script()}")
    digest = hashlib.sha256("\0".join(parts).encode())

    def visit(expr: Any) -> None:
        if isinstance(expr, GenericConst):
            array = expr.value.numpy()
            digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())

    relax.analysis.post_order_visit(main, visit)
    return digest.hexdigest()
