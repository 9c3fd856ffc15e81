"""Helper: networks of one TFLite operator with int16 activations, made from those with int8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tests.frontend import single
from tests.frontend.flatfile import FLOAT32, INT8, INT16, INT32, INT64, Graph, Tensor
from tests.frontend.sketch import Rng, Sketch

_PRODUCTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")


def as_int16(graph: Graph) -> Graph:
    """The same with int16 instead of int8, but for weights, and int64 instead of int32 biases."""
    weights = {op.inputs[1] for op in graph.operators if op.kind in _PRODUCTS}

    def turned(at: int, tensor: Tensor) -> Tensor:
        data = tensor.data
        if tensor.code == INT8 and at not in weights:
            data = None if data is None else (data.astype(np.int16) * 201)
            # A step 256 times finer, so that results have as many bits as arguments.
            scales = [scale / 256 for scale in tensor.scales]
            return replace(tensor, code=INT16, zero_points=[0], data=data, scales=scales)
        if tensor.code == INT32 and tensor.scales and data is not None:
            scales = [scale / 256 for scale in tensor.scales]
            return replace(tensor, code=INT64, data=data.astype(np.int64) * 256, scales=scales)
        return tensor

    tensors = [turned(at, tensor) for at, tensor in enumerate(graph.tensors)]
    return replace(graph, tensors=tensors)


def _of(kind: str) -> Callable[[Rng], Graph]:
    return lambda rng: as_int16(single.CASES[kind](rng))


def leaky_relu(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    source = sketch.input((1, 900), sketch.scale(0.0005, 0.02), 0, code=INT16)
    out = sketch.tensor((1, 900), sketch.scale(0.0005, 0.02), 0, code=INT16)
    slope = float(rng.choice([-0.5, -0.25, float(rng.uniform(-0.3, 1.2))]))
    sketch.op("LEAKY_RELU", [source], [out], (75, {0: ("f", slope)}))
    return sketch.graph(out)


def _rescale(source: int, result: int) -> Callable[[Rng], Graph]:
    steps = {INT8: 0.03, INT16: 1e-4, INT32: 1e-7}

    def draw(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        zero = {code: sketch.zero() if code == INT8 else 0 for code in steps}
        x = sketch.input((1, 300), steps[source] * rng.uniform(0.5, 2), zero[source], code=source)
        scale = steps[result] * float(rng.uniform(0.5, 2))
        out = sketch.tensor((1, 300), scale, zero[result], code=result)
        sketch.op("QUANTIZE", [x], [out], None)
        return sketch.graph(out)

    return draw


def from_real(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    source = sketch.input((1, 64), code=FLOAT32, scales=(), zero_points=())
    out = sketch.tensor((1, 64), sketch.scale(0.00005, 0.0003), 0, code=INT16)
    sketch.op("QUANTIZE", [source], [out], None)
    return sketch.graph(out)


def to_real(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    source = sketch.input((1, 300), sketch.scale(0.00001, 0.001), 0, code=INT16)
    out = sketch.tensor((1, 300), 1, 0, code=FLOAT32, scales=(), zero_points=())
    sketch.op("DEQUANTIZE", [source], [out], None)
    return sketch.graph(out)


_SAME = (
    "add", "average_pool", "concat", "conv", "depthwise", "fully_connected", "max_pool", "maximum",
    "multiply", "pad", "reshapes", "slices", "split", "strided_slice", "subtract", "transpose",
    "transpose_conv", "pack", "unpack", "gather", "depth_to_space",
)  # fmt: skip

CASES: Mapping[str, Callable[[Rng], Graph]] = {
    **{kind: _of(kind) for kind in _SAME},
    "from_real": from_real,
    "leaky_relu": leaky_relu,
    "narrow": _rescale(INT16, INT8),
    "rescale": _rescale(INT16, INT16),
    "to_real": to_real,
    "widen": _rescale(INT8, INT16),
    "widest": _rescale(INT16, INT32),
}
"""Operator -> function that draws a network of it."""
