"""Reading a module in the integer form: one typed `Node` per operator, in execution order.

An operator ends in a binding of an 8-bit tensor.  What lies between it and the 8-bit tensors it
reads, all of it int32, belongs to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm import relax

from byoc_dory.errors import IntegerFormError
from byoc_dory.layer import Layer, Requant
from patterns.conv import conv2d_pattern, read_conv2d
from patterns.elementwise import (
    add_pattern,
    convert_pattern,
    read_add,
    read_tflite_add,
    tflite_add_pattern,
)
from patterns.gemm import dense_pattern, read_dense
from patterns.match import find
from patterns.names import name_of, tensor_name
from patterns.primitive import kind_of, parameters_of, shape_of
from patterns.requantize import read_clip, read_requantize

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Call, Expr, Function, Var

__all__ = [
    "Attribute",
    "Node",
    "Operator",
    "bindings_of",
    "dtype_of",
    "main_of",
    "operators",
    "output_names",
    "read_graph",
    "read_node",
]

Attribute: TypeAlias = "int | str | tuple[int, ...] | Requant"


@dataclass(frozen=True, eq=False)
class Node:
    """An operator of the integer form.

    Attributes:
        name: unique in the module; also the name of the tensor it computes.
        kind: ``conv2d``, ``depthwise``, ``dense``, ``add``, ``convert``, ``average_pool``,
            ``max_pool``, ``softmax``, ``reshape`` or ``pad``.
        inputs: names of the tensors it reads: inputs of the model or names of other nodes.
        output: name of the tensor it computes, equal to ``name``.
        input_shapes, output_shape: in the source's layout, batch included, in elements.
        layer: for ``conv2d``, ``depthwise``, ``dense`` and ``add``.
        attrs: what a layer does not tell, or for kinds without layer everything:
            ``add`` in TFLite's arithmetic: ``multipliers``, ``shifts``, ``zero_points`` (first
            operand, second, output), ``clip``; ``convert``: ``offset``, ``requant``, ``clip``;
            pools: ``kernel``, ``strides``, ``padding`` (top, left, bottom, right), ``layout``, and
            of the average ``clip``; ``softmax``: ``multiplier``, ``left_shift`` of the input's
            scale; ``reshape``: ``shape``; ``pad``: ``padding``, ``value``, ``layout``.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    output: str
    input_shapes: tuple[tuple[int, ...], ...]
    output_shape: tuple[int, ...]
    layer: Layer | None = None
    attrs: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])


@dataclass(frozen=True, eq=False)
class Operator:
    """The bindings that make up one operator.

    Attributes:
        var: the 8-bit tensor.
        value: what it is bound to.
        parts: the variables bound inside, ``var`` last.
        inputs: the 8-bit variables read, each once, in order of first use.
    """

    var: Var
    value: Expr
    parts: tuple[Var, ...]
    inputs: tuple[Var, ...]


# ------------------------------------------------------------------------------ walking


def main_of(module: IRModule) -> Function:
    """The function ``main``.

    Raises:
        IntegerFormError: if there is none.
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
    """All (variable, value) pairs in execution order.

    Raises:
        IntegerFormError: if a binding is not a plain one.
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


def dtype_of(expr: Expr) -> str:
    """The element type of a tensor, or ``""`` if the expression is none."""
    return str(expr.ty.dtype) if isinstance(expr.ty, relax.TensorType) else ""


def operators(module: IRModule) -> tuple[Operator, ...]:
    """The operators of ``main``, in execution order, whatever they are."""
    func = main_of(module)
    values: dict[Var, Expr] = {}
    found = []
    for var, value in bindings_of(func):
        values[var] = value
        if isinstance(value, relax.Var) or dtype_of(var) == "int32":
            continue
        parts: list[Var] = []
        inputs: list[Var] = []
        _collect(var, values, parts, inputs)
        found.append(Operator(var, value, tuple(parts), tuple(inputs)))
    return tuple(found)


def _collect(var: Var, values: Mapping[Var, Expr], parts: list[Var], inputs: list[Var]) -> None:
    """Add ``var`` after everything int32 it is made of."""
    for used in _variables(values[var]):
        used = _resolved(used, values)
        if dtype_of(used) == "int32" and used in values:
            if used not in parts:
                _collect(used, values, parts, inputs)
        elif used not in inputs:
            inputs.append(used)
    parts.append(var)


def _resolved(var: Var, values: Mapping[Var, Expr]) -> Var:
    while isinstance(values.get(var), relax.Var):
        var = values[var]
    return var


def _variables(value: Expr) -> Iterator[Var]:
    if isinstance(value, relax.Var):
        yield value
    elif isinstance(value, relax.Tuple):
        for item in value.fields:
            yield from _variables(item)
    elif isinstance(value, relax.TupleGetItem):
        yield from _variables(value.tuple_value)
    elif isinstance(value, relax.Call):
        for item in value.args:
            yield from _variables(item)


# ------------------------------------------------------------------------------ reading


def read_graph(module: IRModule) -> tuple[Node, ...]:
    """The operators of ``main``, in execution order.

    Raises:
        IntegerFormError: if an operator is none of the integer form, or carries no name.
    """
    values = dict(bindings_of(main_of(module)))
    return tuple(read_node(module, operator, values) for operator in operators(module))


def output_names(module: IRModule) -> tuple[str, ...]:
    """Names of the tensors ``main`` returns, in order."""
    func = main_of(module)
    values = dict(bindings_of(func))
    return tuple(
        _name_of_var(_resolved(var, values), values) for var in _outputs(func.body.body, values)
    )


def _outputs(expr: Expr, values: Mapping[Var, Expr]) -> Iterator[Var]:
    if isinstance(expr, relax.Tuple):
        for item in expr.fields:
            yield from _outputs(item, values)
    elif isinstance(values.get(expr), relax.Tuple):
        yield from _outputs(values[expr], values)
    else:
        yield expr


def read_node(module: IRModule, operator: Operator, values: Mapping[Var, Expr]) -> Node:
    """One operator.

    Args:
        module: the module it is in.
        operator: as `operators` finds it.
        values: all bindings of ``main``.

    Raises:
        IntegerFormError: if it is none of the integer form, or carries no name.
    """
    value = operator.value
    kind, layer, attrs = _classify(module, value, values)
    name = _required_name(operator)
    inputs = _ordered_inputs(operator, layer, values)
    return Node(
        name=name,
        kind=kind,
        inputs=tuple(_name_of_var(var, values) for var in inputs),
        output=name,
        input_shapes=tuple(shape_of(var) for var in inputs),
        output_shape=shape_of(operator.var),
        layer=layer,
        attrs=attrs,
    )


def _required_name(operator: Operator) -> str:
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


def _ordered_inputs(
    operator: Operator, layer: Layer | None, values: Mapping[Var, Expr]
) -> tuple[Var, ...]:
    # An add of a tensor to itself reads one variable twice.
    if layer is not None and len(layer.inputs) == 2 and len(operator.inputs) == 1:
        return operator.inputs * 2
    return operator.inputs


_Class: TypeAlias = "tuple[str, Layer | None, dict[str, Attribute]]"


def _classify(module: IRModule, value: Expr, values: Mapping[Var, Expr]) -> _Class:
    """Kind, layer and attributes of the operator that ends in ``value``."""
    if isinstance(value, relax.Call):
        if kind_of(module, value) is not None:
            return _primitive(module, value, values)
        operation = str(getattr(value.op, "name", ""))
        if operation == "relax.astype":
            found = _requantized(value, values)
            if found is not None:
                return found
        if operation in _SIMPLE:
            return _SIMPLE[operation](value)
    raise IntegerFormError(
        "not an operator of the integer form",
        where=f"value '{_brief(value)}'",
        hint="write operators with the builders of the package 'patterns'",
    )


def _brief(value: Any) -> str:
    if isinstance(value, relax.Call):
        return str(getattr(value.op, "name", getattr(value.op, "name_hint", value.op)))
    return type(value).__name__


def _requantized(value: Expr, values: Mapping[Var, Expr]) -> _Class | None:
    if slots := find(_CONV2D, value, values):
        layer = read_conv2d(slots)
        return layer.op, layer, {}
    if slots := find(_DENSE, value, values):
        return "dense", read_dense(slots), {}
    if slots := find(_ADD, value, values):
        return "add", read_add(slots), {}
    if slots := find(_CONVERT, value, values):
        attrs: dict[str, Attribute] = {
            "offset": int(slots["offset"].value.numpy()),
            "requant": read_requantize(slots),
            "clip": read_clip(slots),
        }
        return "convert", None, attrs
    return None


def _primitive(module: IRModule, value: Expr, values: Mapping[Var, Expr]) -> _Class:
    kind = kind_of(module, value)
    attrs: dict[str, Attribute] = dict(parameters_of(module, value))
    if kind == "tflite_add":
        slots = find(_TFLITE_ADD, value, values)
        if slots is not None:
            return "add", read_tflite_add(slots, attrs), attrs
    if kind == "average_pool2d":
        return "average_pool", None, attrs
    if kind == "tflite_softmax":
        return "softmax", None, attrs
    raise IntegerFormError(
        f"the PrimFunc '{value.args[0].name_hint}' does not end an operator",
        where=f"kind '{kind}'",
    )


def _reshape(value: Call) -> _Class:
    return "reshape", None, {"shape": shape_of(value)}


def _pad(value: Call) -> _Class:
    widths = [int(width) for width in value.attrs.pad_width]
    if len(widths) != 8 or any(widths[:2]) or str(value.attrs.pad_mode) != "constant":
        raise IntegerFormError(f"a padding of {widths} in mode {value.attrs.pad_mode}")
    layout = "NCHW" if any(widths[6:]) else "NHWC"
    if any(widths[2:4]) and layout == "NCHW":
        raise IntegerFormError(f"a padding of {widths}", hint="pad two neighbouring axes only")
    top, bottom, left, right = widths[4:] if layout == "NCHW" else widths[2:6]
    fill = int(value.attrs.pad_value)
    return "pad", None, {"padding": (top, left, bottom, right), "value": fill, "layout": layout}


def _max_pool(value: Call) -> _Class:
    def pair(values: Any) -> tuple[int, ...]:
        return tuple(int(item) for item in values)

    attrs = value.attrs
    if pair(attrs.dilation) != (1, 1) or attrs.ceil_mode:
        raise IntegerFormError("a maximum pool with dilation or ceil_mode")
    return (
        "max_pool",
        None,
        {
            "kernel": pair(attrs.pool_size),
            "strides": pair(attrs.strides),
            "padding": pair(attrs.padding),
            "layout": str(attrs.layout),
        },
    )


_CONV2D, _DENSE, _ADD, _CONVERT = (
    conv2d_pattern(),
    dense_pattern(),
    add_pattern(),
    convert_pattern(),
)
_TFLITE_ADD = tflite_add_pattern()
_SIMPLE = {"relax.reshape": _reshape, "relax.nn.pad": _pad, "relax.nn.max_pool2d": _max_pool}
