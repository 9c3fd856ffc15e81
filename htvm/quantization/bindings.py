"""Copying bindings from one Relax module into another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Expr, Var

__all__ = ["substitute", "write_binding"]


def substitute(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    """Return an expression with variables replaced."""
    from tvm import relax

    if isinstance(expr, relax.Var):
        return mapping.get(expr, expr)
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([substitute(field, mapping) for field in expr.fields])
    if isinstance(expr, relax.Call):
        args = [substitute(arg, mapping) for arg in expr.args]
        return relax.Call(expr.op, args, expr.attrs, expr.ty_args, expr.span)
    return expr


def write_binding(builder: BlockBuilder, module: IRModule, name: str, value: Any) -> Var:
    """Write a call, including the function of ``module`` that it calls, if any."""
    from tvm import relax

    if isinstance(value.args[0], relax.GlobalVar):
        func = module[next(g for g in module.functions if g.same_as(value.args[0]))]
        callee = builder.add_func(func, str(value.args[0].name_hint))
        value = relax.Call(
            value.op, [callee, *value.args[1:]], value.attrs, value.ty_args, value.span
        )
    return builder.emit(value, name)
