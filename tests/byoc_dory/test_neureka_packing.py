"""The layout of N-EUREKA's weights, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byoc_dory.soc.siracusa.neureka import NEUREKA
from byoc_dory.soc.siracusa.neureka_core import Mode
from byoc_dory.soc.siracusa.neureka_tiles import (
    pack_weights,
    packed_bytes,
    smallest_bits,
)
from tests.byoc_dory.unpacking import unpack_weights
from tests.reference.neureka import CODE, Job, Kind, stored_weights

KINDS: tuple[Kind, ...] = ("3x3", "depthwise", "1x1")


@given(
    kind=st.sampled_from(KINDS),
    outputs=st.integers(1, 70),
    inputs=st.integers(1, 70),
    bits=st.integers(2, 8),
    low=st.integers(-128, 0),
    seed=st.integers(0, 2**32 - 1),
)
def test_packing(kind: Kind, outputs: int, inputs: int, bits: int, low: int, seed: int) -> None:
    mode = Mode(CODE[kind])
    side = 1 if kind == "1x1" else 3
    shape = (outputs, 1 if kind == "depthwise" else inputs, side, side)
    weights = np.random.default_rng(seed).integers(low, low + 2**bits, shape)
    packed = pack_weights(weights, mode, NEUREKA, bits)
    assert packed.offset == weights.min()
    x = np.zeros((3, 3, inputs), np.uint8)
    assert packed.data.tobytes() == stored_weights(Job(kind, x, weights, bits))
    assert packed.data.size == packed_bytes(mode, outputs, inputs, bits, NEUREKA)
    assert np.array_equal(unpack_weights(packed, shape, mode, NEUREKA), weights)


@pytest.mark.parametrize(
    ("mode", "outputs", "inputs", "bits", "size"),
    [
        (Mode.CONV3X3, 1, 28, 8, 256),
        (Mode.CONV3X3, 64, 64, 8, 32 * 8 * 64 * 3),
        (Mode.CONV3X3, 64, 64, 2, 32 * 2 * 64 * 3),
        (Mode.CONV1X1, 64, 64, 8, 4096),
        (Mode.CONV1X1, 64, 64, 2, 4096),
        (Mode.DEPTHWISE3X3, 64, 64, 8, 32 * 8 * 3),
    ],
)
def test_sizes(mode: Mode, outputs: int, inputs: int, bits: int, size: int) -> None:
    assert packed_bytes(mode, outputs, inputs, bits, NEUREKA) == size


def test_the_fewest_bits_are_the_default() -> None:
    for low, high, bits in ((-1, 1, 2), (5, 5, 2), (-4, 3, 3), (-4, 4, 4), (-128, 127, 8)):
        weights = np.array([low, high]).reshape(2, 1, 1, 1)
        assert smallest_bits(weights, NEUREKA) == bits
        assert pack_weights(weights, Mode.CONV1X1, NEUREKA).bits == bits


def test_what_is_refused() -> None:
    weights = np.array([-128, 128]).reshape(2, 1, 1, 1)
    with pytest.raises(ValueError, match="from -128 to 128 need 9 bits; N-EUREKA has at most 8"):
        pack_weights(weights, Mode.CONV1X1, NEUREKA)
    with pytest.raises(ValueError, match="from -128 to 0 do not fit 7 bits; use 8 to 8"):
        pack_weights(np.minimum(weights, 0), Mode.CONV1X1, NEUREKA, 7)
    with pytest.raises(ValueError, match="do not fit 9 bits"):
        pack_weights(np.minimum(weights, 0), Mode.CONV1X1, NEUREKA, 9)
    with pytest.raises(ValueError, match=r"CONV3X3 job are \[K, C, 3, 3\], not \[2, 1, 1, 1\]"):
        pack_weights(weights, Mode.CONV3X3, NEUREKA)
    with pytest.raises(ValueError, match=r"are \[C, 1, 3, 3\], not \[2, 2, 3, 3\]"):
        pack_weights(np.zeros((2, 2, 3, 3), np.int64), Mode.DEPTHWISE3X3, NEUREKA)
