"""A region as a file: JSON with a versioned schema, and its weights beside it.

The file depends neither on the accelerator's design nor on its instruction set: the same one runs
on devices with different SRAM, parallelism and instructions, because memory plan, tiles and command
stream are made from it later (`memory`, `assemble`), ahead of time or by the device at start-up.

Tensors are int8, rows of pixels of channels.  The weights of a layer are one block, at a multiple
of 16 bytes: int8 ``[K][fy][fx][C]`` (depthwise ``[C][fy][fx]``), zeros up to a multiple of 4, then
the biases, int32 little-endian ``[K]``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

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
