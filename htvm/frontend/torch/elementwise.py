"""Functions of elements, of two tensors, and reductions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from htvm.frontend.onnx.graph import Attribute
from htvm.frontend.torch.program import Ref
from htvm.frontend.torch.writer import Call, Handler


def _function(call: Call, op: str, **attributes: Attribute) -> str:
    source = call.tensor("self" if call.given("self") is not None else "input")
    return call.node(op, [source], **attributes)


def _bounded(call: Call, low: float, high: float) -> str:
    ends = [call.constant(end, "float32") if math.isfinite(end) else "" for end in (low, high)]
    return call.node("Clip", [call.tensor(), *ends])


def _hardtanh(call: Call) -> str:
    return _bounded(call, call.number("min_val", -1.0), call.number("max_val", 1.0))


def _clamp(call: Call) -> str:
    return _bounded(call, call.number("min", -math.inf), call.number("max", math.inf))


def _gelu(call: Call) -> str:
    return call.same("Gelu", approximate=call.text("approximate", "none"))


def _leaky_relu(call: Call) -> str:
    return call.same("LeakyRelu", alpha=float(call.number("negative_slope", 0.01)))


def _elu(call: Call) -> str:
    if call.number("scale", 1.0) != 1 or call.number("input_scale", 1.0) != 1:
        raise call.torch.unsupported("an ELU with scales", "scale and input_scale of 1")
    return call.same("Elu", alpha=float(call.number("alpha", 1.0)))


def _softplus(call: Call) -> str:
    if call.number("beta", 1.0) != 1:
        raise call.torch.unsupported(f"a softplus with beta {call.number('beta')}", "1")
    call.ignore("threshold")  # beyond which float32 is linear anyway
    return call.same("Softplus")


def _prelu(call: Call) -> str:
    slope = call.tensor("weight")
    size, rank = math.prod(call.shape("weight")), len(call.shape())
    if size > 1:
        slope = call.reshaped(slope, (size, *(1,) * (rank - 2)))
    return call.node("PRelu", [call.tensor(), slope])


def _power(call: Call) -> str:
    exponent = call.constant(call.number("exponent"), "float32")
    return call.node("Pow", [call.tensor(), exponent])


def _rsqrt(call: Call) -> str:
    return call.node("Reciprocal", [call.same("Sqrt")])


def _operand(call: Call, name: str) -> str:
    if isinstance(call.given(name), Ref):
        return call.tensor(name)
    return call.constant(call.number(name), "float32")


def _binary(call: Call, op: str) -> str:
    if call.number("alpha", 1.0) != 1:
        raise call.torch.unsupported(f"an alpha of {call.number('alpha')}", "multiply before")
    if call.given("rounding_mode") is not None:
        raise call.torch.unsupported("a division that rounds", "without rounding_mode")
    return call.node(op, [_operand(call, "self"), _operand(call, "other")])


def _rsub(call: Call) -> str:
    return call.node("Sub", [_operand(call, "other"), call.tensor()])


# ------------------------------------------------------------------------------ rows


def _softmax(call: Call, op: str) -> str:
    if call.text("dtype", "float32") != "float32" or call.flag("half_to_float"):
        raise call.torch.unsupported("a softmax of another type", "float32")
    return call.same(op, axis=call.axis("dim"))


def _reduced(call: Call, op: str) -> str:
    if call.text("dtype", "float32") != "float32":
        raise call.torch.unsupported("a reduction of another type", "float32")
    rank = len(call.shape())
    axes = call.integers("dim", default=tuple(range(rank)))
    if any(not -rank <= axis < rank for axis in axes):
        raise call.torch.damaged(f"axes {axes} of a tensor of {rank} axes")
    places = call.constant([axis % rank for axis in axes], "int64")
    write = call.mean if op == "ReduceMean" else call.node
    return write(op, [call.tensor(), places], keepdims=int(call.flag("keepdim")))


def _place(call: Call, op: str) -> str:
    if call.given("dim") is None:
        flat = call.reshaped(call.tensor(), (1, math.prod(call.shape())))
        made = call.node(op, [flat], axis=1, keepdims=0)
        return call.reshaped(made, call.result())
    return call.same(op, axis=call.axis("dim"), keepdims=int(call.flag("keepdim")))


_FUNCTIONS: Mapping[str, str] = {
    "abs": "Abs",
    "ceil": "Ceil",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "hardswish": "HardSwish",
    "log": "Log",
    "mish": "Mish",
    "neg": "Neg",
    "reciprocal": "Reciprocal",
    "relu": "Relu",
    "round": "Round",
    "selu": "Selu",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "silu": "Swish",
    "sqrt": "Sqrt",
    "tanh": "Tanh",
}
_BINARY: Mapping[str, str] = {
    "add": "Add",
    "div": "Div",
    "maximum": "Max",
    "minimum": "Min",
    "mul": "Mul",
    "sub": "Sub",
}

_PLAIN: Mapping[str, Handler] = {
    **{name: partial(_function, op=op) for name, op in _FUNCTIONS.items()},
    **{name: partial(_binary, op=op) for name, op in _BINARY.items()},
    "clamp": _clamp,
    "elu": _elu,
    "hardsigmoid": partial(_function, op="HardSigmoid", alpha=1 / 6, beta=0.5),
    "hardtanh": _hardtanh,
    "leaky_relu": _leaky_relu,
    "relu6": partial(_bounded, low=0.0, high=6.0),
}
"""Those that torch also has in place, with an underscore behind the name."""

HANDLERS: Mapping[str, Handler] = {
    **{f"aten.{name}": handler for name, handler in _PLAIN.items()},
    **{f"aten.{name}_": handler for name, handler in _PLAIN.items()},
    "aten._log_softmax": partial(_softmax, op="LogSoftmax"),
    "aten._softmax": partial(_softmax, op="Softmax"),
    "aten.amax": partial(_reduced, op="ReduceMax"),
    "aten.amin": partial(_reduced, op="ReduceMin"),
    "aten.argmax": partial(_place, op="ArgMax"),
    "aten.argmin": partial(_place, op="ArgMin"),
    "aten.gelu": _gelu,
    "aten.log_softmax": partial(_softmax, op="LogSoftmax"),
    "aten.mean": partial(_reduced, op="ReduceMean"),
    "aten.pow": _power,
    "aten.prelu": _prelu,
    "aten.rsqrt": _rsqrt,
    "aten.rsub": _rsub,
    "aten.softmax": partial(_softmax, op="Softmax"),
    "aten.softplus": _softplus,
    "aten.sum": partial(_reduced, op="ReduceSum"),
}
"""Handlers by operator."""
