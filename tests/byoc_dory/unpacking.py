"""Helper: what is packed for accelerators, read back: the inverses of the packing functions."""

from __future__ import annotations

import numpy as np

from byoc_dory.layers import Array
from byoc_dory.soc.base import round_up
from byoc_dory.soc.diana.cores import AnalogCore, DigitalCore
from byoc_dory.soc.diana.packing import reverse_groups, signs_of
from byoc_dory.soc.siracusa.neureka_core import Mode, Neureka
from byoc_dory.soc.siracusa.neureka_tiles import PackedWeights

GROUP = 4


def activation_to_l2(values: Array, core: DigitalCore) -> Array:
    """Return int8 values ``(C, y, x)`` or ``(C,)`` as uint8 bytes of L2, rows padded with zeros."""
    columns = values.shape[-1]
    padding = [(0, 0)] * (values.ndim - 1) + [(0, round_up(columns, core.row_pitch) - columns)]
    padded = np.pad(values.astype(np.int8), padding)
    return reverse_groups(padded.reshape(-1).view(np.uint8), core.group)


def activation_from_l2(data: Array, shape: tuple[int, ...], core: DigitalCore) -> Array:
    """Return the inverse of `activation_to_l2`: int8 values of ``shape``, without padding."""
    stored = (*shape[:-1], round_up(shape[-1], core.row_pitch))
    values = reverse_groups(np.asarray(data, dtype=np.uint8), core.group).view(np.int8)
    return values.reshape(stored)[..., : shape[-1]].copy()


def unpack_conv_block(
    data: Array, c: int, fy: int, fx: int, core: DigitalCore
) -> tuple[Array, Array]:
    """Return one block of a convolution as ``(weight[lanes, C, fy, fx], bias[lanes])``."""
    size = core.lanes * c * fy * fx
    raw = reverse_groups(np.asarray(data, np.uint8)[: size + core.bias_bytes], core.group)
    weight = raw[:size].view(np.int8).reshape(c, fy, fx, core.lanes).transpose(3, 0, 1, 2)
    planes = raw[size:].reshape(4, core.lanes).T
    return weight.copy(), np.asarray(planes, order="C").view("<i4").reshape(-1).astype(np.int32)


def unpack_dense_block(data: Array, c: int, core: DigitalCore) -> tuple[Array, Array]:
    """Return one block of a dense layer as ``(weight[lanes, C], bias[lanes])``."""
    size = core.lanes * round_up(c, core.columns)
    raw = reverse_groups(np.asarray(data, np.uint8)[: size + core.dense_bias_bytes], core.group)
    blocked = raw[:size].view(np.int8).reshape(-1, core.lanes, core.columns)
    weight = blocked.transpose(1, 0, 2).reshape(core.lanes, -1)[:, :c]
    biases = raw[size:].view("<i4").reshape(core.lanes, -1)[:, 0]
    return weight.copy(), biases.astype(np.int32)


def unpack_weights(
    packed: PackedWeights, shape: tuple[int, int, int, int], mode: Mode, core: Neureka
) -> Array:
    """Return the weights of `pack_digital_weights`, int64 of ``shape``."""
    outputs, inputs = (1, shape[0]) if mode == Mode.DEPTHWISE3X3 else shape[:2]
    channels, taps = core.input_channels[mode], core.taps(mode)
    tiles = outputs * -(-inputs // channels)
    if mode == Mode.CONV1X1:
        bits = np.unpackbits(packed.data, bitorder="little")
        planes = bits.reshape(tiles, channels // GROUP, core.max_weight_bits, GROUP)
        planes = planes.transpose(2, 0, 1, 3).reshape(core.max_weight_bits, tiles, channels, 1)
    else:
        words = packed.data.reshape(tiles, packed.bits, core.word_bytes)
        used = np.unpackbits(words, axis=2, bitorder="little")[:, :, : taps * channels]
        planes = used.reshape(tiles, packed.bits, taps, channels).transpose(1, 0, 3, 2)
    powers = 1 << np.arange(len(planes), dtype=np.int64)
    stored = np.tensordot(powers, planes.astype(np.int64), axes=1)
    values = stored.reshape(outputs, -1, taps)[:, :inputs] + packed.offset
    return np.asarray(values.reshape(shape))


def decode_image(image: Array, rows: int, columns: int, core: AnalogCore) -> Array:
    """Return the used cells of an image: int8 [rows, columns]."""
    stored_rows = round_up(rows, core.row_step)
    planes = np.asarray(image, np.uint8).reshape(2, stored_rows, -1)
    bits = np.unpackbits(planes, axis=2, bitorder="little").astype(np.int8)
    cells = (bits[0] - bits[1])[::-1][:rows, :columns]
    return np.asarray(cells * signs_of(rows, columns, core), np.int8)
