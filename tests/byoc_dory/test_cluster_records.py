"""Records of weights for cores with SIMD: every byte where the kernels look for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from byoc_dory.layers import Gemm, MulShift, Tensor, Weighted, conv2d_layer, gemm_layer, matrix
from byoc_dory.soc.cluster import packing as records
from byoc_dory.soc.cluster.packing import block_of, pack
from byoc_dory.soc.cluster.tiles import tiling_problem
from byoc_dory.soc.siracusa.description import CLUSTER_CORES, SIRACUSA


def int32_at(image: np.ndarray, place: int) -> int:
    return int(image[place : place + 4].view("<i4")[0])


@pytest.mark.parametrize("wide", [False, True])
def test_quads(wide: bool) -> None:
    rng = np.random.default_rng(3)
    k, window = 6, 10
    weights = rng.integers(-128, 128, (k, window)).astype(np.int8)
    bias, mul, add = (rng.integers(-(2**31), 2**31, k) for _ in range(3))
    shift = rng.integers(0, 32, k)
    image = records.pack_quads(weights, bias, mul, add, shift, wide=wide)
    size = records.quad_bytes(window)
    assert image.size == 2 * size == 2 * (16 * 3 + 64)
    for channel in range(8):
        quad, lane = divmod(channel, 4)
        start = quad * size
        for at in range(12):
            byte = image[start + 16 * (at // 4) + 4 * lane + at % 4].view(np.int8)
            assert byte == (weights[channel, at] if channel < k and at < window else 0)
        factors = start + 48 + 12 * lane
        there = channel < k
        folded = add[channel] + (0 if wide else bias[channel] * mul[channel]) if there else 0
        assert int32_at(image, factors) == (mul[channel] if there else 0)
        assert (int32_at(image, factors + 4) - int(folded)) % 2**32 == 0
        assert int32_at(image, factors + 8) == (shift[channel] if there else 0)
        kept = bias[channel] if there and wide else 0
        assert int32_at(image, start + 96 + 4 * lane) == kept


@pytest.mark.parametrize(("fy", "wide", "unsigned"), [(3, False, True), (5, True, False)])
def test_channels(fy: int, wide: bool, unsigned: bool) -> None:
    rng = np.random.default_rng(4)
    c, fx = 3, 2
    weights = rng.integers(-128, 128, (c, fy, fx)).astype(np.int8)
    bias, mul, add, shift = (rng.integers(0, 30, c) for _ in range(4))
    image = records.pack_channels(weights, bias, mul, add, shift, unsigned=unsigned, wide=wide)
    size = records.channel_bytes(fy, fx)
    height = -(-fy // 4) * 4
    assert image.size == c * size == c * (height * fx + 16)
    for channel in range(c):
        start = channel * size
        for x in range(fx):
            column = image[start + height * x : start + height * (x + 1)].view(np.int8)
            assert column[:fy].tolist() == weights[channel, :, x].tolist()
            assert not column[fy:].any()
        total = int(bias[channel]) + (128 * int(weights[channel].sum()) if unsigned else 0)
        numbers = [int32_at(image, start + size - 16 + 4 * i) for i in range(4)]
        folded = int(add[channel]) + (0 if wide else total * int(mul[channel]))
        assert numbers == [total if wide else 0, mul[channel], folded, shift[channel]]


def test_blocks_of_columns() -> None:
    rng = np.random.default_rng(5)
    weight = rng.integers(-128, 128, (10, 7)).astype(np.int8)
    bias = rng.integers(-99, 99, 10).astype(np.int32)
    layer = gemm_layer(
        "g", matrix("x", 3, 7), weight, bias, requant=MulShift((3,), (9,), (5,))
    )  # fmt: skip
    assert isinstance(layer, Gemm)
    block = block_of(layer, 8, simd=True)
    image = pack(layer, 8, simd=True)
    assert (block.bias, block.muls, block.adds, block.shifts, block.table) == (-1,) * 5
    assert image.size == 2 * block.bytes
    ones = np.ones(10, np.int64)
    for start, count in ((0, 8), (8, 2)):
        part = slice(start, start + count)
        expected = records.pack_quads(
            weight[part], bias[part], 3 * ones[part], 5 * ones[part], 9 * ones[part]
        )
        at = start // 8 * block.bytes + block.weights
        assert image[at : at + expected.size].tolist() == expected.tolist()


@pytest.mark.parametrize("outputs", [*range(1, 18), 30, 31])
def test_blocks_have_room_in_l1(outputs: int) -> None:
    weight = np.ones((outputs, 13, 5, 5), np.int8)
    requant = MulShift((3,) * outputs, (4,) * outputs, (0,) * outputs)
    layer = conv2d_layer("c", Tensor("x", (13, 9, 9)), "y", weight, None, requant=requant)
    problem = tiling_problem(SIRACUSA, CLUSTER_CORES, layer, 1 << 20)
    assert isinstance(layer, Weighted)
    for k in {outputs, *range(4, outputs, 4)}:
        _, _, room = problem.memory(replace(problem.whole, k=k))
        assert block_of(layer, k, simd=True).bytes <= room, k
