"""Checking whether a module is in the integer form.

The form (see `patterns` for how each operator is written):

* one Relax function ``main``; its parameters are the model's inputs; no other function but the
  PrimFuncs of `patterns.primitive`;
* tensors are int8, uint8, int16, int32 or float32;
* one dataflow block in which every binding is one call (or another name for a variable), all
  types static; weights are int8 or int16 constants, biases int32;
* every tensor ends an operator that `patterns.reading.read` supports; bindings inside an operator
  are int32 and not used elsewhere; shifts are from 0 to 31, and clips are inside the type of the
  output;
* every call carries the name of its operator, and names are unique, also among the inputs'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tvm import relax, tirx

from byoc_dory.errors import HtvmError, IntegerFormError
from byoc_dory.layers import MulShift, Rows, Shift, Weighted
from htvm.frontend.limits import check_work
from patterns.names import name_of
from patterns.primitive import dtype_of
from patterns.reading.read import graph_with, read_node
from patterns.reading.walk import bindings_of, main_of, operators

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Function, Var

    from patterns.reading.graph import Graph
    from patterns.reading.node import Node
    from patterns.reading.walk import OperatorBindings

_TYPES = ("int8", "uint8", "int16", "int32", "float32")
_LIST = f"{', '.join(_TYPES[:-1])} or {_TYPES[-1]}"
_HINT = "write operators with the builders of the package 'patterns'"


def check(module: IRModule) -> Graph:
    """Check that a module is in the integer form, and return its graph.

    Raises:
        IntegerFormError: the message names the first binding that is not.
        UnsupportedError: it is more work than any target does (`htvm.frontend.limits`).
    """
    main = main_of(module)
    _check_functions(module)
    _check_interface(main)
    values = dict(bindings_of(main))
    for var, value in values.items():
        _check_binding(var, value)
    nodes = []
    owners: dict[Var, OperatorBindings] = {}
    for operator in operators(module):
        nodes.append(_read(module, operator, values))
        _check_arithmetic(nodes[-1])
        _claim(operator, owners)
        _check_names(operator, values)
    _check_unclaimed(values, owners)
    graph = graph_with(module, nodes)
    _check_whole(graph)
    return graph


def check_graph(graph: Graph) -> None:
    """Check what the operators of a graph compute.

    Raises:
        IntegerFormError: two tensors have one name, or a number is undefined in C.
        UnsupportedError: it is more work than any target does (`htvm.frontend.limits`).
    """
    for node in graph.in_order:
        _check_arithmetic(node)
    _check_whole(graph)


def _check_whole(graph: Graph) -> None:
    seen = set()
    for name in (*(name for name, _ in graph.inputs), *(node.name for node in graph.in_order)):
        if name in seen:
            raise IntegerFormError(f"two tensors have the name '{name}'", where="function 'main'")
        seen.add(name)
    check_work(graph.in_order)


def _check_functions(module: IRModule) -> None:
    for var, func in module.functions.items():
        if str(var.name_hint) == "main":
            continue
        known = isinstance(func, tirx.PrimFunc) and func.attrs and "htvm.kind" in func.attrs
        if not known:
            raise IntegerFormError(
                "a function that is neither 'main' nor a PrimFunc of the integer form",
                where=f"function '{var.name_hint}'",
                hint="inline it, or remove it",
            )


def _check_interface(main: Function) -> None:
    for param in main.params:
        if dtype_of(param) not in _TYPES or not _is_static(param):
            raise IntegerFormError(
                f"its type is {param.ty}",
                where=f"parameter '{param.name}'",
                hint=f"inputs are tensors of known shape, {_LIST}",
            )
    body = main.body.body
    results = list(body.fields) if isinstance(body, relax.Tuple) else [body]
    for result in results:
        if not isinstance(result, relax.Var) or dtype_of(result) not in _TYPES:
            raise IntegerFormError(
                f"it returns {result.ty}",
                where="function 'main'",
                hint=f"outputs are tensors, {_LIST}",
            )
    blocks = main.body.blocks
    if len(blocks) != 1 or not isinstance(blocks[0], relax.DataflowBlock):
        raise IntegerFormError(
            f"{len(blocks)} blocks instead of one dataflow block", where="function 'main'"
        )


def _is_static(expr: Expr) -> bool:
    shape = getattr(expr.ty, "shape", None)
    return shape is not None and all(hasattr(size, "value") for size in shape)


def _check_binding(var: Var, value: Expr) -> None:
    where = f"variable '{var.name}'"
    if not isinstance(value, relax.Call | relax.Var):
        raise IntegerFormError(f"a {type(value).__name__} is bound", where=where, hint=_HINT)
    if dtype_of(var) not in _TYPES or not _is_static(var):
        raise IntegerFormError(f"its type is {var.ty}", where=where, hint=f"static, {_LIST}")


def _read(module: IRModule, operator: OperatorBindings, values: dict[Var, Expr]) -> Node:
    """Read an operator; if that fails, add where it is."""
    try:
        return read_node(module, operator, values)
    except HtvmError as error:
        raise IntegerFormError(
            error.what,
            where=", ".join(
                part for part in (f"variable '{operator.var.name}'", error.where) if part
            ),
            hint=error.hint or _HINT,
        ) from error


def _check_arithmetic(node: Node) -> None:
    """Check that nothing is undefined in C or wraps when cast to the output's type."""
    layer = None if isinstance(node.layer, Rows) else node.layer
    where = f"operator '{node.name}'"
    requant = layer.requant if layer is not None else getattr(node.op, "requant", None)
    clip = layer.clip if layer is not None else getattr(node.op, "clip", None)
    if clip is not None and node.output_dtype != "float32":
        limits = np.iinfo(node.output_dtype)
        if not isinstance(clip, tuple) or not limits.min <= clip[0] <= clip[1] <= limits.max:
            hint = f"stay inside {node.output_dtype}"
            raise IntegerFormError(f"a clip to {clip}", where=where, hint=hint)
    if isinstance(requant, Shift | MulShift):
        shifts = (requant.shift,) if isinstance(requant, Shift) else requant.shift
        if any(not 0 <= shift <= 31 for shift in shifts):
            raise IntegerFormError(f"shifts {shifts}", where=where, hint="use 0 to 31")
    if isinstance(layer, Weighted) and layer.bias is not None:
        types = (str(layer.weight.dtype), str(layer.bias.dtype))
        if types[0] not in ("int8", "int16") or types[1] != "int32":
            raise IntegerFormError(
                f"weights of type {types[0]} and biases of type {types[1]}",
                where=where,
                hint="use int8 (on a host also int16) and int32",
            )


def _check_names(operator: OperatorBindings, values: dict[Var, Expr]) -> None:
    name = name_of(operator.value)
    for part in operator.parts:
        if name_of(values[part]) != name:
            raise IntegerFormError(
                f"it belongs to '{name_of(values[part])}' but is a part of '{name}'",
                where=f"variable '{part.name}'",
            )


def _claim(operator: OperatorBindings, owners: dict[Var, OperatorBindings]) -> None:
    for part in operator.parts:
        if part in owners:
            raise IntegerFormError(
                "an inner value is used by two operators",
                where=f"variable '{part.name}', in '{owners[part].var.name}' and "
                f"'{operator.var.name}'",
                hint="give each operator a name of its own, and inner values of its own",
            )
        owners[part] = operator


def _check_unclaimed(values: dict[Var, Expr], owners: dict[Var, OperatorBindings]) -> None:
    for var, value in values.items():
        if var not in owners and not isinstance(value, relax.Var):
            raise IntegerFormError(
                "a value that no operator uses", where=f"variable '{var.name}'", hint="remove it"
            )
