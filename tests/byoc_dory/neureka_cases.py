"""Helper: random layers for N-EUREKA, and what they compute in plain numpy, without tiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from byoc_dory.layers import (
    Layer,
    MulShift,
    Requant,
    Shift,
    Tensor,
    conv2d_layer,
    dense_layer,
    depthwise_layer,
    gemm_layer,
    matrix,
)

__all__ = ["evaluate", "image_layer", "random_layer"]

_LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}
KINDS = ("conv3x3", "depthwise", "conv1x1", "gemm", "dense", "windows")


def random_layer(rng: np.random.Generator, name: str, largest: int = 40) -> Layer:
    """A layer that N-EUREKA takes: all modes, bits, paddings and types; sizes around its tiles."""
    kind = KINDS[int(rng.integers(len(KINDS)))]
    channels, outputs = _channels(rng), _channels(rng)
    rows, columns = (int(size) for size in rng.integers(1, largest, 2))
    dtype = ("int8", "uint8")[int(rng.integers(2))]
    if kind == "windows":
        return _in_windows(rng, name, dtype)
    side = 3 if kind in ("conv3x3", "depthwise") else 1
    pad = (0, 0, 0, 0)
    if side == 3:
        pad = _padding(rng)
        rows, columns = max(rows, 3), max(columns, 3)
    elif kind == "dense":
        rows = columns = 1
    elif kind == "gemm":
        columns = 1
    bits = int(rng.integers(2, 9))
    low = int(rng.integers(-128, 128 - 2**bits + 1))
    deep = 1 if kind == "depthwise" else channels
    shape = (channels if kind == "depthwise" else outputs, deep, side, side)
    weight = rng.integers(low, low + 2**bits, shape).astype(np.int8)
    result = ("int8", "uint8")[int(rng.integers(2))]
    bias = None
    if rng.integers(4):
        bias = rng.integers(-5000, 5000, shape[0]).astype(np.int32)
    requant = _requant(rng, weight, bias, dtype)
    clip = _LIMITS[result]
    if result == "int8" and rng.integers(2):
        clip = (0, 127)
    source = Tensor("x", (channels, rows, columns), dtype, "NHWC")
    if kind == "dense":
        layer: Layer = dense_layer(
            name, Tensor("x", (channels,), dtype, "C"), "y", weight, bias, requant=requant,
            clip=clip,
        )  # fmt: skip
    elif kind == "gemm":
        layer = gemm_layer(
            name, matrix("x", rows, channels, dtype), weight[:, :, 0, 0], bias, requant=requant,
            clip=clip, dtype=result,
        )  # fmt: skip
    elif kind == "depthwise":
        step = 1 + int(rng.integers(3) == 0)
        layer = depthwise_layer(
            name, source, "y", weight, bias, pad=pad, stride=(step, step), requant=requant,
            clip=clip,
        )  # fmt: skip
    else:
        stride = (1, 1)
        if side == 1 and rng.integers(3) == 0:
            stride = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        elif side == 3 and rng.integers(3) == 0:
            stride, pad = (2, 2), (pad[0], pad[1] % 2, *pad[2:])
            source = replace(source, shape=(channels, rows, columns + columns % 2))
        layer = conv2d_layer(
            name, source, "y", weight, bias, pad=pad, stride=stride, requant=requant, clip=clip
        )
    layout = "C" if kind == "dense" else "NHWC"
    output = Tensor("y", layer.output.shape, result, layout)  # type: ignore[arg-type]
    return replace(layer, output=output)


def _in_windows(rng: np.random.Generator, name: str, dtype: str) -> Layer:
    """A convolution with any filter and stride, whose windows the cores copy."""
    fy, fx = (int(size) for size in rng.integers(1, 8, 2))
    strides = tuple(int(step) for step in rng.integers(1, 4, 2))
    if (fy, fx) in ((1, 1), (3, 3)) and strides in ((1, 1), (2, 2)):
        fx = 5
    channels = int(rng.choice([1, 2, 3, 4, 8, 13, 16, 33]))
    outputs = int(rng.integers(1, 40))
    rows, columns = int(rng.integers(fy, fy + 20)), int(rng.integers(fx, fx + 20))
    top, left, bottom, right = (int(rng.integers(0, size)) for size in (fy, fx, fy, fx))
    bits = int(rng.integers(2, 9))
    low = int(rng.integers(-128, 128 - 2**bits + 1))
    weight = rng.integers(low, low + 2**bits, (outputs, channels, fy, fx)).astype(np.int8)
    bias = rng.integers(-5000, 5000, outputs).astype(np.int32) if rng.integers(4) else None
    clip = _LIMITS["int8"] if rng.integers(2) else (0, 127)
    layer = conv2d_layer(
        name, Tensor("x", (channels, rows, columns), dtype, "NHWC"), "y", weight, bias,
        pad=(top, left, bottom, right), stride=strides, clip=clip,
        requant=_requant(rng, weight, bias, dtype),
    )  # fmt: skip
    return replace(layer, output=Tensor("y", layer.output.shape, "int8", "NHWC"))


def image_layer(rng: np.random.Generator, name: str, largest: int = 40) -> Layer:
    """A convolution of an image with 3x3 and stride 2, whose blocks the cores copy."""
    dtype, result = (("int8", "uint8")[int(rng.integers(2))] for _ in range(2))
    rows, columns = (int(size) for size in rng.integers(3, largest, 2))
    top, left, bottom, right = (int(size) for size in rng.integers(0, 3, 4))
    weight = rng.integers(-128, 128, (int(rng.integers(1, 40)), int(rng.integers(3, 5)), 3, 3))
    weight = weight.astype(np.int8)
    bias = rng.integers(-5000, 5000, len(weight)).astype(np.int32) if rng.integers(4) else None
    clip = (0, 127) if result == "int8" and rng.integers(2) else _LIMITS[result]
    layer = conv2d_layer(
        name, Tensor("x", (weight.shape[1], rows, columns), dtype, "NHWC"), "y", weight, bias,
        pad=(top, left, bottom, right), stride=(2, 2), clip=clip,
        requant=_requant(rng, weight, bias, dtype),
    )  # fmt: skip
    return replace(layer, output=Tensor("y", layer.output.shape, result, "NHWC"))  # type: ignore[arg-type]


def _channels(rng: np.random.Generator) -> int:
    near = int(rng.choice([28, 32, 56, 64])) + int(rng.integers(-1, 2))
    return near if rng.random() < 0.4 else int(rng.integers(2, 80))


def _padding(rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Top, left, bottom, right."""
    top, left = (int(size) for size in rng.integers(0, 3, 2))
    bottom, right = (int(size) for size in rng.integers(0, 2, 2))
    return top, left, bottom, right


def _requant(
    rng: np.random.Generator, weight: np.ndarray, bias: np.ndarray | None, dtype: str
) -> Requant:
    """One that spreads results over the bytes, with scaled sums that stay in 32 bits."""
    outputs = len(weight)
    low, high = _LIMITS[dtype]
    size = np.abs(weight.astype(np.int64)).reshape(outputs, -1).sum(1)
    worst = int(size.max()) * max(-low, high)
    worst += 0 if bias is None else int(np.abs(bias.astype(np.int64)).max())
    typical = max(1, worst // 8)
    kind = int(rng.integers(4))
    if kind == 0:
        return Shift(max(0, typical.bit_length() - 7))
    most = max(1, (2**31 - 2**27) // max(worst, 1))
    top = min(most, (255, 60_000)[int(rng.integers(2))])
    count = outputs if kind > 1 else 1
    mul = rng.integers(1, top + 1, count)
    if kind == 3:
        mul = mul * rng.choice([-1, 1], count)
    shift = np.array([min(31, max(0, (typical * int(abs(m))).bit_length() - 7)) for m in mul])
    if kind == 1 or rng.integers(3) == 0:
        shift = np.full(1, int(shift.max()))
    add = rng.integers(-(2**20), 2**20, count)
    parts = (tuple(int(value) for value in part) for part in (mul, shift, add))
    return MulShift(*parts)


# ---------------------------------------------------------------------- what it computes


def evaluate(layer: Layer, x: np.ndarray) -> np.ndarray:
    """The result in the output's shape and type; ``x`` has the input's shape."""
    maps = x.reshape(layer.C, layer.iy, layer.ix).astype(np.int64)
    top, left, bottom, right = layer.pad
    maps = np.pad(maps, ((0, 0), (top, bottom), (left, right)))
    sy, sx = layer.stride
    weight = layer.weight.astype(np.int64)  # type: ignore[attr-defined]
    acc = np.zeros((layer.K, layer.oy, layer.ox), np.int64)
    for i in range(layer.fy):
        for j in range(layer.fx):
            part = maps[
                :, i : i + (layer.oy - 1) * sy + 1 : sy, j : j + (layer.ox - 1) * sx + 1 : sx
            ]
            if layer.groups > 1:
                acc += part * weight[:, 0, i, j][:, None, None]
            else:
                acc += np.tensordot(weight[:, :, i, j], part, axes=1)
    if layer.bias is not None:  # type: ignore[attr-defined]
        acc += layer.bias.astype(np.int64)[:, None, None]  # type: ignore[attr-defined]
    requant = layer.requant
    if isinstance(requant, Shift):
        values = np.floor_divide(acc, 2**requant.shift)
    else:
        assert isinstance(requant, MulShift)
        mul, shift, add = (
            np.broadcast_to(np.array(part, np.int64), (layer.K,))[:, None, None]
            for part in (requant.mul, requant.shift, requant.add)
        )
        values = np.floor_divide(acc * mul + add, 2**shift)
    return np.clip(values, *layer.clip).astype(layer.output.dtype).reshape(layer.output.shape)
