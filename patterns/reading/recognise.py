"""Which operator a value ends: its kind, and what its pattern matched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tvm import relax

from byoc_dory.errors import IntegerFormError
from patterns.match import find
from patterns.ops.analog import analog_patterns
from patterns.ops.conv import conv2d_pattern, conv2d_sums_pattern, is_depthwise
from patterns.ops.elementwise import add_pattern, convert_pattern, tflite_add_pattern
from patterns.ops.gemm import dense_pattern, dense_sums_pattern
from patterns.primitive import kind_of, parameters_of, shape_of
from patterns.primitive_op import read_primitive
from patterns.reading.kinds import PRIMITIVES, calls, primitives

if TYPE_CHECKING:
    from tvm.ir import IRModule
    from tvm.relax import Expr, Var

    from patterns.op import Op

__all__ = ["operator_of", "recognised"]

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
_SIMPLE = {
    "relax.nn.max_pool2d": "max_pool",
}


def recognised(
    module: IRModule, value: Expr, values: Mapping[Var, Expr]
) -> tuple[str, dict[str, Expr]]:
    """Kind of the operator that ends in ``value``, and what its pattern matched, by slot.

    Args:
        module: the module it is in.
        value: what the operator's last variable is bound to.
        values: all bindings of ``main``.

    Raises:
        IntegerFormError: if it is none of the integer form.
    """
    if isinstance(value, relax.Call):
        primitive = kind_of(module, value)
        if primitive is not None and primitive in primitives():
            return primitives()[primitive].kind, {}
        if primitive is not None and primitive in PRIMITIVES:
            is_sum = primitive == "tflite_add"
            slots = find(_TFLITE_ADD, value, values) if is_sum else {}
            if slots is not None:
                return PRIMITIVES[primitive], slots
        operation = str(getattr(value.op, "name", ""))
        if operation in calls():
            return calls()[operation].kind, {}
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


def operator_of(module: IRModule, value: Expr) -> Op | None:
    """The operator that a call is; ``None`` for what consists of several.

    Raises:
        IntegerFormError: if what the call carries does not fit the operator's class.
    """
    if not isinstance(value, relax.Call):
        return None
    operation = str(getattr(value.op, "name", ""))
    if operation in calls():
        return calls()[operation].read(value)
    kind = kind_of(module, value)
    if kind is None or kind not in primitives():
        return None
    return read_primitive(primitives()[kind], parameters_of(module, value), value)


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
