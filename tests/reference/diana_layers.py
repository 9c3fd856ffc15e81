"""Layers of DIANA's two cores in plain numpy, and the layout of activations in L2.

An independent definition, without tiles; it shares no code with the product.
"""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import AnalogRequant, Layer


def run_layer(layer: Layer, inputs: list[np.ndarray]) -> np.ndarray:
    """int8 result of an int8 layer that a core takes."""
    if isinstance(layer.requant, AnalogRequant):
        return run_analog(layer, inputs[0])
    if layer.op == "add":
        acc = inputs[0].astype(np.int64) + inputs[1]
    elif layer.op == "dense":
        acc = layer.weight[:, :, 0, 0].astype(np.int64) @ inputs[0].astype(np.int64)
        acc = acc + (0 if layer.bias is None else layer.bias)
    else:
        acc = _convolve(layer, inputs[0])
    acc = acc.astype(np.int32) >> layer.requant.shift
    return np.clip(acc, *layer.clip).astype(np.int8).reshape(layer.output.shape)


def _convolve(layer: Layer, x: np.ndarray) -> np.ndarray:
    top, left, bottom, right = layer.pad
    x = np.pad(x.astype(np.int64), ((0, 0), (top, bottom), (left, right)))
    sy, sx = layer.stride
    windows = np.lib.stride_tricks.sliding_window_view(x, (layer.fy, layer.fx), axis=(1, 2))
    windows = windows[:, ::sy, ::sx][:, : layer.oy, : layer.ox]
    weight = layer.weight.astype(np.int64)
    if layer.op == "depthwise":
        acc = np.einsum("cyxij,cij->cyx", windows, weight[:, 0])
    else:
        acc = np.tensordot(weight, windows, axes=([1, 2, 3], [0, 3, 4]))
    if layer.bias is not None:
        acc = acc + layer.bias[:, None, None]
    return acc


def run_analog(layer: Layer, x: np.ndarray) -> np.ndarray:
    """int8 result, pass by pass, in Python's floor arithmetic."""
    r = layer.requant
    assert isinstance(r, AnalogRequant)
    top, left, bottom, right = layer.pad
    x = x.reshape(layer.C, layer.iy, layer.ix).astype(np.int64)
    x = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    total = np.zeros((layer.K, layer.oy, layer.ox), np.int64)
    each = r.rows // (layer.fy * layer.fx)
    for first in range(0, layer.C, each):
        sums = np.zeros_like(total)
        for i in range(layer.fy):
            for j in range(layer.fx):
                rows = slice(i, i + (layer.oy - 1) * layer.stride[0] + 1, layer.stride[0])
                columns = slice(j, j + (layer.ox - 1) * layer.stride[1] + 1, layer.stride[1])
                part = x[first : first + each, rows, columns]
                weight = layer.weight[:, first : first + each, i, j].astype(np.int64)
                sums += np.tensordot(weight, part, axes=1)
        total += np.clip(sums // r.gain, *r.adc)
    mul, add = (np.broadcast_to(v, layer.K)[:, None, None] for v in (r.mul, r.add))
    result = (total * mul + add) // (1 << r.shift)
    return np.clip(result, *layer.clip).astype(np.int8).reshape(layer.output.shape)


def to_l2(values: np.ndarray, void: int = 0x5A) -> np.ndarray:
    """uint8 image of an activation; void columns hold ``void`` so that using them shows."""
    columns = values.shape[-1]
    pitch = (columns + 15) // 16 * 16
    rows = np.full((*values.shape[:-1], pitch), void, np.uint8)
    rows[..., :columns] = values.view(np.uint8)
    flat = rows.reshape(-1)
    return flat[np.arange(len(flat)) ^ 3]


def from_l2(image: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The values of an image."""
    pitch = (shape[-1] + 15) // 16 * 16
    flat = image[np.arange(len(image)) ^ 3].view(np.int8)
    return flat.reshape(*shape[:-1], pitch)[..., : shape[-1]]
