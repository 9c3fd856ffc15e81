"""Converters that TVM's importer of torch needs for int8 programs.

They write what torch computes: its quantization multiplies by the reciprocal of the scale, where
``relax.quantize`` divides.  `htvm.load` reads this form as a quantization again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from byoc_dory.errors import UnsupportedError
from htvm.public import boundary

if TYPE_CHECKING:
    from tvm.relax import Var

Converter: TypeAlias = "Callable[[Any, Any], Var]"
"""Takes a node of ``torch.fx`` and TVM's importer; returns the variable that has its result."""

_TYPES = ("int8", "uint8", "int16", "int32")


@boundary
def torch_converters() -> dict[str, Converter]:
    """Return converters of torch's quantizations, by operator of ``quantized_decomposed``.

    ::

        from_exported_program(program, custom_convert_map=htvm.relax.torch_converters())

    The module computes what torch computes, in the same order of operations, with tensors of the
    program's types and shapes.  torch is not imported here.

    Raises:
        UnsupportedError: (when a converter is called) the tensor's type is not int8, uint8, int16
            or int32, scale or zero point is computed at run time, or the result is not float32;
            the message names the node.
    """
    return {
        "quantize_per_tensor.default": _quantize,
        "dequantize_per_tensor.default": _dequantize,
        "dequantize_per_channel.default": _dequantize_per_channel,
    }


def _quantize(node: Any, importer: Any) -> Var:
    from tvm.relax import const, op

    scale, zero_point, low, high = (_number(node, place) for place in range(1, 5))
    dtype, emit = _type(node, 5), importer.block_builder.emit
    # torch takes the reciprocal in double, and rounds it.
    exact = emit(op.divide(const(1.0, "float64"), const(float(scale), "float64")))
    x = emit(op.multiply(importer.env[node.args[0]], emit(op.astype(exact, "float32"))))
    x = emit(op.add(emit(op.round(x)), const(np.float32(zero_point))))
    return emit(op.astype(emit(op.clip(x, low, high)), dtype))


def _dequantize(node: Any, importer: Any) -> Var:
    from tvm.relax import const

    scale, zero_point = (_number(node, place) for place in range(1, 3))
    zero = const(int(zero_point), _type(node, 5))
    return _dequantized(node, importer, const(np.float32(scale)), zero, 0)


def _dequantize_per_channel(node: Any, importer: Any) -> Var:
    from tvm.relax import op

    emit, env, dtype = importer.block_builder.emit, importer.env, _type(node, 6)
    scales, zeros, axis = env[node.args[1]], node.args[2], node.args[3]
    zero = emit(op.zeros_like(scales, dtype) if zeros is None else op.astype(env[zeros], dtype))
    return _dequantized(node, importer, emit(op.astype(scales, "float32")), zero, axis)


def _dequantized(node: Any, importer: Any, scale: Any, zero: Any, axis: int) -> Var:
    from tvm.relax import op

    result = str(node.kwargs.get("out_dtype") or "float32").removeprefix("torch.")
    if result != "float32":
        raise _unsupported(node, f"a result of type {result}", "float32 is supported")
    source = importer.env[node.args[0]]
    return importer.block_builder.emit(op.dequantize(source, scale, zero, axis, "float32"))


def _type(node: Any, place: int) -> str:
    """Return the name of the quantized type, which is an argument of a node."""
    dtype = str(node.args[place]).removeprefix("torch.")
    if dtype not in _TYPES:
        raise _unsupported(node, f"a quantized tensor of type {dtype}", f"use {', '.join(_TYPES)}")
    return dtype


def _number(node: Any, place: int) -> float:
    value = node.args[place]
    if not isinstance(value, int | float):
        raise _unsupported(node, f"argument {place} is computed at run time", "quantize statically")
    return value


def _unsupported(node: Any, what: str, hint: str) -> UnsupportedError:
    return UnsupportedError(what, where=f"node '{node.name}' ({node.target})", hint=hint)
