"""Reading a module in the integer form: one typed `Node` per operator, in execution order.

`patterns.reading.walk` finds which bindings belong together, `patterns.reading.walk`
determines the operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tvm import relax

from byoc_dory.errors import IntegerFormError
from patterns.names import located, name_of, tensor_name
from patterns.primitive import type_of
from patterns.reading.building import finished
from patterns.reading.graph import Graph
from patterns.reading.node import Node, node_of
from patterns.reading.walk import (
    OperatorBindings,
    bindings_of,
    main_of,
    operators,
    recognised,
    resolved,
    results_of,
)

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Var


def graph_of(module: IRModule) -> Graph:
    """Return the graph of a module.

    Raises:
        IntegerFormError: an operator is not part of the integer form, or carries no name.
    """
    values = dict(bindings_of(main_of(module)))
    return graph_with(module, [read_node(module, each, values) for each in operators(module)])


def graph_with(module: IRModule, nodes: Sequence[Node]) -> Graph:
    """Return the graph of a module whose operators `read_node` has read, in execution order."""
    inputs = [(str(var.name), type_of(var)) for var in main_of(module).params]
    graph = finished(nodes, output_names(module), inputs)
    graph.__dict__["module"] = module  # which need not be written again
    return graph


def output_names(module: IRModule) -> tuple[str, ...]:
    """Return the names of the tensors that ``main`` returns, in order."""
    func = main_of(module)
    values = dict(bindings_of(func))
    return tuple(_name_of_var(var, values) for var in results_of(func, values))


def read_node(module: IRModule, operator: OperatorBindings, values: Mapping[Var, Expr]) -> Node:
    """Read one operator.  Without an own layout it is read as NHWC; `graph_of` infers the layout.

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
    with located(name):
        op = recognised(module, operator.value, values)
    return node_of(name, op, read, type_of(operator.var))


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
