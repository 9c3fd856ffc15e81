"""Tiles of a layer on N-EUREKA: use of L1, and the constants of a range of output channels.

Weights are words of 32 bytes that hold the weights' bits in planes.

The engine adds one offset to all weights of a job: stored are unsigned numbers ``weight - offset``,
where the offset is the smallest weight.  Bits of a word count from the lowest bit of its first
byte; those without a weight are zero.

=============  ================================  ================================
mode           words                             bit of a weight
=============  ================================  ================================
3x3            ``[K][ceil(C / 28)][bits]``       ``28 * tap + channel``
depthwise 3x3  ``[ceil(C / 28)][bits]``          ``28 * tap + channel``
1x1            ``[K][ceil(C / 32)]``             ``32 * (channel // 4) + 4 * plane + channel % 4``
=============  ================================  ================================

In 3x3 modes each word is one plane; channels count within their tile.

Rows of pixels of channels, as on the cluster's cores.  A tile is a range of rows by a range of
output channels; depthwise layers have all channels in each tile.  Constants of a range are one
block: registers of the jobs of each kind of tile, packed weights if they are in L1, scales, biases,
and shifts if they differ.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from byoc_dory.layers import Array, Convolution, Weighted
from byoc_dory.layers.layer import sizes_of
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.base import Soc, round_up
from byoc_dory.soc.siracusa.neureka_core import Mode, Neureka
from byoc_dory.soc.siracusa.neureka_layer import Factors, factors_of, in_windows, view_of
from byoc_dory.tiling.problem import Axis, FixedBytes, InputWindow, TileWeights, TilingProblem

# Channels of a 1x1 word whose bits of one plane are side by side.
_GROUP = 4


@dataclass(frozen=True)
class PackedWeights:
    """Weights for one job.

    Attributes:
        data: uint8 bytes.
        offset: value of the offset register.
        bits: bits of each weight.
    """

    data: Array
    offset: int
    bits: int


def smallest_bits(weights: Array, core: Neureka) -> int:
    """Return how many bits these integers need at least, after subtracting the smallest.

    Raises:
        ValueError: they need more than the engine has.
    """
    span = int(weights.max()) - int(weights.min())
    bits = max(span.bit_length(), core.min_weight_bits)
    if bits > core.max_weight_bits:
        raise ValueError(
            f"weights from {weights.min()} to {weights.max()} need {bits} bits; "
            f"N-EUREKA has at most {core.max_weight_bits}"
        )
    return bits


def packed_bytes(mode: Mode, outputs: int, inputs: int, bits: int, core: Neureka) -> int:
    """Return the bytes of packed weights.

    Args:
        mode: of the job.
        outputs: number of output channels.
        inputs: number of input channels; irrelevant for depthwise.
        bits: bits of each weight; irrelevant for 1x1, which always takes 8.
        core: the engine's numbers.
    """
    if mode == Mode.DEPTHWISE3X3:
        return core.word_bytes * bits * -(-outputs // core.input_channels[mode])
    words = outputs * -(-inputs // core.input_channels[mode])
    return core.word_bytes * words * (1 if mode == Mode.CONV1X1 else bits)


def pack_weights(
    weights: Array, mode: Mode, core: Neureka, bits: int | None = None
) -> PackedWeights:
    """Return weights as the engine reads them.

    Args:
        weights: integers ``[K, C, 3, 3]``, depthwise ``[C, 1, 3, 3]``, or ``[K, C, 1, 1]``.
        mode: of the job.
        core: the engine's numbers.
        bits: bits of each weight; by default the fewest.

    Raises:
        ValueError: the shape does not fit the mode, or the weights do not fit the bits.
    """
    _check_shape(weights, mode, core)
    needed = smallest_bits(weights, core)
    bits = needed if bits is None else bits
    if not needed <= bits <= core.max_weight_bits:
        raise ValueError(
            f"weights from {weights.min()} to {weights.max()} do not fit {bits} bits; "
            f"use {needed} to {core.max_weight_bits}"
        )
    offset = int(weights.min())
    stored = (weights.astype(np.int64) - offset).astype(np.uint8)
    # [outputs, channels, taps]; depthwise has one row, with all channels.
    outputs = 1 if mode == Mode.DEPTHWISE3X3 else len(stored)
    rows = stored.reshape(outputs, -1, core.taps(mode))
    channels = core.input_channels[mode]
    tiles = -(-rows.shape[1] // channels)
    padded = np.zeros((outputs, tiles * channels, rows.shape[2]), np.uint8)
    padded[:, : rows.shape[1]] = rows
    tiled = padded.reshape(outputs * tiles, channels, -1)
    data = _pointwise_words(tiled) if mode == Mode.CONV1X1 else _plane_words(tiled, bits, core)
    return PackedWeights(data, offset, bits)


def _check_shape(weights: Array, mode: Mode, core: Neureka) -> None:
    side = core.window(mode)
    depthwise = mode == Mode.DEPTHWISE3X3
    fits = weights.ndim == 4 and weights.shape[2:] == (side, side) and weights.size > 0
    if not fits or (depthwise and weights.shape[1] != 1):
        wanted = f"[C, 1, {side}, {side}]" if depthwise else f"[K, C, {side}, {side}]"
        raise ValueError(f"weights of a {mode.name} job are {wanted}, not {list(weights.shape)}")


def _plane_words(tiled: Array, bits: int, core: Neureka) -> Array:
    """Return uint8 [tiles, channels, taps] as one word per tile and plane."""
    by_tap = tiled.transpose(0, 2, 1).reshape(len(tiled), 1, -1)
    planes = by_tap >> np.arange(bits, dtype=np.uint8)[None, :, None] & 1
    words = np.zeros((len(tiled), bits, 8 * core.word_bytes), np.uint8)
    words[:, :, : planes.shape[2]] = planes
    return np.packbits(words, axis=2, bitorder="little").reshape(-1)


def _pointwise_words(tiled: Array) -> Array:
    """Return uint8 [tiles, channels, 1] as one word per tile."""
    groups = tiled.reshape(len(tiled), -1, 1, _GROUP)
    planes = groups >> np.arange(8, dtype=np.uint8)[None, None, :, None] & 1
    return np.packbits(planes.reshape(len(tiled), -1), axis=1, bitorder="little").reshape(-1)


_ALIGN = 16
_MOST_JOBS = 5  # of different kinds: see `jobs_of` and the padding that the rules take
_BEHIND = 4  # bytes behind an input that the cores may read where they copy windows
_CHANNEL_STEP = 8  # ranges of output channels are multiples of this, or all


@dataclass(frozen=True)
class FactorBlock:
    """Byte offsets in the block of constants of a range of output channels.

    Attributes:
        jobs: number of jobs whose registers are at the beginning.
        weights, scales, biases, shifts: offsets of the parts; -1 for missing ones.
        bytes: size of the block, a multiple of 16.
    """

    jobs: int
    weights: int
    scales: int
    biases: int
    shifts: int
    bytes: int


def mode_of(layer: Weighted) -> Mode:
    """Return the engine's mode for a layer."""
    if layer.fy == 1 or in_windows(layer):
        return Mode.CONV1X1
    depthwise = isinstance(layer, Convolution) and layer.depthwise
    return Mode.DEPTHWISE3X3 if depthwise else Mode.CONV3X3


def the_factors(layer: Weighted) -> Factors:
    """Return the scales, biases and shifts of a layer that the rules accept."""
    found = factors_of(layer)
    assert isinstance(found, Factors), found
    return found


@lru_cache(maxsize=256)  # called for every tile size that is considered
def packed_weights(core: Neureka, layer: Weighted) -> PackedWeights:
    """Return all weights of a layer, packed."""
    return pack_weights(view_of(layer).weight, mode_of(layer), core)


def channel_bytes(core: Neureka, layer: Weighted) -> int:
    """Return the bytes of an output channel's weights; 0 if channels share words (depthwise)."""
    mode = mode_of(layer)
    if mode == Mode.DEPTHWISE3X3:
        return 0
    bits = packed_weights(core, layer).bits
    return packed_bytes(mode, 1, view_of(layer).channels, bits, core)


def numbers_that_count(core: Neureka, layer: Weighted) -> Hashable:
    """Return what the engine's cycles depend on: sizes, and which constants there are.

    Of the numbers in a layer only their widths are read, not what they are.
    """
    factors = the_factors(layer)
    constants = (factors.scale_bytes, factors.biased, factors.shift_per_channel, factors.relu)
    return (sizes_of(layer), packed_weights(core, layer).bits, constants)


def block_of(core: Neureka, layer: Weighted, k: int, jobs: int) -> FactorBlock:
    """Return the offsets of the parts of a block of ``k`` output channels."""
    assert jobs <= _MOST_JOBS, jobs
    factors = the_factors(layer)
    offset = 4 * core.job_registers * jobs

    def part(there: bool, size: int) -> int:
        nonlocal offset
        if not there:
            return -1
        place = offset
        offset += round_up(size, 4)
        return place

    bits, channels = packed_weights(core, layer).bits, view_of(layer).channels
    weights = packed_bytes(mode_of(layer), k, channels, bits, core)
    return FactorBlock(
        jobs=jobs,
        weights=part(not core.weight_memory, weights),
        scales=part(True, factors.scale_bytes * k),
        biases=part(factors.biased, 4 * k),
        shifts=part(factors.shift_per_channel, k),
        bytes=round_up(offset, _ALIGN),
    )


def pack_block(
    core: Neureka, layer: Weighted, block: FactorBlock, jobs: Array, start: int, size: int
) -> Array:
    """Return the block of ``size`` output channels from ``start`` on; uint8.

    The block of a shorter last range has the layout of a full one.  ``jobs`` are registers, uint32
    [jobs, registers].
    """
    image = np.zeros(block.bytes, np.uint8)

    def put(place: int, values: Array, dtype: str) -> None:
        if place >= 0:
            data = np.asarray(values.astype(dtype), order="C").reshape(-1).view(np.uint8)
            image[place : place + data.size] = data

    factors = the_factors(layer)
    channels = slice(start, start + size)
    each = channel_bytes(core, layer)
    data = packed_weights(core, layer).data
    put(0, jobs, "<u4")
    put(block.weights, data[start * each : (start + size) * each] if each else data, "u1")
    # Negative scales as the 32 bits that the engine multiplies by.
    scale = factors.scale[channels] % 2**32
    put(block.scales, scale, "<u1" if factors.scale_bytes == 1 else "<u4")
    put(block.biases, factors.bias[channels], "<i4")
    put(block.shifts, factors.shift[channels], "<u1")
    return image


def tiling_problem(soc: Soc, core: Neureka, layer: Weighted, l1_budget: int) -> TilingProblem:
    """Return a tile's use of L1: ranges of rows, and of output channels unless depthwise.

    A layer whose rows are dropped has room for all of them, and all channels, so that rows are
    contiguous; it is stored to L2.  Where columns are dropped, too, all pixels are behind those
    that are kept of a tile, or, if the result stays, of the layer.  So are windows that the cores
    copy; they are for all channels.
    """
    view = view_of(layer)
    drops, depthwise = view.row_step > 1, mode_of(layer) == Mode.DEPTHWISE3X3
    factors = the_factors(layer)
    each = 0 if core.weight_memory else channel_bytes(core, layer)
    shared = packed_weights(core, layer).data.size if depthwise and not core.weight_memory else 0
    behind = view.row_step * view.column_step - (view.column_step == 1)
    if view.copied:
        # As neureka_program.py places them, in the worst case in tiles of a row.
        row = layer.ox * layer.K
        behind = -(-(max(row, view.row) + view.blocks * view.row) // row)
    return TilingProblem(
        name=layer.name,
        l1_limit=min(l1_budget, soc.memory(core.l1).size - (_BEHIND if view.copied else 0)),
        k=Axis(layer.K, tiled=not (depthwise or drops or view.copied), step=_CHANNEL_STEP),
        c=Axis(layer.C, tiled=False),
        y=Axis(layer.oy),
        x=Axis(layer.ox, tiled=False),
        window=InputWindow(layer.iy, layer.ix, layer.fy, layer.fx, layer.stride),
        weights=TileWeights(
            block=each + factors.bytes,
            fixed=int(shared) + 4 * core.job_registers * _MOST_JOBS + 2 * _ALIGN,
            in_l1=True,
        ),
        fixed=FixedBytes(slack=3 * ALIGNMENT),
        sums=behind,
        may_stay=not drops or view.column_step > 1,
        rows_apart=True,
    )
