"""TVM's legalization and fusion, preserving the layers' names.

Legalizing drops the spans with the operators' names, but keeps the variables.  So every variable of
``main`` is first named after its layer; once the calls are PrimFuncs, each gets its own copy that
tells which layer it computes, and TVM's fusion determines which PrimFuncs end up in one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import GenericConst, TensorLoad
from tvm.relax import op as R
from tvm.tirx.stmt import BufferStore

from byoc_dory.errors import IntegerFormError
from htvm.aot.fixed_point import short_form, widening_add
from htvm.aot.ranges import Interval
from htvm.aot.rewrites import Conversions, in_words
from patterns.names import name_of, with_name
from patterns.primitive import shape_of

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import BlockBuilder, Call, Expr, Function, Var
    from tvm.tirx import PrimFunc

_SEPARATOR = "__of__"
_LAYER, _OPERATOR, _ROLES, _MACS = "htvm.layer", "htvm.operator", "htvm.roles", "htvm.macs"
_CALL_TIR = tvm.ir.Op.get("relax.call_tir")
_ELEMENTWISE, _OPAQUE = 0, 8  # TVM's OpPatternKind: may be fused into its producer; must not
_MOST_FUSED = 64
"""Operators of a kernel: TVM inlines them in quadratic time."""
_MANY = 32
"""Tensors above which an operator is a kernel of its own.

A concatenation of hundreds of branches would else take in dozens of requantizations.
"""


@dataclass(frozen=True)
class FusedGroup:
    """The content of one kernel.

    Attributes:
        layers: names of the layers, in execution order.
        operators: names of the operators, in execution order: ``"conv2d"``, ``"add"``,
            ``"tflite_requantize"`` ...
        roles: roles of its constants (``"weight"``, ``"bias"`` ...), in the order of parameters.
        macs: its multiply-accumulates, where the PrimFunc has more; ``None``: those that it has.
    """

    layers: tuple[str, ...]
    operators: tuple[str, ...]
    roles: tuple[str, ...] = ()
    macs: int | None = None


@dataclass(frozen=True, eq=False)
class Fused:
    """A module whose ``main`` calls fused PrimFuncs.

    Attributes:
        module: its ``main`` only calls PrimFuncs (``call_tir``), external functions
            (``call_dps_packed``) and reshapes.
        groups: groups by the name of the PrimFunc.
    """

    module: IRModule
    groups: dict[str, FusedGroup]


def fuse(
    module: IRModule,
    *,
    rewrite: bool,
    intervals: Mapping[Var, Interval] | None = None,
    words: bool = False,
    narrow: bool = False,
    lanes: bool = False,
    large: bool = False,
) -> Fused:
    """Legalize and fuse the operators outside of regions.

    Args:
        module: module in the integer form; ``main`` may also call external functions (regions).
        rewrite: whether to make the padding of convolutions a separate operator, so that the padded
            tensor lives as briefly as possible and the convolution has no borders, and to write
            requantizations in a shorter form.
        intervals: known intervals of the variables, if the short forms may call the intrinsics of
            ``htvm_intrinsics.h``, which need bounds.
        words: whether convolutions get further channels to make words of four (`in_words`).
        narrow: whether shifts are bytes.
        lanes: whether the core computes four elements at once (`htvm.aot.intrinsics.CoreKernels`).
        large: as `htvm.aot.intrinsics.CoreKernels.large`.

    Raises:
        IntegerFormError: ``main`` is not a single dataflow block.
    """
    macs: dict[str, int] = {}
    found = macs if words else None
    named = _named(module, rewrite, intervals, found, narrow, lanes, large)
    module = _rebuild(module, named)
    module = relax.transform.DeadCodeElimination(["main"])(module)
    with tvm.target.Target("c"):
        module = relax.transform.LegalizeOps(skip_ops=["relax.reshape"])(module)
        module = _own_copies(relax.transform.AnnotateTIROpPattern()(module), macs)
        with tvm.transform.PassContext(config={"relax.FuseOps.max_depth": _MOST_FUSED}):
            module = relax.transform.FuseOps()(module)
        groups = _describe_groups(module)
        module = relax.transform.FuseTIR()(module)
        module = relax.transform.DeadCodeElimination(["main"])(module)
    return Fused(module, groups)


# ------------------------------------------------------------------------------ names


def _rebuild(module: IRModule, emit: Callable[[BlockBuilder, Call, Var], Expr]) -> IRModule:
    """Rewrite ``main``: ``emit(builder, call, old variable)`` binds the replacement of a call."""
    main = module["main"]
    blocks = main.body.blocks
    # No block: the results are inputs.
    if len(blocks) > 1 or not all(isinstance(block, relax.DataflowBlock) for block in blocks):
        raise IntegerFormError(
            f"'main' has {len(blocks)} blocks",
            where="CPU compilation",
            hint="the integer form is a single dataflow block",
        )
    others = {var: func for var, func in module.functions.items() if var.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others, attrs=module.attrs))
    mapping: dict[Var, Expr] = {}
    with builder.function("main", list(main.params)):
        with builder.dataflow():
            for binding in (binding for block in blocks for binding in block.bindings):
                value = _substitute(binding.value, mapping)
                if isinstance(value, relax.Call):
                    value = emit(builder, value, binding.var)
                elif not isinstance(value, relax.Var):
                    value = builder.emit(value)
                mapping[binding.var] = value
            result = builder.emit_output(_substitute(main.body.body, mapping))
        builder.emit_func_output(result)
    return builder.finalize()


def _substitute(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    if isinstance(expr, relax.Var):
        return mapping.get(expr, expr)
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([_substitute(field, mapping) for field in expr.fields])
    if isinstance(expr, relax.TupleGetItem):
        return relax.TupleGetItem(_substitute(expr.tuple_value, mapping), expr.index)
    if isinstance(expr, relax.Call):
        args = [_substitute(arg, mapping) for arg in expr.args]
        return relax.Call(expr.op, args, expr.attrs, expr.ty_args, expr.span)
    return expr


def _named(
    module: IRModule,
    rewrite: bool,
    intervals: Mapping[Var, Interval] | None,
    macs: dict[str, int] | None,
    narrow: bool,
    lanes: bool,
    large: bool,
) -> Callable[[BlockBuilder, Call, Var], Expr]:
    """Name each variable after layer and operator, which legalization preserves.

    ``macs`` receives the multiply-accumulates of convolutions that get further channels; ``None``
    if none gets any.
    """
    numbers = count()
    widened: dict[Var, Expr] = {}
    bounds: dict[Var, int] = {}
    pads: dict[Var, Call] = {}
    conversions = Conversions.of(module) if rewrite else None

    def label(layer: str, operator: str) -> str:
        return _SEPARATOR.join((layer, operator, str(next(numbers))))

    def emit(builder: BlockBuilder, call: Call, old: Var) -> Expr:
        operator = str(getattr(call.op, "name", "call")).rsplit(".", 1)[-1]
        layer = name_of(call) or str(old.name)
        words = None
        found = conversions.rewritten(builder, call, old) if conversions is not None else None
        if found is not None:
            call, operator = found, "table"
        elif operator == "conv2d":
            operator = _kind_of_convolution(call)
            if rewrite and any(int(size) for size in call.attrs.padding):
                padding = _padding(call, layer)
                padded = builder.emit(padding, label(layer, "pad"))
                pads[padded] = padding
                call = _without_padding(call, padded, call.args[1], layer)
            words = None if macs is None else in_words(call, pads.get(call.args[0]), layer)
            if words is not None:
                # What it pads is no longer padded before, if nobody else reads that.
                padded = builder.emit(words.padding, label(words.layer, "pad"))
                call = _without_padding(call, padded, words.weight, layer)
        elif rewrite:
            simd = intervals is not None
            call = short_form(builder, module, call, bounds, simd, narrow, lanes, large)
            if operator == "add" and all(arg in widened for arg in call.args):
                call = _narrow_add(builder, [widened[arg] for arg in call.args], call, layer)
        labelled = label(layer, operator)
        var = builder.emit(call, labelled)
        if words is not None and macs is not None:
            macs[labelled] = words.channels * prod(shape_of(words.weight)[:2]) * prod(shape_of(var))
        if intervals is not None and old in intervals:
            bounds[var] = intervals[old].magnitude
        if operator == "pad":
            pads[var] = call
        if operator == "astype" and str(call.args[0].ty.dtype.dtype) == "int8":
            widened[var] = call.args[0]
        return var

    return emit


def layer_of(label: str) -> str:
    """Return the layer that a variable is named after."""
    return label.rsplit(_SEPARATOR, 2)[0]


def _kind_of_convolution(call: Call) -> str:
    if int(call.attrs.groups) > 1:
        return "depthwise"
    return "conv2d" if all(int(step) == 1 for step in call.attrs.dilation) else "dilated_conv2d"


def _narrow_add(builder: BlockBuilder, operands: list[Expr], call: Call, layer: str) -> Call:
    """Return the sum of two int8 tensors as one operator.

    TVM would fuse the cast of an operand into the kernel that computes it, whose output would then
    take four times the memory.
    """
    shape = shape_of(operands[0])
    if shape_of(operands[1]) != shape:
        return call
    callee = builder.add_func(widening_add(shape).with_attr("htvm.kind", "add"), "add")
    return with_name(relax.call_tir(callee, operands, relax.TensorType(shape, "int32")), layer)


def _padding(call: Call, layer: str) -> Call:
    """Return the padding of a convolution as an operator."""
    top, left, bottom, right = (int(size) for size in call.attrs.padding)
    widths = [0, 0, top, bottom, left, right, 0, 0]
    if str(call.attrs.data_layout) == "NCHW":
        widths = [0, 0, 0, 0, top, bottom, left, right]
    return with_name(R.nn.pad(call.args[0], widths, "constant", 0), layer)


def _without_padding(call: Call, padded: Expr, weight: Expr, layer: str) -> Call:
    names = ("strides", "dilation", "groups", "data_layout", "kernel_layout", "out_dtype")
    attrs = {name: getattr(call.attrs, name) for name in names}
    return with_name(R.nn.conv2d(padded, weight, padding=0, **attrs), layer)


# ------------------------------------------------------------------------------ fusion


def _own_copies(module: IRModule, macs: Mapping[str, int]) -> IRModule:
    """Give every call of a PrimFunc its own copy, which tells its layer and operator."""

    def emit(builder: BlockBuilder, call: Call, old: Var) -> Expr:
        name = str(old.name)
        callee = call.args[0] if call.op == _CALL_TIR else None
        if callee is not None and _SEPARATOR in name:
            layer, operator, _ = name.rsplit(_SEPARATOR, 2)
            func, args = _without_unread(module[callee], call.args[1])
            kind = str(func.attrs.get("htvm.kind", operator))
            roles = _roles(func, operator, args)
            func = func.with_attr(_LAYER, layer).with_attr(_OPERATOR, kind)
            func = func.with_attr(_ROLES, roles)
            if name in macs:
                func = func.with_attr(_MACS, macs[name])
            if kind == "pad" or len(args) > _MANY:
                func = func.with_attr("op_pattern", _OPAQUE)
            elif _narrows_sums(func, args):
                func = func.with_attr("op_pattern", _ELEMENTWISE)
            copy, rest = builder.add_func(func, f"{layer}_{kind}"), call.args[2:]
            operands = [copy, relax.Tuple(args), *rest]
            call = relax.Call(call.op, operands, call.attrs, call.ty_args, call.span)
        return builder.emit(call, name)

    return _rebuild(module, emit)


def _without_unread(func: PrimFunc, args: Sequence[Expr]) -> tuple[PrimFunc, list[Expr]]:
    """Drop constants that a PrimFunc does not read, such as shifts that are one number in it."""
    used = tirx.analysis.undefined_vars(func.body, [])
    unread = {
        at
        for at, arg in enumerate(args)
        if isinstance(arg, GenericConst) and not any(map(func.params[at].same_as, used))
    }
    if not unread:
        return func, list(args)
    kept = [buffer for at, buffer in enumerate(func.params) if at not in unread]
    func = tirx.PrimFunc(kept, func.body, attrs=func.attrs)
    return func, [arg for at, arg in enumerate(args) if at not in unread]


def _narrows_sums(func: PrimFunc, args: Sequence[Expr]) -> bool:
    """Whether a PrimFunc is element-wise in int32 tensors, whichever constants it reads.

    TVM sees that only where constants are indexed like the tensors, and would else have the sums
    that the PrimFunc follows written to memory.
    """
    constants = [isinstance(arg, GenericConst) for arg in args]
    tensors = [
        buffer for buffer, constant in zip(func.params, constants, strict=False) if not constant
    ]
    if not any(str(buffer.ty.dtype) == "int32" for buffer in tensors):
        return False
    stores: list[Any] = []
    loads: list[Any] = []
    tvm_ffi.structural_walk(func.body, (BufferStore, stores.append))
    tvm_ffi.structural_walk(func.body, (TensorLoad, loads.append))
    return len(stores) == 1 and all(
        tvm_ffi.structural_equal(load.indices, stores[0].indices)
        for load in loads
        if any(map(load.source.same_as, tensors))
    )


_ROLES_OF_RELAX: Mapping[str, str] = {
    "conv2d": "weight",
    "depthwise": "weight",
    "dilated_conv2d": "weight",
    "matmul": "weight",
    "add": "bias",
}
"""The constants of Relax's own operators, whose PrimFuncs have parameters without names."""


def _roles(func: PrimFunc, operator: str, args: Sequence[Expr]) -> list[str]:
    """Return the roles of a PrimFunc's constants: the names of the parameters, if it is ours."""
    constants = [at for at, arg in enumerate(args) if isinstance(arg, GenericConst)]
    if "htvm.kind" in func.attrs:
        return [str(func.params[at].name) for at in constants]
    role = _ROLES_OF_RELAX.get(operator)
    if role is not None and len(constants) == 1:
        return [role]
    return [f"constant_{number}" for number in range(len(constants))]


def _describe_groups(module: IRModule) -> dict[str, FusedGroup]:
    """Return the groups that FuseOps made, by the name that the PrimFunc will have."""
    groups = {}
    for var, func in module.functions.items():
        calls = [func] if isinstance(func, tirx.PrimFunc) else _callees(module, func)
        named = [part for part in calls if _LAYER in (part.attrs or {})]
        layers = tuple(dict.fromkeys(str(part.attrs[_LAYER]) for part in named))
        operators = tuple(str(part.attrs[_OPERATOR]) for part in named)
        parts = tuple(str(role) for part in named for role in part.attrs[_ROLES])
        macs = [int(part.attrs[_MACS]) for part in named if _MACS in part.attrs]
        groups[var.name_hint] = FusedGroup(layers, operators, parts, sum(macs) if macs else None)
    return groups


def _callees(module: IRModule, func: Function) -> list[PrimFunc]:
    if not isinstance(func, relax.Function) or func.attrs is None or "Primitive" not in func.attrs:
        return []
    return [
        module[binding.value.args[0]]
        for block in func.body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call) and binding.value.op == _CALL_TIR
    ]
