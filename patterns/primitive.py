"""PrimFuncs with attributes that identify them: operators, and parts of operators, as loop nests.

A PrimFunc carries its kind as an attribute (``htvm.kind``), so that readers need not analyse its
body.  One that is a whole operator (`PrimitiveOp`) also carries the operator's fields as text
(``htvm.fields``, see `patterns.fields`); parts of operators carry their parameters one by one
(``htvm.<parameter>``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm import relax, te, tirx

from byoc_dory.errors import IntegerFormError
from patterns.names import emit

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Expr, Var

Parameter: TypeAlias = "int | str | tuple[int, ...]"
_PREFIX = "htvm."


def shape_of(expr: Expr) -> tuple[int, ...]:
    """Return the static shape of a tensor expression.

    Raises:
        IntegerFormError: it is not a tensor, or a size is unknown.
    """
    shape = expr.ty.shape if isinstance(expr.ty, relax.TensorType) else None
    if shape is None or not all(isinstance(size, tirx.IntImm) for size in shape):
        raise IntegerFormError(
            f"a value of type {expr.ty}", where=f"'{expr}'", hint="give all shapes statically"
        )
    return tuple(int(size) for size in shape)


def dtype_of(expr: Expr) -> str:
    """Return the element type of a tensor, or ``""`` if the expression is not a tensor."""
    return str(expr.ty.dtype) if isinstance(expr.ty, relax.TensorType) else ""


def sizes_of(tensor: te.Tensor) -> tuple[int, ...]:
    """Return the static shape of a TE tensor."""
    return tuple(int(size) for size in tensor.shape)


def extents(shape: tuple[int, ...]) -> list[Any]:
    """Return the shape in 64 bits, like those of Relax's own operators, which it is fused with."""
    return [tirx.const(size, "int64") for size in shape]


def primitive(
    kind: str,
    inputs: Sequence[tuple[str, tuple[int, ...], str]],
    body: Callable[..., te.Tensor],
    parameters: Mapping[str, Parameter],
) -> tirx.PrimFunc:
    """Return a PrimFunc that computes ``body`` of placeholders.

    Args:
        kind: name of the operator, kept as attribute ``htvm.kind``.
        inputs: (name, shape, dtype) of each argument.
        body: tensor expression of the placeholders.
        parameters: integers, strings and tuples of integers, kept as ``htvm.<name>``.
    """
    placeholders = [te.placeholder(extents(shape), dtype, name) for name, shape, dtype in inputs]
    func = te.create_prim_func([*placeholders, body(*placeholders)])
    func = func.without_attr("global_symbol").with_attr(f"{_PREFIX}kind", kind)
    for name, value in parameters.items():
        attribute = list(value) if isinstance(value, tuple) else value
        func = func.with_attr(f"{_PREFIX}{name}", attribute)
    return func


def call_primitive(
    bb: BlockBuilder,
    func: tirx.PrimFunc,
    args: Sequence[Expr],
    shape: tuple[int, ...],
    dtype: str,
    name: str,
    *,
    last: bool = False,
) -> Var:
    """Add ``func`` to the module (once) and bind its call as part of operator ``name``."""
    global_var = bb.add_func(func, str(func.attrs[f"{_PREFIX}kind"]))
    call = relax.call_tir(global_var, list(args), relax.TensorType(shape, dtype))
    return emit(bb, call, name, last=last)


def kind_of(module: IRModule, expr: Expr) -> str | None:
    """Return the ``htvm.kind`` of the PrimFunc that ``expr`` calls, or ``None``."""
    func = _callee(module, expr)
    if func is None or func.attrs is None or f"{_PREFIX}kind" not in func.attrs:
        return None
    return str(func.attrs[f"{_PREFIX}kind"])


def parameters_of(module: IRModule, expr: Expr) -> dict[str, Parameter]:
    """Return the parameters of the PrimFunc that ``expr`` calls, by name without the prefix."""
    func = _callee(module, expr)
    if func is None or func.attrs is None:
        return {}
    return {
        str(key)[len(_PREFIX) :]: _plain(value)
        for key, value in func.attrs.items()
        if str(key).startswith(_PREFIX) and str(key) != f"{_PREFIX}kind"
    }


def _callee(module: IRModule, expr: Expr) -> tirx.PrimFunc | None:
    if not isinstance(expr, relax.Call) or not isinstance(expr.args[0], relax.GlobalVar):
        return None
    func = module[expr.args[0]]
    return func if isinstance(func, tirx.PrimFunc) else None


def _plain(value: Any) -> Parameter:
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "__len__"):
        return tuple(int(item) for item in value)
    return int(value)
