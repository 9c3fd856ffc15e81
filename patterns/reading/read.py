"""Reading a module in the integer form: one typed `Node` per operator, in execution order.

`patterns.reading.walk` finds which bindings belong together, `patterns.reading.recognise`
determines the operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tvm import relax

from byoc_dory.errors import HtvmError, IntegerFormError
from patterns.names import name_of, tensor_name
from patterns.primitive import dtype_of
from patterns.primitive_op import type_of
from patterns.reading.graph import Graph
from patterns.reading.layout import with_layouts
from patterns.reading.node import Node
from patterns.reading.ranges import with_ranges
from patterns.reading.recognise import recognised
from patterns.reading.walk import (
    OperatorBindings,
    bindings_of,
    main_of,
    operators,
    resolved,
    results_of,
)

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Var

__all__ = [
    "Node",
    "OperatorBindings",
    "bindings_of",
    "dtype_of",
    "graph_of",
    "kind_of_operator",
    "main_of",
    "operators",
    "output_names",
    "read_graph",
    "read_node",
]


def read_graph(module: IRModule) -> tuple[Node, ...]:
    """Return the operators of ``main``, in execution order.

    Raises:
        IntegerFormError: an operator is not part of the integer form, or carries no name.
    """
    values = dict(bindings_of(main_of(module)))
    nodes = [read_node(module, operator, values) for operator in operators(module)]
    return with_ranges(with_layouts(nodes))


def graph_of(module: IRModule) -> Graph:
    """Return the operators of ``main`` and the names of its results.

    Stages pass this on with the module, so that none has to read the module again.

    Raises:
        IntegerFormError: an operator is not part of the integer form, or carries no name.
    """
    return Graph(read_graph(module), output_names(module))


def output_names(module: IRModule) -> tuple[str, ...]:
    """Return the names of the tensors that ``main`` returns, in order."""
    func = main_of(module)
    values = dict(bindings_of(func))
    return tuple(_name_of_var(var, values) for var in results_of(func, values))


def read_node(module: IRModule, operator: OperatorBindings, values: Mapping[Var, Expr]) -> Node:
    """Read one operator.  Without an own layout it is read as NHWC; `read_graph` infers the layout.

    Args:
        module: the module that contains it.
        operator: an operator found by `operators`.
        values: all bindings of ``main``.

    Raises:
        IntegerFormError: it is not part of the integer form, or carries no name.
    """
    name = _required_name(operator)
    variables = _read_variables(operator, values)
    read = [(_name_of_var(var, values), type_of(var)) for var in variables]
    output = type_of(operator.var)
    try:
        op = recognised(module, operator.value, values)
        layer = op.layer(name, read, output)
    except HtvmError as error:
        where = error.where or f"operator '{name}'"
        raise type(error)(error.what, where=where, hint=error.hint) from error
    if layer is not None and len(layer.inputs) == 2 and len(read) == 1:
        read *= 2  # a tensor added to itself
    return Node(
        name=name,
        op=op,
        inputs=tuple(tensor for tensor, _ in read),
        output=name,
        input_shapes=tuple(kind.shape for _, kind in read),
        output_shape=output.shape,
        layer=layer,
        input_dtypes=tuple(kind.dtype for _, kind in read),
        output_dtype=output.dtype,
    )


def _read_variables(operator: OperatorBindings, values: Mapping[Var, Expr]) -> tuple[Var, ...]:
    """Return the tensors that an operator reads; those of a call as often as it reads them."""
    value = operator.value
    if isinstance(value, relax.Call) and isinstance(value.args[0], relax.GlobalVar):
        fields = value.args[1].fields
        return tuple(resolved(field, values) for field in fields if isinstance(field, relax.Var))
    return operator.inputs


def _required_name(operator: OperatorBindings) -> str:
    name = name_of(operator.value)
    if name is None:
        raise IntegerFormError(
            "an operator carries no name",
            where=f"variable '{operator.var.name}'",
            hint="load the module with htvm.load, which names its operators",
        )
    return name


def _name_of_var(var: Var, values: Mapping[Var, Expr]) -> str:
    return tensor_name(values[var]) if var in values else str(var.name)


def kind_of_operator(module: IRModule, operator: OperatorBindings) -> str:
    """Return the kind of an operator, which need not carry a name.

    Raises:
        IntegerFormError: it is not part of the integer form.
    """
    return recognised(module, operator.value, dict(bindings_of(main_of(module)))).kind
