"""Helper: networks of one TFLite operator with int16 activations, made from those with int8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tests.frontend import single
from tests.frontend.flatfile import FLOAT32, INT8, INT16, INT32, INT64, Graph, Options, Tensor
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


def _functional(
    kind: str,
    output: float = 0.0,
    scales: tuple[float, float] = (1e-5, 2.5),
    options: Options | None = None,
) -> Callable[[Rng], Graph]:
    """A function of numbers; output scale 0 is drawn, like one of the input that is whole."""

    def draw(rng: Rng) -> Graph:
        sketch = Sketch(rng)
        shape = (1, *(sketch.size(1, 9) for _ in range(sketch.size(0, 2))), sketch.size(1, 90))
        whole = [2.0**-13, 2.0**-12 * 1.0004, 2.0**-11, 2.0**-10]
        scale = float(rng.choice(whole)) if sketch.size(0, 3) == 0 else sketch.scale(*scales)
        source = sketch.input(shape, float(np.float32(scale)), 0, code=INT16)
        made = output or float(np.float32(sketch.tensors[source].scales[0] * rng.uniform(0.2, 3)))
        out = sketch.tensor(shape, made, 0, code=INT16)
        sketch.op(kind, [source], [out], options)
        return sketch.graph(out)

    return draw


def relu_6(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    source = sketch.input((1, 900), sketch.scale(0.0001, 0.001), 0, code=INT16)
    scale = sketch.tensors[source].scales[0]
    out = sketch.tensor((1, 900), scale, 0, code=INT16)
    sketch.op("RELU6", [source], [out], None)
    return sketch.graph(out)


def softmax(rng: Rng) -> Graph:
    beta = float(rng.choice([1.0, 1.0, 0.25, 1.7]))
    draw = _functional("SOFTMAX", 1 / 32768, (1e-6, 1.0), (9, {0: ("f", beta)}))
    return draw(rng)


def prelu(rng: Rng) -> Graph:
    sketch = Sketch(rng)
    y, x, c = sketch.size(), sketch.size(), sketch.size(1, 5)
    source = sketch.input((1, y, x, c), sketch.scale(0.0005, 0.02), 0, code=INT16)
    shape = (1, 1, c) if sketch.flag() else (1,)
    slopes = sketch.constant(sketch.bytes(*shape), sketch.scale(0.001, 0.02), sketch.zero())
    out = sketch.tensor((1, y, x, c), sketch.scale(0.0005, 0.02), 0, code=INT16)
    sketch.op("PRELU", [source, slopes], [out], None)
    return sketch.graph(out)


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
    "transpose_conv", "pack", "unpack", "gather", "depth_to_space", "mean", "sum",
    "squared_difference", "resize", "batch_matmul",
)  # fmt: skip

CASES: Mapping[str, Callable[[Rng], Graph]] = {
    **{kind: _of(kind) for kind in _SAME},
    "abs": _functional("ABS"),
    "from_real": from_real,
    "leaky_relu": leaky_relu,
    "logistic": _functional("LOGISTIC", 1 / 32768),
    "narrow": _rescale(INT16, INT8),
    "prelu": prelu,
    "relu": _functional("RELU"),
    "relu_6": relu_6,
    "rescale": _rescale(INT16, INT16),
    "softmax": softmax,
    "tanh": _functional("TANH", 1 / 32768),
    "to_real": to_real,
    "widen": _rescale(INT8, INT16),
    "widest": _rescale(INT16, INT32),
}
"""Operator -> function that draws a network of it."""
