"""Images of the analog core's array, against the words of their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byoc_dory.layers import AnalogRequant, Tensor, conv2d_layer
from byoc_dory.soc.diana.cores import AnalogCore
from byoc_dory.soc.diana.description import DIANA
from byoc_dory.soc.diana.packing import (
    encode_image,
    pack_analog_weights,
    tile_bytes,
    unrolled,
)
from tests.byoc_dory.analog import requant, ternary
from tests.byoc_dory.unpacking import decode_image

CORE = DIANA.accelerator("analog")
assert isinstance(CORE, AnalogCore)


def bit(image: np.ndarray, plane: int, row: int, column: int, columns: int) -> int:
    """A stored bit, counted through the words of the definition."""
    word = (plane * (image.size * 4 // columns) + row) * (columns // 32) + column // 32
    return int(image.view("<u4")[word]) >> (column % 32) & 1


@pytest.mark.parametrize(
    ("row", "column", "weight", "plane"),
    [(0, 0, 1, 0), (0, 0, -1, 1), (0, 1, 1, 1), (63, 1, -1, 0), (64, 0, 1, 1), (64, 33, 1, 0)],
)
def test_a_cell_is_where_the_definition_says(
    row: int, column: int, weight: int, plane: int
) -> None:
    cells = np.zeros((70, 40), np.int8)
    cells[row, column] = weight
    image = encode_image(cells, CORE)
    assert image.size == 288 * 128 // 4
    assert sum(int(byte).bit_count() for byte in image) == 1
    assert bit(image, plane, 287 - row, column, 128) == 1


@given(rows=st.integers(1, 1152), columns=st.integers(1, 512), seed=st.integers(0, 99))
def test_round_trip(rows: int, columns: int, seed: int) -> None:
    cells = ternary(np.random.default_rng(seed), rows, columns)
    image = encode_image(cells, CORE)
    assert image.size == CORE.image_bytes(rows, columns) <= CORE.weight_memory
    np.testing.assert_array_equal(decode_image(image, rows, columns, CORE), cells)


@given(
    k=st.integers(1, 5), c=st.integers(1, 4), fy=st.integers(1, 3), fx=st.integers(1, 3),
    u=st.sampled_from([1, 2, 4, 8]), seed=st.integers(0, 99),
)  # fmt: skip
def test_unrolled_cells_compute_neighbouring_columns(
    k: int, c: int, fy: int, fx: int, u: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    weight = ternary(rng, k, c, fy, fx)
    window = rng.integers(-64, 64, (c, fy, fx + u - 1))
    sums = window.reshape(-1) @ unrolled(weight, u)
    for column in range(u):
        want = (weight * window[:, :, column : column + fx]).sum((1, 2, 3))
        np.testing.assert_array_equal(sums.reshape(u, k)[column], want)


def test_tiles_and_passes_follow_each_other() -> None:
    """Each channel tile: the images of its passes, then its factors."""
    rng = np.random.default_rng(1)
    weight = ternary(rng, 21, 300, 3, 3)  # 128 channels a pass
    factors = AnalogRequant(16, tuple(range(-10, 11)), tuple(range(21)), 3, 1152)
    layer = conv2d_layer("l", Tensor("x", (300, 9, 9)), "y", weight, None, requant=factors)
    packed = pack_analog_weights(CORE, layer, 16, 1)
    assert packed.size == tile_bytes(CORE, layer, 16, 1) + tile_bytes(CORE, layer, 5, 1)
    at = 0
    for first, k in ((0, 16), (16, 5)):
        for c in (0, 128, 256):
            channels = min(128, 300 - c)
            size = CORE.image_bytes(9 * channels, k)
            got = decode_image(packed[at : at + size], 9 * channels, k, CORE)
            want = weight[first : first + k, c : c + channels].reshape(k, -1).T
            np.testing.assert_array_equal(got, want)
            at += size
        got = packed[at : at + 4 * k].view("<i2").reshape(k, 2)
        assert got.tolist() == [[n - 10, n] for n in range(first, first + k)]
        at += 4 * k


def test_published_sizes_of_images() -> None:
    """What the four networks' arrays take as DORY stores them (bytes of images alone)."""
    networks = {
        # (rows, columns) of each layer: DS-CNN, MobileNet, ToyAdmos
        55_296: [(35, 64), *[(64, 64)] * 4, (64, 12)],
        147_456: [(640, 128), *[(128, 128)] * 3, (128, 8), (8, 128), *[(128, 128)] * 3, (128, 640)],
    }
    for size, layers in networks.items():
        assert sum(CORE.image_bytes(*layer) for layer in layers) == size


def test_what_is_no_analog_layer_cannot_be_packed() -> None:
    from byoc_dory.layers import Shift

    weight = np.ones((1, 1, 1, 1), np.int8)
    layer = conv2d_layer("l", Tensor("x", (1, 1, 1)), "y", weight, None, requant=Shift(1))
    with pytest.raises(ValueError, match="not a layer for an in-memory array"):
        pack_analog_weights(CORE, layer, 1, 1)
    assert requant(np.random.default_rng(0), 4, 9).rows == CORE.rows
