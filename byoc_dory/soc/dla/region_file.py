"""A region as a file, JSON with a versioned schema and its weights beside it, made from layers.

The file depends neither on the accelerator's design nor on its instruction set: the same one runs
on devices with different SRAM, parallelism and instructions, because memory plan, tiles and command
stream are made from it later (`memory`, `assemble`), ahead of time or by the device at start-up.

Tensors are int8, rows of pixels of channels.  The weights of a layer are one block, at a multiple
of 16 bytes: int8 ``[K][fy][fx][C]`` (depthwise ``[C][fy][fx]``), zeros up to a multiple of 4, then
the biases, int32 little-endian ``[K]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Literal

import msgspec
import numpy as np

from byoc_dory.layers import Add, Array, Convolution, Dense, Layer, Shift, Tensor, Weighted
from byoc_dory.region import Region
from byoc_dory.soc.parts import round_up

FORMAT = "htvm-dla-region"
VERSION = 1

Kind = Literal["conv", "depthwise", "dense", "add"]


class TensorEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tensor: its sizes, and whether it enters or leaves the region."""

    name: str
    channels: int
    rows: int
    columns: int
    kind: Literal["input", "output", "internal"]

    @property
    def bytes(self) -> int:
        """Its size in bytes."""
        return self.channels * self.rows * self.columns


class LayerEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A layer.

    Attributes:
        name: name of the layer.
        op: kind of layer.
        inputs: numbers of the tensors that it reads.
        output: number of the tensor that it writes.
        kernel, stride: of its window, (y, x).
        pad: zeros at (top, left, bottom, right).
        shift: bits of the right shift of its sums, which floors.
        clip: inclusive range of its results.
        weights: offset of its block in the weights, in bytes; 0 without weights.
    """

    name: str
    op: Kind
    inputs: tuple[int, ...]
    output: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int, int, int]
    shift: int
    clip: tuple[int, int]
    weights: int


class RegionFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A region: its tensors, its layers in execution order, and the hash of its weights."""

    format: str
    version: int
    name: str
    weights_bytes: int
    weights_sha256: str
    tensors: tuple[TensorEntry, ...]
    layers: tuple[LayerEntry, ...]

    def source(self, layer: LayerEntry) -> TensorEntry:
        """Return a layer's first operand."""
        return self.tensors[layer.inputs[0]]

    def result(self, layer: LayerEntry) -> TensorEntry:
        """Return a layer's result."""
        return self.tensors[layer.output]

    def channel_bytes(self, layer: LayerEntry) -> int:
        """Return the bytes of one output channel's weights."""
        if layer.op == "add":
            return 0
        taps = layer.kernel[0] * layer.kernel[1]
        return taps if layer.op == "depthwise" else taps * self.source(layer).channels

    def bias_offset(self, layer: LayerEntry) -> int:
        """Return the offset of the biases in a layer's block of weights, in bytes."""
        return round_up(self.channel_bytes(layer) * self.result(layer).channels, 4)

    def block_bytes(self, layer: LayerEntry) -> int:
        """Return the bytes of a layer's block of weights and biases."""
        if layer.op == "add":
            return 0
        return self.bias_offset(layer) + 4 * self.result(layer).channels


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
        entries.append(_layer_entry(layer, numbers, offset if block.size else 0))
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


def _layer_entry(layer: Layer, numbers: dict[str, int], offset: int) -> LayerEntry:
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
def single_layer_region(layer: Layer) -> RegionFile:
    """Return the region of one layer, without weights."""
    inputs = [Tensor(f"in{n}", tensor.shape) for n, tensor in enumerate(layer.inputs)]
    tensors = [_tensor(tensor, "input") for tensor in inputs]
    tensors.append(_tensor(Tensor("out", layer.output.shape), "output"))
    numbers = {tensor.name: n for n, tensor in enumerate(layer.inputs)}
    entry = _layer_entry(layer, numbers | {layer.output.name: len(inputs)}, 0)
    return RegionFile(FORMAT, VERSION, layer.name, 0, "", tuple(tensors), (entry,))
