"""Softmaxes that retargeting copies from the source's module, and runs with TVM.

What an operator like a product of two tensors computes is defined by its PrimFunc; retargeting
neither changes it nor needs to understand it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from htvm.quantization.graph import Array, Origin

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Expr, Var

__all__ = ["copied_origin", "run_copied", "substitute", "write_binding", "write_copied"]


def copied_origin(module: IRModule, name: str, attrs: Mapping[str, Any]) -> Origin:
    """The operator called ``name``, and the module it is from."""
    return Origin("copied", {**attrs, "module": module, "operator": name})


def _call(origin: Origin) -> tuple[IRModule, Var, Expr]:
    from patterns.names import name_of
    from patterns.reading.read import bindings_of, main_of

    module, wanted = origin.attrs["module"], origin.attrs["operator"]
    found = (pair for pair in bindings_of(main_of(module)) if name_of(pair[1]) == wanted)
    return module, *next(found)


def _variables(value: Any) -> list[Var]:
    """The tensors a call reads, each once, in order of first use."""
    from tvm import relax

    arguments = [field for arg in value.args[1:2] for field in arg.fields]
    return list(dict.fromkeys(arg for arg in arguments if isinstance(arg, relax.Var)))


def write_copied(builder: BlockBuilder, origin: Origin, inputs: Sequence[Var], name: str) -> Var:
    """Write the operator again, reading ``inputs``."""
    module, _, value = _call(origin)
    mapping = dict(zip(_variables(value), inputs, strict=True))
    return write_binding(builder, module, name, substitute(value, mapping))


def run_copied(origin: Origin, parts: Sequence[Array]) -> Array:
    """What it computes for a batch, ``[N, ...]`` in the module's own layout."""
    import tvm
    from tvm import relax

    from htvm.aot.reference import build_llvm_reference

    module, var, value = _call(origin)
    builder = relax.BlockBuilder(tvm.IRModule())
    params = [relax.Var(f"x{i}", read.ty) for i, read in enumerate(_variables(value))]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(write_copied(builder, origin, params, str(var.name)))
        builder.emit_func_output(result)
    reference = build_llvm_reference(builder.get())
    count = len(parts[0])
    return np.concatenate([reference([part[i : i + 1] for part in parts])[0] for i in range(count)])


# ------------------------------------------------------------------------------ bindings


def substitute(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    """An expression with other variables."""
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
    """Write a call, and the function of ``module`` that it calls, if it does."""
    from tvm import relax

    if isinstance(value.args[0], relax.GlobalVar):
        func = module[next(g for g in module.functions if g.same_as(value.args[0]))]
        callee = builder.add_func(func, str(value.args[0].name_hint))
        value = relax.Call(
            value.op, [callee, *value.args[1:]], value.attrs, value.ty_args, value.span
        )
    return builder.emit(value, name)
