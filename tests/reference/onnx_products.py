"""Sums of products in ONNX files of quantized operators (QOperator form), in numpy.

An independent definition: it reads the file itself and shares no code with the product, nor with
onnxruntime, which it stands in for where that has no kernel that is exact
(`tests.reference.onnx_session`).  Sums are int64; the requantization is onnxruntime's, in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

Array = npt.NDArray[Any]
Attributes = Mapping[str, Any]


def defined_outputs(path: Path, inputs: Sequence[Array]) -> list[Array]:
    """Run a file by the definitions of this module.

    Args:
        path: an ONNX file.
        inputs: one array for each input of the graph, in its order.

    Raises:
        NotImplementedError: an operator of the file has no definition here.
    """
    graph = onnx.load(str(path)).graph
    without = sorted({node.op_type for node in graph.node} - _DEFINITIONS.keys())
    if without:
        raise NotImplementedError(
            f"{path.name} has {', '.join(without)}: tests/reference/onnx_products.py defines "
            f"{', '.join(sorted(_DEFINITIONS))} only; add the definition there"
        )
    values = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    names = [item.name for item in graph.input if item.name not in values]
    values.update(zip(names, inputs, strict=True))
    for node in graph.node:
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        operands = [values[name] if name else None for name in node.input]
        values[node.output[0]] = _DEFINITIONS[node.op_type](attributes, *operands)
    return [values[item.name] for item in graph.output]


def _requantized(sums: Array, scale: Array, zero: Array) -> Array:
    """``rint(float32(sum) * scale) + zero``, saturated to the type of ``zero``."""
    limits = np.iinfo(zero.dtype)
    product = sums.astype(np.float32) * scale
    assert product.dtype == np.float32
    rounded = np.rint(product).astype(np.int64) + zero
    return np.clip(rounded, limits.min, limits.max).astype(zero.dtype)


def _minus(values: Array, zero: Array) -> Array:
    return values.astype(np.int64) - zero.astype(np.int64)


def _qlinear_conv(
    attributes: Attributes, x: Array, x_scale: Array, x_zero: Array, w: Array, w_scale: Array,
    w_zero: Array, y_scale: Array, y_zero: Array, bias: Array | None = None,
) -> Array:  # fmt: skip
    """Convolve an NCHW tensor; the weight has one scale, or one per output channel."""
    assert attributes.get("auto_pad", b"NOTSET") == b"NOTSET"
    top, left, bottom, right = attributes.get("pads", [0, 0, 0, 0])
    (sy, sx), (dy, dx) = (attributes.get(name, [1, 1]) for name in ("strides", "dilations"))
    groups = attributes.get("group", 1)
    weight = _minus(w, w_zero.reshape(-1, 1, 1, 1))
    outputs, each, fy, fx = weight.shape
    # The border is what the zero point means: zero.
    padded = np.pad(_minus(x, x_zero), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(
        padded, (dy * (fy - 1) + 1, dx * (fx - 1) + 1), axis=(2, 3)
    )[:, :, ::sy, ::sx, ::dy, ::dx]
    parts = [
        np.tensordot(taps, kernels, ([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2)
        for taps, kernels in zip(
            np.split(windows, groups, axis=1), np.split(weight, groups), strict=True
        )
    ]
    assert each * groups == x.shape[1] and sum(part.shape[1] for part in parts) == outputs
    sums = np.concatenate(parts, axis=1)
    if bias is not None:
        sums = sums + bias.astype(np.int64).reshape(-1, 1, 1)
    return _requantized(sums, (x_scale * w_scale / y_scale).reshape(-1, 1, 1), y_zero)


def _qlinear_matmul(
    _: Attributes, a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array,
    b_zero: Array, y_scale: Array, y_zero: Array,
) -> Array:  # fmt: skip
    return _requantized(_minus(a, a_zero) @ _minus(b, b_zero), a_scale * b_scale / y_scale, y_zero)


def _qgemm(
    attributes: Attributes, a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array,
    b_zero: Array, bias: Array | None = None, y_scale: Array | None = None,
    y_zero: Array | None = None,
) -> Array:  # fmt: skip
    """Multiply two matrices; without a scale of the result, the result is float32."""
    first = _minus(a, a_zero).T if attributes.get("transA", 0) else _minus(a, a_zero)
    weight = b.T if attributes.get("transB", 0) else b  # [K, N]: scales are per N
    sums = first @ _minus(weight, b_zero)
    if bias is not None:
        sums = sums + bias.astype(np.int64)
    scale = np.float32(attributes.get("alpha", 1.0)) * a_scale * b_scale
    if y_scale is None or y_zero is None:
        return np.asarray(sums.astype(np.float32) * scale, np.float32)
    return _requantized(sums, scale / y_scale, y_zero)


def _quantize(_: Attributes, x: Array, scale: Array, zero: Array) -> Array:
    limits = np.iinfo(zero.dtype)
    rounded = np.rint(x / scale).astype(np.int64) + zero
    return np.clip(rounded, limits.min, limits.max).astype(zero.dtype)


def _dequantize(_: Attributes, x: Array, scale: Array, zero: Array) -> Array:
    assert scale.size == 1
    return np.asarray(_minus(x, zero).astype(np.float32) * scale, np.float32)


_DEFINITIONS: Mapping[str, Callable[..., Array]] = {
    "DequantizeLinear": _dequantize,
    "QGemm": _qgemm,
    "QLinearConv": _qlinear_conv,
    "QLinearMatMul": _qlinear_matmul,
    "QuantizeLinear": _quantize,
}
