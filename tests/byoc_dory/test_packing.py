"""Weights and activations in memory, byte by byte."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from byoc_dory.layers import Shift, Tensor, conv2d_layer, dense_layer, depthwise_layer
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.diana.digital import DigitalAccelerator
from byoc_dory.soc.diana.packing import (
    pack_digital_weights,
    pad_filter,
)
from tests.byoc_dory.layers import int8, int32
from tests.byoc_dory.unpacking import (
    activation_from_l2,
    activation_to_l2,
    unpack_conv_block,
    unpack_dense_block,
)

CORE = cast(DigitalAccelerator, DIANA.accelerator("digital"))


def conv(k: int, c: int, fy: int, fx: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    weight, bias = int8(rng, k, c, fy, fx), int32(rng, k)
    return conv2d_layer("c", Tensor("x", (c, 9, 9)), "y", weight, bias, requant=Shift(1))


def test_bytes_of_a_conv_block() -> None:
    """One weight and one bias at the places the layout names."""
    layer = conv(2, 3, 3, 5)
    packed = pack_digital_weights(CORE, layer, 2)
    assert len(packed) == 16 * 3 * 3 * 5 + 64
    # (k=1, c=2, i=1, j=4): [C][fy][fx][16], then each group of four reversed.
    logical = ((2 * 3 + 1) * 5 + 4) * 16 + 1
    assert packed[logical ^ 3] == np.uint8(layer.weight[1, 2, 1, 4])
    assert packed[(logical + 1) ^ 3] == 0, "lane 2 is padding"
    for plane in range(4):
        place = 16 * 3 * 3 * 5 + 16 * plane + 1
        assert packed[place ^ 3] == (int(layer.bias[1]) >> (8 * plane)) & 0xFF


@pytest.mark.parametrize("k_tile", [40, 32, 16, 7])
def test_conv_tiles(k_tile: int) -> None:
    """Each channel tile starts its own blocks."""
    layer = conv(40, 3, 3, 1)
    packed = pack_digital_weights(CORE, layer, k_tile)
    size, at = 16 * 3 * 3 + 64, 0
    for first in range(0, 40, k_tile):
        for k in range(first, min(first + k_tile, 40), 16):
            used = min(16, first + k_tile - k, 40 - k)
            weight, bias = unpack_conv_block(packed[at:], 3, 3, 1, CORE)
            np.testing.assert_array_equal(weight[:used], layer.weight[k : k + used])
            np.testing.assert_array_equal(bias[:used], layer.bias[k : k + used])
            assert not weight[used:].any() and not bias[used:].any()
            at += size
    assert at == len(packed)


def test_filters_are_extended_at_bottom_and_right() -> None:
    layer = conv(2, 1, 2, 4)
    packed = pack_digital_weights(CORE, layer, 2)
    weight, _ = unpack_conv_block(packed, 1, 3, 5, CORE)
    np.testing.assert_array_equal(weight[:2, :, :2, :4], layer.weight)
    assert not weight[:, :, 2].any() and not weight[:, :, :, 4].any()
    assert [pad_filter(f, CORE.filters) for f in range(1, 9)] == [1, 3, 3, 5, 5, 7, 7, 8]


@pytest.mark.parametrize(("k_tile", "blocks"), [(11, 3), (8, 3), (5, 5), (2, 6), (1, 11)])
def test_four_depthwise_channels_share_a_block(k_tile: int, blocks: int) -> None:
    """Each channel tile starts a block; a load from 4 bytes further on has the next channel."""
    rng = np.random.default_rng(1)
    weight, bias = int8(rng, 11, 1, 3, 3), int32(rng, 11)
    layer = depthwise_layer("d", Tensor("x", (11, 9, 9)), "y", weight, bias, requant=Shift(1))
    packed = pack_digital_weights(CORE, layer, k_tile)
    assert len(packed) == blocks * (16 * 9 + 64) + 12
    assert not packed[-12:].any()
    real = np.zeros(len(packed), bool)
    base = 0
    for first in range(0, 11, k_tile):
        size = min(k_tile, 11 - first)
        for channel in range(size):
            at = base + channel // 4 * 208 + channel % 4 * 4
            assert at + 208 <= len(packed)
            lanes, biases = unpack_conv_block(packed[at : at + 208], 1, 3, 3, CORE)
            np.testing.assert_array_equal(lanes[0], weight[first + channel])
            assert biases[0] == bias[first + channel]
            real[(at + np.arange(0, 208, 16)) ^ 3] = True
        base += -(-size // 4) * 208
    assert not packed[~real].any(), "lanes without a channel are zero"


@pytest.mark.parametrize(("k_tile", "sizes"), [(19, [16, 3]), (16, [16, 3]), (5, [5, 5, 5, 4])])
def test_depthwise_channels_in_one_trigger_are_kept_apart(k_tile: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(1)
    weight, bias = int8(rng, 19, 1, 3, 3), int32(rng, 19)
    layer = depthwise_layer("d", Tensor("x", (19, 9, 9)), "y", weight, bias, requant=Shift(1))
    core = replace(CORE, depthwise_channels=16)
    packed = pack_digital_weights(core, layer, k_tile)
    at = first = 0
    for size in sizes:
        lanes, biases = unpack_conv_block(packed[at:], size, 3, 3, CORE)
        expected = np.zeros((16, size, 3, 3), np.int8)
        for channel in range(size):
            expected[channel, channel] = weight[first + channel, 0]
        np.testing.assert_array_equal(lanes, expected)
        np.testing.assert_array_equal(biases[:size], bias[first : first + size])
        at, first = at + 16 * size * 9 + 64, first + size
    assert at == len(packed)
    tiles = [min(k_tile, 19 - start) for start in range(0, 19, k_tile)]
    assert at == sum(core.depthwise_weight_bytes(k, 3, 3) for k in tiles)


def test_bytes_of_a_dense_block() -> None:
    rng = np.random.default_rng(2)
    weight, bias = int8(rng, 20, 21), int32(rng, 20)
    layer = dense_layer("f", Tensor("x", (21,)), "y", weight, bias, requant=Shift(1))
    packed = pack_digital_weights(CORE, layer, 20)
    size = 16 * 32 + 256
    assert len(packed) == 2 * size
    # (k=18, c=17): second block, second column block, lane 2, column 1.
    assert packed[(size + 256 + 2 * 16 + 1) ^ 3] == np.uint8(weight[18, 17])
    assert packed[(size + 512 + 2 * 16) ^ 3] == int(bias[18]) & 0xFF
    for block, used in ((0, 16), (1, 4)):
        lanes, biases = unpack_dense_block(packed[block * size :], 21, CORE)
        np.testing.assert_array_equal(lanes[:used], weight[16 * block :][:used])
        np.testing.assert_array_equal(biases[:used], bias[16 * block :][:used])
        assert not lanes[used:].any() and not biases[used:].any()


def test_bias_is_optional() -> None:
    rng = np.random.default_rng(3)
    weight = int8(rng, 3, 2, 1, 1)
    layer = conv2d_layer("c", Tensor("x", (2, 4, 4)), "y", weight, None, requant=Shift(1))
    assert not pack_digital_weights(CORE, layer, 3)[-64:].any()


@pytest.mark.parametrize("shape", [(5,), (16,), (2, 3, 5), (1, 2, 16), (3, 1, 33)])
def test_activations(shape: tuple[int, ...]) -> None:
    values = int8(np.random.default_rng(4), *shape)
    image = activation_to_l2(values, CORE)
    assert image.dtype == np.uint8 and len(image) % 16 == 0
    assert image[0 ^ 3] == np.uint8(values.reshape(-1)[0])
    np.testing.assert_array_equal(activation_from_l2(image, shape, CORE), values)
