"""A numpy interpreter of the integer form.

An independent definition of every operator: it shares no code with the product, reads PrimFuncs by
their attributes instead of their bodies, and asserts what the form promises (no int32 overflow).
Slow and plain on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax
from tvm.ir import GenericConst, IRModule

from tests.reference import (
    gemmlowp,
    integers,
    onnx_arithmetic,
    tflite_operators,
    tflite_tables,
    torch_arithmetic,
)
from tests.reference.tflite_operators import scaled

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Run:
    """Results of one run.

    Attributes:
        outputs: what ``main`` returns.
        tensors: by operator name, the tensor it computes.
    """

    outputs: list[Array]
    tensors: Mapping[str, Array]


def interpret(module: IRModule, inputs: Sequence[Array]) -> Run:
    """Run ``main``."""
    main = module["main"]
    values: dict[Any, Array] = {}
    for param, data in zip(main.params, inputs, strict=True):
        assert data.dtype.name == str(param.ty.dtype.dtype)
        assert data.shape == tuple(int(size) for size in param.ty.shape)
        values[param] = data
    tensors: dict[str, Array] = {}
    for block in main.body.blocks:
        for binding in block.bindings:
            result = _evaluate(module, binding.value, values)
            values[binding.var] = result
            span = getattr(binding.value, "span", None)
            if span is not None:
                tensors[str(span.source_name.name)] = result
    body = main.body.body
    fields = body.fields if isinstance(body, relax.Tuple) else [body]
    return Run([values[field] for field in fields], tensors)


def _evaluate(module: IRModule, value: Any, values: Mapping[Any, Array]) -> Any:
    if isinstance(value, relax.Var):
        return values[value]
    if isinstance(value, GenericConst):
        return value.value.numpy()
    if isinstance(value, relax.Tuple):
        return tuple(_evaluate(module, field, values) for field in value.fields)
    name = value.op.name
    if name == "relax.call_tir":
        func = module[value.args[0]]
        args = _evaluate(module, value.args[1], values)
        result = _PRIMITIVES[str(func.attrs["htvm.kind"])](_attributes(func.attrs), *args)
        if result.dtype == np.int64:  # exact; the form says which type holds it
            exact, result = result, result.astype(str(value.ty.dtype))
            assert np.array_equal(exact, result), "a result its type does not hold"
    else:
        args = [
            _evaluate(module, arg, values)
            for arg in value.args
            if isinstance(arg, relax.Var | GenericConst)
        ]
        result = _OPERATORS[name](value, *args)
    assert result.shape == tuple(int(size) for size in value.ty.shape), name
    assert str(result.dtype) == str(value.ty.dtype), name
    return result


def _attributes(attrs: Any) -> Mapping[str, Any]:
    """The attributes of a PrimFunc; the fields of an operator, which are JSON, one by one.

    Fields of fields have no name of their own in front of them: none occurs twice.
    """
    found = {str(name): value for name, value in attrs.items()}
    waiting = [json.loads(str(found.pop("htvm.fields", "{}")))]
    while waiting:
        for name, value in waiting.pop().items():
            if not isinstance(value, dict):
                found[f"htvm.{name}"] = value
            elif "class" in value:
                waiting.append(value)
    return found


def _int32(values: Array) -> Array:
    assert values.size == 0 or abs(int(values.max())) < 2**31 and int(values.min()) >= -(2**31)
    return values.astype(np.int32)


# ------------------------------------------------------------------------------ Relax operators


def _channels_last(data: Array, layout: str) -> Array:
    return data if layout == "NHWC" else data.transpose(0, 2, 3, 1)


def _windows(
    data: Array, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> Array:
    """Windows of an NHWC tensor: N, oy, ox, fy, fx, C."""
    (fy, fx), (sy, sx), (dy, dx) = kernel, strides, dilation
    oy = (data.shape[1] - dy * (fy - 1) - 1) // sy + 1
    ox = (data.shape[2] - dx * (fx - 1) - 1) // sx + 1
    rows = np.arange(oy)[:, None] * sy + np.arange(fy)[None] * dy
    columns = np.arange(ox)[:, None] * sx + np.arange(fx)[None] * dx
    return data[:, rows[:, None, :, None], columns[None, :, None, :], :]


def _conv2d(call: Any, data: Array, kernel: Array) -> Array:
    attrs = call.attrs
    layout, groups = str(attrs.data_layout), int(attrs.groups)
    axes = {"HWIO": (0, 1, 2, 3), "HWOI": (0, 1, 3, 2), "OIHW": (2, 3, 1, 0)}
    weight = kernel.transpose(axes[str(attrs.kernel_layout)]).astype(np.int64)
    top, left, bottom, right = (int(pad) for pad in attrs.padding)
    wide = _channels_last(data, layout).astype(np.int64)
    wide = np.pad(wide, ((0, 0), (top, bottom), (left, right), (0, 0)))
    strides, dilation = list(attrs.strides), list(attrs.dilation)
    windows = _windows(wide, weight.shape[:2], strides, dilation)
    parts = []
    each_in, each_out = wide.shape[3] // groups, weight.shape[3] // groups
    for group in range(groups):
        taps = windows[..., group * each_in : (group + 1) * each_in]
        kernels = weight[..., group * each_out : (group + 1) * each_out]
        flat = taps.reshape(*taps.shape[:3], -1).astype(np.float64)
        # Sums of products of bytes stay far below 2**53, so that doubles are exact here.
        parts.append(flat @ kernels.reshape(-1, each_out).astype(np.float64))
    result = np.concatenate(parts, axis=3).astype(np.int64)
    return _int32(result if layout == "NHWC" else result.transpose(0, 3, 1, 2))


def _matmul(_: Any, a: Array, b: Array) -> Array:
    return _int32(a.astype(np.int64) @ b.astype(np.int64))


def _clip(call: Any, data: Array) -> Array:
    low, high = (int(arg.value) for arg in call.args[1:])
    return np.clip(data, low, high).astype(data.dtype)


def _astype(call: Any, data: Array) -> Array:
    result = data.astype(str(call.attrs.dtype))
    assert np.array_equal(result, data), "a cast changes values"
    return result


def _pad(call: Any, data: Array) -> Array:
    widths = np.asarray([int(width) for width in call.attrs.pad_width]).reshape(-1, 2)
    return np.pad(data, widths, constant_values=int(call.attrs.pad_value))


def _lowest(dtype: Any) -> Any:
    return np.iinfo(dtype).min if np.issubdtype(dtype, np.integer) else -np.inf


def _max_pool(call: Any, data: Array) -> Array:
    attrs = call.attrs
    layout = str(attrs.layout)
    top, left, bottom, right = (int(pad) for pad in attrs.padding)
    padded = np.pad(
        _channels_last(data, layout),
        ((0, 0), (top, bottom), (left, right), (0, 0)),
        constant_values=_lowest(data.dtype),
    )
    kernel, strides = list(attrs.pool_size), list(attrs.strides)
    result = _windows(padded, kernel, strides, list(attrs.dilation)).max(axis=(3, 4))
    return result if layout == "NHWC" else result.transpose(0, 3, 1, 2)


def _strided_slice(call: Any, data: Array) -> Array:
    axes, begin, end = ([int(item.value) for item in part.fields] for part in call.args[1:4])
    index = [slice(None)] * data.ndim
    for axis, first, last in zip(axes, begin, end, strict=True):
        index[axis] = slice(first, last)
    return data[tuple(index)]


def _shape_of(call: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in call.ty.shape)


def _wide(function: Callable[[Array, Array], Array]) -> Callable[[Any, Array, Array], Array]:
    return lambda _, a, b: _int32(function(a.astype(np.int64), b.astype(np.int64)))


_OPERATORS: Mapping[str, Callable[..., Array]] = {
    "relax.add": _wide(np.add),
    "relax.astype": _astype,
    "relax.clip": _clip,
    "relax.matmul": _matmul,
    "relax.multiply": _wide(np.multiply),
    "relax.nn.conv2d": _conv2d,
    "relax.nn.max_pool2d": _max_pool,
    "relax.nn.pad": _pad,
    "relax.reshape": lambda call, data: data.reshape(_shape_of(call)),
    "relax.right_shift": _wide(np.right_shift),
    "relax.strided_slice": _strided_slice,
}


# ------------------------------------------------------------------------------ PrimFuncs


def _requantize(attrs: Any, acc: Array, multiplier: Array, shift: Array) -> Array:
    axis = int(attrs["htvm.axis"])
    shape = [1] * acc.ndim
    shape[axis] = -1
    if multiplier.size == 1:
        shape = [1] * acc.ndim
    return _int32(scaled(acc, multiplier.reshape(shape), shift.reshape(shape)))


def _mul_shift(attrs: Any, acc: Array, mul: Array, add: Array, shift: Array) -> Array:
    shape = [1] * acc.ndim
    shape[int(attrs["htvm.axis"])] = -1
    mul, add, shift = (
        part.astype(np.int64).reshape(shape if part.size > 1 else [1] * acc.ndim)
        for part in (mul, add, shift)
    )
    low, high = _integers(attrs, "clip")
    return _int32(np.clip((acc.astype(np.int64) * mul + add) >> shift, low, high))


def _integers(attrs: Any, name: str) -> list[int]:
    return [int(value) for value in attrs[f"htvm.{name}"]]


def _tflite_add(attrs: Any, a: Array, b: Array, _: Array) -> Array:
    multipliers, shifts = _integers(attrs, "multipliers"), _integers(attrs, "shifts")
    zero_points, (low, high) = _integers(attrs, "zero_points"), _integers(attrs, "clip")
    operands = [
        scaled((item.astype(np.int64) - zero_points[at]) << 20, multipliers[at], shifts[at])
        for at, item in enumerate((a, b))
    ]
    total = scaled(operands[0] + operands[1], multipliers[2], shifts[2]) + zero_points[2]
    return np.clip(total, low, high).astype(np.int8)


def _average_pool(attrs: Any, data: Array) -> Array:
    layout = str(attrs["htvm.layout"])
    kernel, strides = _integers(attrs, "kernel"), _integers(attrs, "strides")
    top, left, bottom, right = _integers(attrs, "padding")
    low, high = _integers(attrs, "clip")
    wide = _channels_last(data, layout).astype(np.int64)
    border = ((0, 0), (top, bottom), (left, right), (0, 0))
    total = _windows(np.pad(wide, border), kernel, strides, (1, 1)).sum(axis=(3, 4))
    ones = np.pad(np.ones_like(wide), border)
    count = _windows(ones, kernel, strides, (1, 1)).sum(axis=(3, 4))
    magnitude = (2 * np.abs(total) + count) // (2 * count)
    result = np.clip(np.sign(total) * magnitude, low, high).astype(data.dtype)
    return result if layout == "NHWC" else result.transpose(0, 3, 1, 2)


def _softmax(attrs: Any, data: Array, _: Array) -> Array:
    multiplier, left_shift = int(attrs["htvm.multiplier"]), int(attrs["htvm.left_shift"])
    rows = data.reshape(-1, data.shape[-1])
    results = [gemmlowp.softmax_row(row.tolist(), multiplier, left_shift) for row in rows]
    return np.asarray(results, np.int8).reshape(data.shape)


def _log_softmax(attrs: Any, data: Array, *_: Array) -> Array:
    multiplier, left_shift = int(attrs["htvm.multiplier"]), int(attrs["htvm.left_shift"])
    rows = data.reshape(-1, data.shape[-1])
    results = [gemmlowp.log_softmax_row(row.tolist(), multiplier, left_shift) for row in rows]
    return np.asarray(results, np.int8).reshape(data.shape)


_PRIMITIVES: Mapping[str, Callable[..., Array]] = {
    **integers.PRIMITIVES,
    **onnx_arithmetic.PRIMITIVES,
    **tflite_operators.PRIMITIVES,
    **tflite_tables.PRIMITIVES,
    **torch_arithmetic.PRIMITIVES,
    "average_pool2d": _average_pool,
    "mul_shift_requantize": _mul_shift,
    "tflite_add": _tflite_add,
    "tflite_log_softmax": _log_softmax,
    "tflite_requantize": _requantize,
    "tflite_softmax": _softmax,
}
