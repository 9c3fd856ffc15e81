"""Reading a module in the integer form: one typed `Node` per operator, in execution order.

An operator ends in the binding of a tensor that other operators read: of any type but int32, or
int32 where nothing of the same operator reads it.  What lies between it and the tensors it reads,
all of it int32, belongs to it.

To add an operator that is a PrimFunc, give its file a table ``PRIMITIVES`` (kind of the PrimFunc ->
kind of the operator) and enter the file in `_ROOMS`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm import relax

from byoc_dory.errors import IntegerFormError
from byoc_dory.layer import Layer, Requant
from patterns import (
    arithmetic,
    floats,
    integer,
    integer_activation,
    integer_norm,
    integer_softmax,
    movement,
    onnx_arithmetic,
    onnx_softmax,
    pool,
    real,
    real_functions,
    real_maps,
    rescale,
    softmax,
    table_map,
)
from patterns.analog import analog_patterns, read_analog_conv2d, read_analog_dense
from patterns.conv import conv2d_pattern, conv2d_sums_pattern, is_depthwise, read_conv2d
from patterns.elementwise import (
    add_pattern,
    convert_pattern,
    read_add,
    read_onnx_add,
    read_tflite_add,
    tflite_add_pattern,
)
from patterns.gemm import dense_pattern, dense_sums_pattern, read_dense
from patterns.layout import with_layouts
from patterns.match import find
from patterns.names import name_of, tensor_name
from patterns.primitive import dtype_of, kind_of, parameters_of, shape_of
from patterns.ranges import with_ranges
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
    "kind_of_operator",
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
            ``max_pool``, ``softmax``, ``reshape``, ``pad``, ``linear`` (a product with a constant
            matrix, of several rows), ``conv2d_sums`` and ``linear_sums`` (without requantization:
            int32), or what another file of this package lists.
        inputs: names of the tensors it reads: inputs of the model or names of other nodes.
        output: name of the tensor it computes, equal to ``name``.
        input_shapes, output_shape: in the source's layout, batch included, in elements.
        input_dtypes, output_dtype: numpy names of the element types.
        layer: for ``conv2d``, ``depthwise``, ``dense`` and ``add``.
        attrs: what a layer does not tell, or for kinds without layer everything:
            ``add`` in TFLite's arithmetic: ``multipliers``, ``shifts``, ``zero_points`` (first
            operand, second, output), ``clip``; ``convert``: ``offset``, ``requant``, ``clip``,
            ``input_dtype``, ``output_dtype``;
            pools: ``kernel``, ``strides``, ``padding`` (top, left, bottom, right), ``layout``, and
            of the average ``clip``; ``softmax``: ``multiplier``, ``left_shift`` of the input's
            scale; ``reshape``: ``shape``; ``pad``: ``padding``, ``value``, ``layout``; others: the
            parameters of their PrimFunc.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    output: str
    input_shapes: tuple[tuple[int, ...], ...]
    output_shape: tuple[int, ...]
    layer: Layer | None = None
    attrs: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    input_dtypes: tuple[str, ...] = ("int8",)
    output_dtype: str = "int8"


@dataclass(frozen=True, eq=False)
class Operator:
    """The bindings that make up one operator.

    Attributes:
        var: the tensor it computes.
        value: what it is bound to.
        parts: the variables bound inside, ``var`` last.
        inputs: the variables read, each once, in order of first use.
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


def operators(module: IRModule) -> tuple[Operator, ...]:
    """The operators of ``main``, in execution order, whatever they are."""
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
        found.append(Operator(var, value, tuple(parts), tuple(inputs)))
    return tuple(found)


def _inner(module: IRModule, func: Function, values: Mapping[Var, Expr]) -> set[Var]:
    """The variables inside operators: int32, or a part of what the operator reads."""
    readers: dict[Var, set[str | None]] = {}
    for value in values.values():
        for used in _variables(value) if not isinstance(value, relax.Var) else ():
            readers.setdefault(_resolved(used, values), set()).add(name_of(value))
    returned = {_resolved(var, values) for var in _outputs(func.body.body, values)}
    found = set()
    for var, value in values.items():
        if isinstance(value, relax.Var) or not (dtype_of(var) == "int32" or _is_slice(value)):
            continue
        name = name_of(value)
        if name is None and _is_slice(value):
            ends = True
        elif name is None:  # somebody else's module: what other operators read cannot be told
            ends = var in returned or kind_of(module, value) in _PRIMITIVES
        else:
            ends = (var in returned or var in readers) and name not in readers.get(var, ())
        if not ends:
            found.add(var)
    return found


def _is_slice(value: Expr) -> bool:
    """Whether it is a part of a tensor, as the passes of an operator over its channels read it."""
    return str(getattr(value.op, "name", "")) == "relax.strided_slice"


def _collect(
    var: Var,
    values: Mapping[Var, Expr],
    inner: Collection[Var],
    parts: list[Var],
    inputs: list[Var],
) -> None:
    """Add ``var`` after everything inner it is made of."""
    for used in _variables(values[var]):
        used = _resolved(used, values)
        if used in inner:
            if used not in parts:
                _collect(used, values, inner, parts, inputs)
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
    nodes = [read_node(module, operator, values) for operator in operators(module)]
    return with_ranges(with_layouts(nodes))


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
    """One operator.  What does not say its layout is read as NHWC; `read_graph` knows better.

    Args:
        module: the module it is in.
        operator: as `operators` finds it.
        values: all bindings of ``main``.

    Raises:
        IntegerFormError: if it is none of the integer form, or carries no name.
    """
    name = _required_name(operator)
    kind, slots = _recognised(module, operator.value, values)
    layer, attrs = _layer_and_attrs(module, kind, operator.value, slots)
    inputs = _operands(operator, layer)
    return Node(
        name=name,
        kind=kind,
        inputs=tuple(_name_of_var(var, values) for var in inputs),
        output=name,
        input_shapes=tuple(shape_of(var) for var in inputs),
        output_shape=shape_of(operator.var),
        layer=layer,
        attrs=attrs,
        input_dtypes=tuple(dtype_of(var) for var in inputs),
        output_dtype=dtype_of(operator.var),
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


def _operands(operator: Operator, layer: Layer | None) -> tuple[Var, ...]:
    # An add of a tensor to itself reads one variable twice.
    if layer is not None and len(layer.inputs) == 2 and len(operator.inputs) == 1:
        return operator.inputs * 2
    return operator.inputs


def kind_of_operator(module: IRModule, operator: Operator) -> str:
    """The kind of an operator, which need not carry a name.

    Raises:
        IntegerFormError: if it is none of the integer form.
    """
    kind, _ = _recognised(module, operator.value, dict(bindings_of(main_of(module))))
    return kind


def _recognised(
    module: IRModule, value: Expr, values: Mapping[Var, Expr]
) -> tuple[str, dict[str, Expr]]:
    """Kind of the operator that ends in ``value``, and what its pattern matched."""
    if isinstance(value, relax.Call):
        primitive = kind_of(module, value)
        if primitive is not None and primitive in _PRIMITIVES:
            is_sum = primitive in ("tflite_add", "onnx_add")
            slots = find(_TFLITE_ADD, value, values) if is_sum else {}
            if slots is not None:
                return _PRIMITIVES[primitive], slots
        operation = str(getattr(value.op, "name", ""))
        if operation in _SIMPLE:
            return _SIMPLE[operation], {}
        if operation in ("relax.astype", "relax.add"):
            for match in _MATCHES if operation == "relax.astype" else _SUMS:
                slots = find(match, value, values)
                if slots is not None:
                    return _refined(match.kind, slots), slots
    raise IntegerFormError(
        "not an operator of the integer form",
        where=f"value '{_brief(value)}'",
        hint="write operators with the builders of the package 'patterns'",
    )


def _refined(kind: str, slots: Mapping[str, Expr]) -> str:
    if "adc0" in slots:
        return kind
    if kind == "conv2d" and is_depthwise(slots["conv"]):
        return "depthwise"
    if kind == "dense" and shape_of(slots["matmul"])[:-1] != (1,):
        return "linear"
    return kind


def _brief(value: Any) -> str:
    if isinstance(value, relax.Call):
        return str(getattr(value.op, "name", getattr(value.op, "name_hint", value.op)))
    return type(value).__name__


def _layer_and_attrs(
    module: IRModule, kind: str, value: Expr, slots: Mapping[str, Expr]
) -> tuple[Layer | None, dict[str, Attribute]]:
    """What a node of that kind carries."""
    attrs: dict[str, Attribute] = dict(parameters_of(module, value))
    if "adc0" in slots:
        return (read_analog_dense if kind == "dense" else read_analog_conv2d)(slots), {}
    if kind in ("conv2d", "depthwise"):
        return read_conv2d(slots), {}
    if kind == "dense":
        return read_dense(slots), {}
    if kind == "add":
        if kind_of(module, value) == "onnx_add":
            return read_onnx_add(slots, attrs), attrs
        return (read_tflite_add(slots, attrs) if attrs else read_add(slots)), attrs
    if kind == "convert":
        attrs = {
            "offset": int(slots["offset"].value.numpy()),
            "requant": read_requantize(slots),
            "clip": read_clip(slots),
            "input_dtype": dtype_of(slots["x"]),
            "output_dtype": dtype_of(value),
        }
    elif kind == "linear":
        attrs = {"requant": read_requantize(slots), "clip": read_clip(slots)}
    elif kind == "reshape":
        attrs = {"shape": shape_of(value)}
    elif kind == "pad":
        attrs = _pad(value)
    elif kind == "max_pool":
        attrs = _max_pool(value)
    elif kind == "table":
        attrs |= table_map.read_table_map(value)
    elif kind in ("tflite_binary", "onnx_binary"):
        attrs |= arithmetic.read_binary(value)
    return None, attrs


def _pad(value: Call) -> dict[str, Attribute]:
    widths = [int(width) for width in value.attrs.pad_width]
    if str(value.attrs.pad_mode) != "constant":
        raise IntegerFormError(f"a padding in mode {value.attrs.pad_mode}")
    layout = "NHWC" if not any(widths[6:]) else "NCHW"
    spatial = widths[2:6] if layout == "NHWC" else widths[4:8]
    if len(widths) != 8 or sum(spatial) != sum(widths):
        raise IntegerFormError(f"a padding of {widths}", hint="pad height and width only")
    top, bottom, left, right = spatial
    fill = int(value.attrs.pad_value)
    return {"padding": (top, left, bottom, right), "value": fill, "layout": layout}


def _max_pool(value: Call) -> dict[str, Attribute]:
    def integers(values: Any) -> tuple[int, ...]:
        return tuple(int(item) for item in values)

    attrs = value.attrs
    if integers(attrs.dilation) != (1, 1) or attrs.ceil_mode:
        raise IntegerFormError("a maximum pool with dilation or ceil_mode")
    return {
        "kernel": integers(attrs.pool_size),
        "strides": integers(attrs.strides),
        "padding": integers(attrs.padding),
        "layout": str(attrs.layout),
    }


_MATCHES = (
    conv2d_pattern(),
    dense_pattern(),
    add_pattern(),
    convert_pattern(),
    *analog_patterns("conv2d"),
    *analog_patterns("dense"),
)
_SUMS = (conv2d_sums_pattern(), dense_sums_pattern())
_TFLITE_ADD = tflite_add_pattern()
_ROOMS: tuple[Mapping[str, str], ...] = (
    arithmetic.PRIMITIVES,
    floats.PRIMITIVES,
    movement.PRIMITIVES,
    onnx_arithmetic.PRIMITIVES,
    onnx_softmax.PRIMITIVES,
    pool.PRIMITIVES,
    integer.PRIMITIVES,
    integer_activation.PRIMITIVES,
    integer_norm.PRIMITIVES,
    integer_softmax.PRIMITIVES,
    real.PRIMITIVES,
    real_functions.PRIMITIVES,
    real_maps.PRIMITIVES,
    rescale.PRIMITIVES,
    softmax.PRIMITIVES,
    table_map.PRIMITIVES,
)
_PRIMITIVES: Mapping[str, str] = {
    "tflite_add": "add",
    **{kind: operator for room in _ROOMS for kind, operator in room.items()},
}
_SIMPLE = {
    "relax.nn.max_pool2d": "max_pool",
    "relax.nn.pad": "pad",
    "relax.reshape": "reshape",
}
