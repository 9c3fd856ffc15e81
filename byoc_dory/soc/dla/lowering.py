"""From layers to the entries of a region file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Literal

import numpy as np

from byoc_dory.layers import Add, Array, Convolution, Dense, Layer, Shift, Tensor, Weighted
from byoc_dory.region import Region
from byoc_dory.soc.dla.region_file import (
    FORMAT,
    VERSION,
    Kind,
    LayerEntry,
    RegionFile,
    TensorEntry,
)
from byoc_dory.soc.parts import round_up

_BLOCK_ALIGN = 16


def lower(region: Region) -> tuple[RegionFile, bytes]:
    """Return a region as a file, and its weights.

    The layers must satisfy the accelerator's rules.
    """
    written = {layer.output.name for layer in region.layers}
    leaving = {tensor.name for tensor in region.outputs}
    return _lowered(region.name, region.layers, written, leaving)


def _lowered(
    name: str, layers: Sequence[Layer], written: set[str], leaving: set[str]
) -> tuple[RegionFile, bytes]:
    tensors: dict[str, TensorEntry] = {}
    entries, weights = [], bytearray()
    for layer in layers:
        for tensor in (*layer.inputs, layer.output):
            if tensor.name not in tensors:
                kind: Literal["input", "output", "internal"] = (
                    "output"
                    if tensor.name in leaving
                    else "internal"
                    if tensor.name in written
                    else "input"
                )
                tensors[tensor.name] = _tensor(tensor, kind)
        numbers = {known: number for number, known in enumerate(tensors)}
        offset = len(weights)
        block = block_of(layer)
        weights += block.tobytes()
        weights += bytes(round_up(len(weights), _BLOCK_ALIGN) - len(weights))
        entries.append(_entry(layer, numbers, offset if block.size else 0))
    packed = bytes(weights)
    return RegionFile(
        format=FORMAT,
        version=VERSION,
        name=name,
        weights_bytes=len(packed),
        weights_sha256=sha256(packed).hexdigest(),
        tensors=tuple(tensors.values()),
        layers=tuple(entries),
    ), packed


def _tensor(tensor: Tensor, kind: Literal["input", "output", "internal"]) -> TensorEntry:
    channels, rows, columns = tensor.shape if len(tensor.shape) == 3 else (tensor.shape[0], 1, 1)
    return TensorEntry(tensor.name, channels, rows, columns, kind)


def _kind(layer: Layer) -> Kind:
    if isinstance(layer, Convolution):
        return "depthwise" if layer.depthwise else "conv"
    return "dense" if isinstance(layer, Dense) else "add"


def _entry(layer: Layer, numbers: dict[str, int], offset: int) -> LayerEntry:
    assert isinstance(layer, Convolution | Dense | Add)
    # A layer that is only asked about need not have been retargeted.
    shift = layer.requant.shift if isinstance(layer.requant, Shift) else 0
    return LayerEntry(
        name=layer.name,
        op=_kind(layer),
        inputs=tuple(numbers[tensor.name] for tensor in layer.inputs),
        output=numbers[layer.output.name],
        kernel=(layer.fy, layer.fx),
        stride=layer.stride,
        pad=layer.pad,
        shift=shift,
        clip=layer.clip,
        weights=offset,
    )


def block_of(layer: Layer) -> Array:
    """Return a layer's block of weights and biases as uint8; empty for layers without any."""
    if not isinstance(layer, Weighted):
        return np.zeros(0, np.uint8)
    weights = np.asarray(layer.weight.transpose(0, 2, 3, 1).astype(np.int8), order="C")
    packed = weights.reshape(-1).view(np.uint8)
    bias = np.zeros(layer.K, np.int32) if layer.bias is None else layer.bias
    padding = np.zeros(round_up(packed.size, 4) - packed.size, np.uint8)
    return np.concatenate([packed, padding, bias.astype("<i4").view(np.uint8)])


@lru_cache(maxsize=256)  # asked for every tile size that is considered
def alone(layer: Layer) -> RegionFile:
    """Return the region of one layer, without weights."""
    inputs = [Tensor(f"in{n}", tensor.shape) for n, tensor in enumerate(layer.inputs)]
    tensors = [_tensor(tensor, "input") for tensor in inputs]
    tensors.append(_tensor(Tensor("out", layer.output.shape), "output"))
    numbers = {tensor.name: n for n, tensor in enumerate(layer.inputs)}
    entry = _entry(layer, numbers | {layer.output.name: len(inputs)}, 0)
    return RegionFile(FORMAT, VERSION, layer.name, 0, "", tuple(tensors), (entry,))
