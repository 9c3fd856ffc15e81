"""Helper: layers at, and just beyond, what accelerators' rules allow; what tables of them have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from byoc_dory.layers import (
    AnalogRequant,
    AttentionOperands,
    Layer,
    MulShift,
    MultiHeadAttention,
    Pool,
    Requant,
    Scores,
    Shift,
    Tensor,
    TfliteRequant,
    Weighing,
    Weighted,
    add_layer,
    attend_layer,
    cached_attention_layer,
    combination_layer,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
    gemm_layer,
    matmul_layer,
    matrix,
)
from byoc_dory.layers.layer import out_size
from byoc_dory.layers.rowwise import ItaSoftmax, TableMap, TableSoftmax
from tests.byoc_dory.snitch_cases import attention_layer

HALF_UP = MulShift((3,), (8,), (128,))
GAINS = AnalogRequant(16, (100,) * 8, (0,) * 8, 5, 1152)
TABLE = TableMap(np.arange(256, dtype=np.uint8))
_WHEN_MADE = ("stride", "pad", "bias", "requant", "clip")


ONE = MulShift((1,), (4,), (0,))
TFLITE = TfliteRequant((1 << 30,), (-3,))


Make = Callable[[], Layer]


@dataclass(frozen=True)
class Cases:
    """Layers about one rule.

    Attributes:
        takes: layers that the accelerator accepts, as close to the rule's limit as they can be.
        refuses: layers that this rule is the first to refuse, with words of its reason.
        changes: other numbers of the accelerator, for limits that no layer reaches with its own.
        l1: bytes of L1; None for the SoC's.
    """

    takes: tuple[Make, ...]
    refuses: tuple[tuple[Make, str], ...]
    changes: dict[str, Any] = field(default_factory=dict)
    l1: int | None = None


def bias(value: int) -> np.ndarray:
    return np.full(8, value, np.int32)


def conv(
    shape: tuple[int, int, int] = (4, 9, 9),
    k: int = 8,
    kernel: tuple[int, int] = (3, 3),
    weight: int = 1,
    dtype: str = "int8",
    result: str = "int8",
    **changes: Any,
) -> Layer:
    """A convolution of equal weights; ``changes`` are options of it, or fields of the layer."""
    weights = np.full((k, shape[0], *kernel), weight, np.int8)
    options = {name: changes.pop(name) for name in _WHEN_MADE if name in changes}
    options.setdefault("requant", Shift(4))
    options.setdefault("clip", (-128, 127) if result == "int8" else (0, 255))
    layer = conv2d_layer(
        "layer", Tensor("x", shape, dtype), "y", weights, options.pop("bias", None), **options
    )
    return replace(layer, **{"output": replace(layer.output, dtype=result), **changes})


def analog(shape: tuple[int, int, int] = (4, 9, 9), **changes: Any) -> Layer:
    """A convolution for the analog core."""
    return conv(shape, **{"requant": GAINS, "input_range": (-64, 63), **changes})


def with_weights(layer: Layer, dtype: type, *spoiled: int) -> Layer:
    """A layer with weights of another type, and other values of the first ones."""
    assert isinstance(layer, Weighted)
    weight = layer.weight.astype(dtype)
    weight.flat[: len(spoiled)] = spoiled
    return replace(layer, weight=weight)


def dilated() -> Layer:
    """A convolution with gaps."""
    return replace(conv(pad=(1, 1, 1, 1)), pad=(2, 2, 2, 2), dilation=(2, 2))


def grouped() -> Layer:
    """A convolution in two groups."""
    return replace(conv(), groups=2, weight=np.ones((8, 2, 3, 3), np.int8))


def depthwise(kernel: int = 3, stride: int = 1, requant: Requant | None = None) -> Layer:
    """A depthwise convolution of four channels."""
    weights = np.ones((4, 1, kernel, kernel), np.int8)
    return depthwise_layer(
        "layer", Tensor("x", (4, 14, 14)), "y", weights, None, stride=(stride, stride),
        requant=requant or Shift(4),
    )  # fmt: skip


def dense(inputs: int = 150, outputs: int = 40) -> Layer:
    """A fully connected layer."""
    weights = np.ones((outputs, inputs), np.int8)
    return dense_layer("layer", Tensor("x", (inputs,)), "y", weights, None, requant=Shift(4))


def total(
    operands: int = 2, shape: Sequence[int] = (4, 8, 8), last: Sequence[int] | None = None
) -> Layer:
    """A sum of tensors of a shape; the last may have another."""
    parts = tuple(Tensor(f"x{number}", tuple(shape)) for number in range(operands))
    layer = add_layer("layer", parts[0], parts[1], "y", requant=Shift(1))
    return replace(layer, inputs=(*parts[:-1], replace(parts[-1], shape=tuple(last or shape))))


def gemm(
    requant: Requant = HALF_UP,
    bias: int = 0,
    rows: int = 64,
    inputs: int = 64,
    outputs: int = 64,
    **more: Any,
) -> Layer:
    """A product with constant weights."""
    weights, biases = np.ones((outputs, inputs), np.int8), np.full(outputs, bias, np.int32)
    return gemm_layer("layer", matrix("x", rows, inputs), weights, biases, requant=requant, **more)


def matmul(second: str = "int8", **more: Any) -> Layer:
    """A product of two matrices, the second of a type."""
    more.setdefault("requant", Shift(4))
    return matmul_layer("layer", matrix("a", 6, 5), matrix("b", 5, 4, second), **more)


def attend(head_size: int = 64, keys: int = 64, **softmax: Any) -> Layer:
    """Scores, softmax and context of one head."""
    scores = Scores((3, 8, 128), ItaSoftmax(**softmax), (3, 8, 128))
    query, key = matrix("q", 64, head_size), matrix("k", keys, head_size)
    return attend_layer("layer", query, key, matrix("v", head_size, keys), scores)


def heads(second: MulShift = HALF_UP, rows: int = 64) -> Layer:
    """Attention of two heads side by side; the second query's requantization may be its own."""
    layer = attention_layer(np.random.default_rng(0), "layer", rows, 64, 2, True)
    assert isinstance(layer, MultiHeadAttention)
    numbers = {"mul": second.mul[0], "shift": second.shift[0], "add": second.add[0]}
    both = [replace(part, mul=3, shift=8, add=128) for part in layer.attention.query]
    query = (both[0], replace(both[1], **numbers))
    return replace(layer, attention=replace(layer.attention, query=query))


def combination(
    function: Literal["add", "multiply"] = "multiply", mul: int = 1, shift: int = 8
) -> Layer:
    """A sum or product of two matrices."""
    requant = MulShift((mul,), (shift,))
    return combination_layer("layer", matrix("a", 4, 4), matrix("b", 4, 4), function,
                             requant=requant)  # fmt: skip


def pool(
    function: Literal["average", "max"] = "max",
    shape: tuple[int, int, int] = (4, 9, 9),
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    clip: tuple[int, int] = (-128, 127),
) -> Layer:
    """A pool of a map."""
    channels, y, x = shape
    sizes = (
        out_size(y, pad[0] + pad[2], kernel[0], stride[0]),
        out_size(x, pad[1] + pad[3], kernel[1], stride[1]),
    )
    return Pool(
        name="layer", inputs=(Tensor("x", shape),), output=Tensor("y", (channels, *sizes)),
        function=function, kernel=kernel, stride=stride, pad=pad, clip=clip,
    )  # fmt: skip


def cached_attention(size: int = 8, mul: int = 1) -> Layer:
    """Attention of two heads of a size over eight positions."""
    softmax = TableSoftmax((1,) * 256)
    weighing = Weighing(
        (mul, 0, 8), (-128, 127), TABLE, TABLE, (1, 0, 1), (-128, 127), softmax, TABLE
    )
    operands = AttentionOperands(
        matrix("keys", 16, size), matrix("values", 16, size), matrix("query", 2, size),
        matrix("mask", 1, 8),
    )  # fmt: skip
    return cached_attention_layer("layer", operands, 2, weighing, requant=MulShift((1,), (8,)))
