"""One function of a Relax module as a single dataflow block over tensors.

What is compiled to C has no calls of other Relax functions, no tuples and no control flow: calls
are written out where they are made, tuples are their fields, and shapes are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst, GlobalVar

from byoc_dory.errors import HtvmError, ModelError, UnsupportedError
from htvm.relax.checks import (
    Place,
    check_operator,
    check_prim_func,
    check_static,
    shape_of,
)

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Expr, Function, Var

Value: TypeAlias = Any
"""What a variable stands for: an expression, or a tuple of such values."""

_REGION = "Codegen"
"""Attribute of functions that `RunCodegen` has not compiled yet."""

_FOLDED: Mapping[str, Callable[[Any, Any], Any]] = {
    "relax.permute_dims": lambda value, call: np.transpose(
        value, call.attrs.axes and [int(axis) for axis in call.attrs.axes]
    ),
    "relax.reshape": lambda value, call: value.reshape(shape_of(call.ty)),
}
"""Operators that only move elements: of a constant, they are computed here."""

_RESHAPES = ("relax.expand_dims", "relax.flatten", "relax.squeeze")
"""Operators that are reshapes by another name; a reshape takes no code."""

_OPAQUE = 8
"""TVM's `OpPatternKind` of what must not be fused."""


@dataclass(frozen=True, eq=False)
class Flat:
    """One function, flattened.

    Attributes:
        module: ``main`` is the function; the others are PrimFuncs that it calls.
        inputs: names of its tensors, a field of a tuple behind the tuple's name.
        results: names of the tensors that it returns.
    """

    module: IRModule
    inputs: tuple[str, ...]
    results: tuple[str, ...]


def flattened(module: IRModule, name: str) -> Flat:
    """Return one function as a single dataflow block over tensors.

    Args:
        module: any module.
        name: of the function.

    Raises:
        UnsupportedError: a shape is not static, or something has no C form.
        ModelError: the function calls itself.
    """
    return _Flattening(module, name).run()


@dataclass
class _Frame:
    """A function being walked: its name and what its variables stand for."""

    name: str
    values: dict[Var, Value] = field(default_factory=dict["Var", Value])


@dataclass(frozen=True, eq=False)
class _Local:
    """A function defined in another, with the variables of that."""

    function: Function
    values: Mapping[Var, Value]


class _Flattening:
    def __init__(self, module: IRModule, name: str) -> None:
        self.module, self.name = module, name
        self.stack: list[str] = []
        self.prim_funcs: dict[GlobalVar, GlobalVar] = {}
        self.builder: BlockBuilder = relax.BlockBuilder()

    def run(self) -> Flat:
        function = self.module[self.name]
        given: list[Var] = []
        values = [self._input(str(p.name), p.ty, given) for p in function.params]
        try:
            with self.builder.function("main", given):
                with self.builder.dataflow():
                    names, tensors = self._results(function, values)
                    outputs = self.builder.emit_output(relax.Tuple(tensors))
                self.builder.emit_func_output(outputs)
        except HtvmError:
            self.builder._end_block()  # or TVM prints a warning about it
            raise
        with tvm.target.Target("c"):
            module = relax.backend.DispatchSortScan()(self.builder.finalize())
        return Flat(module, tuple(str(var.name) for var in given), names)

    def _results(
        self, function: Function, values: Sequence[Value]
    ) -> tuple[tuple[str, ...], list[Any]]:
        names, tensors = _leaves("output", self._function(self.name, function, values))
        for tensor, name in zip(tensors, names, strict=True):
            check_static(tensor.ty, f"result '{name}'", Place(self.name))
        return names, tensors

    def _input(self, name: str, ty: Any, given: list[Var]) -> Value:
        if isinstance(ty, relax.TupleType):
            fields = enumerate(ty.fields)
            return tuple(self._input(f"{name}_{at}", each, given) for at, each in fields)
        check_static(ty, f"parameter '{name}'", Place(self.name))
        given.append(relax.Var(name, ty))
        return given[-1]

    def _function(
        self,
        name: str,
        function: Function,
        args: Sequence[Value],
        around: Mapping[Var, Value] | None = None,
    ) -> Value:
        """Write out a function's body for these arguments; return what it returns.

        ``around`` has the variables of the function in which it is defined.
        """
        if name in self.stack:
            raise ModelError("it calls itself", where=str(Place(name)), hint="unroll the recursion")
        self.stack.append(name)
        frame = _Frame(name, {**(around or {}), **dict(zip(function.params, args, strict=True))})
        result = self._block(frame, function.body)
        self.stack.pop()
        return result

    def _block(self, frame: _Frame, body: Expr) -> Value:
        if not isinstance(body, relax.SeqExpr):
            return self._value(frame, body, "", "")
        for block in body.blocks:
            for binding in block.bindings:
                frame.values[binding.var] = self._bound(frame, binding)
        return self._value(frame, body.body, "", "")

    def _bound(self, frame: _Frame, binding: Any) -> Value:
        wish = str(binding.var.name)
        return self._value(frame, binding.value, wish, Place(frame.name, wish))

    def _value(self, frame: _Frame, expr: Expr, wish: str, place: Any) -> Value:
        """Return what an expression stands for, after emitting what computes it."""
        if isinstance(expr, relax.Var):
            return frame.values[expr]
        if isinstance(expr, relax.Tuple):
            return tuple(self._value(frame, each, wish, place) for each in expr.fields)
        if isinstance(expr, relax.TupleGetItem):
            return self._value(frame, expr.tuple_value, wish, place)[int(expr.index)]
        if isinstance(expr, relax.If):
            raise UnsupportedError(
                "control flow has no C form here",
                where=str(place or Place(frame.name)),
                hint="compute both branches and choose with relax.op.where, or compile each branch "
                "as a function of its own",
            )
        if isinstance(expr, relax.SeqExpr):
            return self._block(frame, expr)
        if isinstance(expr, relax.Call):
            return self._call(frame, expr, wish, place or Place(frame.name))
        if isinstance(expr, relax.Function):
            return _Local(expr, frame.values)
        return expr  # a constant, a shape, a number

    def _call(self, frame: _Frame, call: Any, wish: str, place: Place) -> Value:
        args = [self._value(frame, arg, wish, place) for arg in call.args]
        callee = frame.values.get(call.op) if isinstance(call.op, relax.Var) else call.op
        if isinstance(callee, _Local):
            return self._function(str(call.op.name), callee.function, args, callee.values)
        if isinstance(callee, GlobalVar):
            return self._called(str(callee.name_hint), self.module[callee], args, place)
        operator = str(getattr(callee, "name", "") or callee)
        check_operator(callee, operator, args, place)
        if operator == "relax.shape_of":
            return relax.ShapeExpr(list(args[0].ty.shape))
        if operator == "relax.call_tir":
            args[0] = self._prim_func(args[0], place)
        new = relax.Call(callee, [_expression(arg) for arg in args], call.attrs, call.ty_args)
        new = self.builder.normalize(new)
        if operator in _RESHAPES:
            check_static(new.ty, "its result", place)
            operator = "relax.reshape"
            new = self.builder.normalize(relax.op.reshape(new.args[0], shape_of(new.ty)))
        folded = _folded(operator, new)
        if folded is not None:
            return folded
        return self._fields(self.builder.emit(new, wish or "result"), wish, place)

    def _called(self, name: str, callee: Function, args: list[Value], place: Place) -> Value:
        attrs = callee.attrs or {}
        if _REGION in attrs:
            raise UnsupportedError(
                f"'{name}' is a region of the code generator '{attrs[_REGION]}', without C",
                where=str(place),
                hint="hand over the module before partitioning",
            )
        return self._function(name, callee, args)

    def _prim_func(self, callee: GlobalVar, place: Place) -> GlobalVar:
        """Return the flat module's variable for a PrimFunc."""
        if callee in self.prim_funcs:
            return self.prim_funcs[callee]
        function = self.module[callee]
        check_prim_func(str(callee.name_hint), function, place)
        if "global_symbol" in (function.attrs or {}):
            function = function.without_attr("global_symbol")
        if any(str(n.ty.dtype) != "int64" for each in function.params for n in each.ty.shape):
            # TVM fuses only what has sizes of the type that its own operators have.
            function = function.with_attr("op_pattern", _OPAQUE)
        # "main" is the name of what calls it.
        found = self.builder.add_func(function, f"{callee.name_hint}_loops")
        self.prim_funcs[callee] = found
        return found

    def _fields(self, var: Var, wish: str, place: Place) -> Value:
        """Return the tensors that a call has computed."""

        def fields(expr: Any, ty: Any) -> Value:
            if isinstance(ty, relax.TupleType):
                return tuple(
                    fields(self.builder.emit(relax.TupleGetItem(expr, at), wish), each)
                    for at, each in enumerate(ty.fields)
                )
            check_static(ty, "its result", place)
            return expr

        return fields(var, var.ty)


def culprit(module: IRModule) -> str:
    """Return the first binding of ``main`` that TVM does not legalize, as a part of a message."""
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            if not isinstance(binding.value, relax.Call):
                continue
            builder = relax.BlockBuilder()
            free = relax.analysis.free_vars(binding.value)
            call = binding.value
            if str(getattr(call.op, "name", "")) == "relax.call_tir":
                continue
            with builder.function("main", list(free)):
                builder.emit_func_output(builder.emit(call))
            try:
                relax.transform.LegalizeOps()(builder.finalize())
            except RuntimeError:
                return f", binding '{binding.var.name}', '{call.op.name}'"
    return ""


def _leaves(name: str, value: Value) -> tuple[tuple[str, ...], list[Any]]:
    """Return the tensors of nested tuples in order, each with a name."""
    if not isinstance(value, tuple):
        return (name,), [value]
    names, tensors = list[str](), list[Any]()
    for at, each in enumerate(value):
        inner = _leaves(f"{name}_{at}", each)
        names += inner[0]
        tensors += inner[1]
    return tuple(names), tensors


def _expression(value: Value) -> Any:
    return relax.Tuple([_expression(each) for each in value]) if isinstance(value, tuple) else value


def _folded(operator: str, call: Any) -> Any:
    """Return the constant that a call computes from one, if it only moves elements."""
    compute = _FOLDED.get(operator)
    if compute is None or not isinstance(call.args[0], GenericConst):
        return None
    value = np.asarray(compute(call.args[0].value.numpy(), call), order="C")
    return relax.const(value, value.dtype.name)
