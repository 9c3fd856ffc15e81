"""Constants of a layer as the cluster's kernels read them: one block per range of columns.

A block has, in this order and with each part aligned to 4 bytes: biases, multipliers, addends and
shifts of its columns (the last three if they differ between columns), weights ``[k][fy][fx][c]``,
and a table of 256 bytes if there is an activation function.  The block of a shorter last range has
the layout of a full one.  Functions of rows have their own kind of block.

For kernels of cores with SIMD, the first five parts are records,
and sums of two large operands have a table of their results, unless these are half of the sum.

As in ``runtime_c/cluster/simd/cluster_records.h``; kernels of products read quads
(``runtime_c/simd/htvm_quads.h``), depthwise convolutions a record for each channel
(``runtime_c/simd/htvm_channels.h``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from byoc_dory.layers import (
    Add,
    Array,
    CachedAttention,
    Combination,
    Convolution,
    Gemm,
    Layer,
    Rows,
    Weighted,
)
from byoc_dory.layers.rowwise import (
    AffineNorm,
    ItaGelu,
    LayerNorm,
    RmsNorm,
    RowFunction,
    TableMap,
    TableSoftmax,
)
from byoc_dory.soc.base import round_up
from byoc_dory.soc.cluster.attention import attention_constants
from byoc_dory.soc.cluster.requant import (
    HALF,
    leaves_32_bits,
    mul_shift,
    norm_leaves_32_bits,
)

QUAD = 4
"""Channels of a record of products."""


def _words(size: int) -> int:
    return -(-size // 4)


def quad_bytes(window: int) -> int:
    """Return the bytes of four channels whose windows have ``window`` bytes each."""
    return 16 * _words(window) + 64


def pack_quads(
    weights: Array, bias: Array, mul: Array, add: Array, shift: Array, *, wide: bool = False
) -> Array:
    """Return the records of all channels, four by four; uint8.

    Args:
        weights: [K][bytes of a window], int8, in the order of a window's bytes in memory.
        bias, mul, add, shift: one entry for each channel.
        wide: requantization leaves 32 bits, so that biases cannot be a part of ``add``.
    """
    k, window = weights.shape
    quads, words = -(-k // QUAD), _words(window)
    whole = np.zeros((quads * QUAD, 4 * words), np.int8)
    whole[:k, :window] = weights
    blocks = whole.reshape(quads, QUAD, words, 4).transpose(0, 2, 1, 3)
    factors = np.zeros((quads * QUAD, 3), "<i4")
    rest = np.zeros(quads * QUAD, "<i4")
    factors[:k, 0], factors[:k, 2] = mul, shift
    factors[:k, 1] = add if wide else _folded(bias, mul, add)
    rest[:k] = bias if wide else 0
    parts = (np.asarray(blocks, order="C"), factors, rest)
    images = [part.view(np.uint8).reshape(quads, -1) for part in parts]
    return np.concatenate(images, axis=1).reshape(-1)


def _folded(bias: Array, mul: Array, add: Array) -> Array:
    """Return ``bias * mul + add``, wrapped around at 32 bits as the kernels' sums are."""
    product = np.asarray(bias, np.int64) * np.asarray(mul, np.int64) + np.asarray(add, np.int64)
    return product.astype(np.uint64).astype(np.uint32).view(np.int32)


def channel_bytes(fy: int, fx: int) -> int:
    """Return the bytes of a channel of a depthwise convolution."""
    return 16 + 4 * fx * _words(fy)


def pack_channels(
    weights: Array,
    bias: Array,
    mul: Array,
    add: Array,
    shift: Array,
    *,
    unsigned: bool = False,
    wide: bool = False,
) -> Array:
    """Return the records of all channels of a depthwise convolution; uint8.

    Args:
        weights: [C][fy][fx], int8.
        bias, mul, add, shift: one entry for each channel.
        unsigned: data are uint8.
        wide: requantization leaves 32 bits, so that biases cannot be a part of ``add``.
    """
    c, fy, fx = weights.shape
    columns = np.zeros((c, fx, 4 * _words(fy)), np.int8)
    columns[:, :, :fy] = weights.transpose(0, 2, 1)
    bias = np.asarray(bias, np.int64)
    if unsigned:  # the kernels compute with data - 128
        bias = bias + 128 * weights.astype(np.int64).sum((1, 2))
    numbers = np.zeros((c, 4), "<i4")
    numbers[:, 0] = bias if wide else 0
    numbers[:, 1], numbers[:, 3] = mul, shift
    numbers[:, 2] = add if wide else _folded(bias, mul, add)
    parts = [columns.reshape(c, -1).view(np.uint8), numbers.view(np.uint8)]
    return np.concatenate(parts, axis=1).reshape(-1)


def conv2d_scratch(window: int, cores: int, windows: int = 0) -> int:
    """Return the bytes of scratch memory for windows of ``window`` bytes.

    Args:
        window: bytes of a window.
        cores: number of cores that work.
        windows: how many windows a core may copy at a time; 0: as many as the kernel prefers.
    """
    words = _words(window)
    preferred = 16 if words <= 16 else 8 if words <= 32 else 4
    return cores * (4 * (windows or preferred) * words + 16)


def matmul_scratch(c: int, cores: int) -> int:
    """Return the bytes of scratch memory of products of matrices."""
    return cores * quad_bytes(c)


def depthwise_scratch(fx: int, ox: int, stride: int, cores: int) -> int:
    """Return the bytes of scratch memory of depthwise convolutions."""
    return cores * (32 * ((ox - 1) * stride + fx) + 64 * ox)


def attention_scratch(positions: int, cores: int) -> int:
    """Return the bytes that attention needs: a byte for each position, and a table, per core."""
    return cores * (256 + 4 * _words(positions))


BLOCK_ALIGN = 16
_TABLED = 1024  # elements from which on a table saves more cycles than its transfer takes


@dataclass(frozen=True)
class ConstantBlock:
    """Byte offsets in a block; -1 for missing parts.

    Attributes:
        bias, muls, adds, shifts, weights, table: offsets of the parts; see the module's docstring.
            Records are ``weights``.
        bytes: size of the block, a multiple of 16.
    """

    bias: int
    muls: int
    adds: int
    shifts: int
    weights: int
    table: int
    bytes: int


def byte_table(function: RowFunction | None) -> TableMap | None:
    """Return a function of single bytes as a table; None for any other."""
    if isinstance(function, ItaGelu):
        return function.table()
    return function if isinstance(function, TableMap) else None


def per_channel(layer: Layer) -> bool:
    """Whether columns have their own requantizations."""
    requant = mul_shift(layer)
    return requant is not None and max(map(len, (requant.mul, requant.shift, requant.add))) > 1


def block_of(layer: Weighted, k: int, *, simd: bool = False) -> ConstantBlock:
    """Return the offsets of the parts of a block of ``k`` columns.

    Args:
        simd: for cores with SIMD.
    """
    offset = 0

    def part(there: bool, size: int) -> int:
        nonlocal offset
        if not there:
            return -1
        place = offset
        offset += round_up(size, 4)
        return place

    own = per_channel(layer)
    window_bytes = layer.weight[0].size
    if simd:
        return ConstantBlock(
            bias=-1,
            muls=-1,
            adds=-1,
            shifts=-1,
            weights=part(True, _record_bytes(layer, k)),
            table=part(isinstance(layer, Gemm) and layer.function is not None, 256),
            bytes=round_up(offset, BLOCK_ALIGN),
        )
    return ConstantBlock(
        bias=part(layer.bias is not None, 4 * k),
        muls=part(own, 4 * k),
        adds=part(own, 4 * k),
        shifts=part(own, k),
        weights=part(True, window_bytes * k),
        table=part(isinstance(layer, Gemm) and layer.function is not None, 256),
        bytes=round_up(offset, BLOCK_ALIGN),
    )


def _record_bytes(layer: Weighted, k: int) -> int:
    if isinstance(layer, Convolution) and layer.depthwise:
        return k * channel_bytes(layer.fy, layer.fx)
    return round_up(k, 4) // 4 * quad_bytes(layer.weight[0].size)


def pack(layer: Weighted, tile_k: int, *, simd: bool = False) -> Array:
    """Return all blocks of a layer with weights, one after another; uint8.

    Args:
        simd: for cores with SIMD.
    """
    block = block_of(layer, tile_k, simd=simd)
    parts = _records if simd else _block
    blocks = []
    for start in range(0, layer.K, tile_k):
        blocks.append(parts(layer, block, start, min(tile_k, layer.K - start)))
    return np.concatenate(blocks)


def _records(layer: Weighted, block: ConstantBlock, start: int, size: int) -> Array:
    image = np.zeros(block.bytes, np.uint8)
    columns = slice(start, start + size)
    requant = mul_shift(layer)
    assert requant is not None
    bias = np.zeros(layer.K, np.int64) if layer.bias is None else layer.bias
    numbers = [
        values[columns]
        for values in (
            bias,
            *(_channel_values(part, layer.K) for part in (requant.mul, requant.add, requant.shift)),
        )
    ]
    wide = leaves_32_bits(layer, requant)
    if isinstance(layer, Convolution) and layer.depthwise:
        unsigned = layer.inputs[0].dtype == "uint8"
        filters = layer.weight[columns, 0]
        data = pack_channels(filters, *numbers, unsigned=unsigned, wide=wide)
    else:
        rows = layer.weight[columns].transpose(0, 2, 3, 1).reshape(size, -1)
        data = pack_quads(rows, *numbers, wide=wide)
    image[block.weights : block.weights + data.size] = data
    table = byte_table(layer.function) if isinstance(layer, Gemm) else None
    if table is not None:
        image[block.table : block.table + 256] = table.table
    return image


def _block(layer: Weighted, block: ConstantBlock, start: int, size: int) -> Array:
    image = np.zeros(block.bytes, np.uint8)

    def put(place: int, values: Array, dtype: str) -> None:
        if place >= 0:
            data = np.asarray(values.astype(dtype), order="C").reshape(-1).view(np.uint8)
            image[place : place + data.size] = data

    columns = slice(start, start + size)
    if layer.bias is not None:
        put(block.bias, layer.bias[columns], "<i4")
    requant = mul_shift(layer)
    assert requant is not None
    put(block.muls, _channel_values(requant.mul, layer.K)[columns], "<i4")
    put(block.adds, _channel_values(requant.add, layer.K)[columns], "<i4")
    put(block.shifts, _channel_values(requant.shift, layer.K)[columns], "<u1")
    weights = layer.weight[columns].transpose(0, 2, 3, 1)  # [k][fy][fx][c]
    if isinstance(layer, Convolution) and layer.depthwise:
        weights = layer.weight[columns, 0].transpose(1, 2, 0)  # [fy][fx][c]
    put(block.weights, weights, "<i1")
    table = byte_table(layer.function) if isinstance(layer, Gemm) else None
    if table is not None:
        put(block.table, table.table, "<u1")
    return image


def _channel_values(values: tuple[int, ...], count: int) -> Array:
    array = np.asarray(values, np.int64)
    return np.broadcast_to(array, (count,)) if array.size == 1 else array


def row_constants(function: RowFunction) -> Array:
    """Return the block of a function of rows; uint8, empty if it needs none."""
    table = byte_table(function)
    parts: list[Array] = []
    if table is not None:
        parts = [table.table.astype(np.uint8)]
    elif isinstance(function, TableSoftmax):
        parts = [np.asarray(function.exponentials, "<u4").view(np.uint8)]
    elif isinstance(function, LayerNorm | AffineNorm):
        parts = [function.weight.astype("<i4").view(np.uint8)]
        parts.append(function.bias.astype("<i4").view(np.uint8))
    elif isinstance(function, RmsNorm):
        parts = [function.weight.astype("<i4").view(np.uint8)]
    if not parts:
        return np.zeros(0, np.uint8)
    data = np.concatenate(parts)
    return np.pad(data, (0, round_up(data.size, BLOCK_ALIGN) - data.size))


def has_sum_table(layer: Layer) -> bool:
    """Whether kernels for SIMD look up the results of an add, instead of computing them."""
    is_pair = isinstance(layer, Add) and len(layer.inputs) == 2
    requant = mul_shift(layer)
    return is_pair and requant not in (None, HALF) and layer.output.elements >= _TABLED


def sum_table(layer: Add) -> Array:
    """Return the results of all sums of two operands, from the lowest one on; uint8."""
    requant = mul_shift(layer)
    assert requant is not None
    info = np.iinfo(layer.inputs[0].dtype)
    sums = np.arange(2 * int(info.min), 2 * int(info.max) + 1, dtype=np.int64)
    values = (sums * requant.mul[0] + requant.add[0]) >> requant.shift[0]
    table = np.clip(values, *layer.clip).astype(layer.output.dtype).view(np.uint8)
    return np.pad(table, (0, round_up(table.size, BLOCK_ALIGN) - table.size))


def constants_of(layer: Layer, *, simd: bool = False) -> Array:
    """Return the block of a layer without weights; uint8, empty if it needs none.

    Args:
        simd: for cores with SIMD.
    """
    if simd and isinstance(layer, Add) and has_sum_table(layer):
        return sum_table(layer)
    if isinstance(layer, CachedAttention):
        return attention_constants(layer)
    if isinstance(layer, Combination):
        tables = [each.table.astype(np.uint8) for each in layer.tables if each is not None]
        return np.concatenate([*tables, np.zeros(0, np.uint8)])
    if not isinstance(layer, Rows):
        return np.zeros(0, np.uint8)
    function = layer.function
    if isinstance(function, AffineNorm) and not norm_leaves_32_bits(layer):
        weight, bias = (part * np.int32(function.mul) for part in (function.weight, function.bias))
        function = replace(function, weight=weight, bias=bias)
    return row_constants(function)
