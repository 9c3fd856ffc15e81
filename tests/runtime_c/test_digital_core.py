"""The digital core against numpy, and its cycles against the published and derived figures."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.runtime_c.device import (
    ADD,
    CONV,
    CORE,
    DENSE,
    DEPTHWISE,
    L1,
    L2,
    Device,
    pack_conv,
    pack_dense,
    pack_depthwise,
    pack_maps,
    unpack_maps,
    up,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
PROPERTY = settings(max_examples=120, deadline=None)


def requantize(sums: np.ndarray, shift: int, relu: bool) -> np.ndarray:
    """int64 sums -> int8, with the core's wrap at 32 bits."""
    wrapped = sums.astype(np.uint64).astype(np.uint32).view(np.int32)
    return np.clip(wrapped >> shift, 0 if relu else -128, 127).astype(np.int8)


def reference_conv(
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray,
    out: tuple[int, int],
    stride: int,
    pad: tuple[int, int],
    shift: int,
    relu: bool,
) -> np.ndarray:
    """The definition, one output position at a time over an infinite plane of zeros."""
    channels, rows, columns = x.shape
    fy, fx = w.shape[2:]
    margin = 160
    plane = np.zeros((channels, rows + 2 * margin + 600, columns + 2 * margin + 600), np.int64)
    plane[:, margin : margin + rows, margin : margin + columns] = x
    sums = np.zeros((w.shape[0], *out), np.int64)
    for y in range(out[0]):
        for z in range(out[1]):
            top, left = margin + y * stride - pad[0], margin + z * stride - pad[1]
            window = plane[:, top : top + fy, left : left + fx]
            sums[:, y, z] = np.tensordot(w.astype(np.int64), window, 3) + bias
    return requantize(sums, shift, relu)


def conv_registers(
    k: int,
    x: np.ndarray,
    w: np.ndarray,
    out: tuple[int, int],
    stride: int,
    pad: tuple[int, int],
    shift: int,
    relu: bool,
) -> dict[int, int]:
    channels, rows, columns = x.shape
    fy, fx = w.shape[2:]
    return {
        0x10: k | channels << 16,
        0x14: rows | columns << 16,
        0x18: out[0] | out[1] << 16,
        0x1C: fy | fx << 8 | stride << 16 | (pad[0] & 255) << 24,
        0x20: (pad[1] & 255) | shift << 8 | relu << 16,
        0x24: 0,
        0x28: channels * rows * up(columns),
        0x30: L2.base,
    }


def run_conv(
    device: Device,
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray,
    out: tuple[int, int],
    stride: int = 1,
    pad: tuple[int, int] = (0, 0),
    shift: int = 0,
    relu: bool = False,
) -> tuple[np.ndarray, int]:
    """Return the output maps (all of them, surplus ones too) and the cycles."""
    packed = pack_conv(w, bias)
    device.l2[: packed.size] = packed
    device.put(0, pack_maps(x))
    registers = conv_registers(w.shape[0], x, w, out, stride, pad, shift, relu)
    cycles = device.start(CONV, registers)
    maps = up(w.shape[0])
    raw = device.get(registers[0x28], maps * out[0] * up(out[1]))
    return unpack_maps(raw, maps, *out), cycles


@st.composite
def convs(draw: st.DrawFn) -> dict[str, Any]:
    fy, fx = draw(st.sampled_from([1, 3, 5, 7])), draw(st.sampled_from([1, 3, 5, 7]))
    k, c = draw(st.integers(1, 35)), draw(st.integers(1, 9))
    iy, ix = draw(st.integers(1, 20)), draw(st.integers(1, 36))
    out = draw(st.integers(1, 12)), draw(st.integers(1, 36))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    limit = draw(st.sampled_from([1, 16, 128]))
    w = rng.integers(-limit, limit, (k, c, fy, fx)).astype(np.int8)
    if draw(st.booleans()):
        w[draw(st.integers(0, k - 1)) :] = 0  # few lanes in use take another path in the model
    bias_limit = draw(st.sampled_from([1, 1000, 2**31]))
    return {
        "x": rng.integers(-limit, limit, (c, iy, ix)).astype(np.int8),
        "w": w,
        "bias": rng.integers(-bias_limit, bias_limit, k).astype(np.int32),
        "out": out,
        "stride": draw(st.sampled_from([1, 2])),
        "pad": (draw(st.integers(-8, 8)), draw(st.integers(-8, 8))),
        "shift": draw(st.integers(0, 31)),
        "relu": draw(st.booleans()),
    }


@PROPERTY
@given(case=convs())
def test_conv_equals_numpy(models: ctypes.CDLL, case: dict[str, Any]) -> None:
    device = Device(models)
    got, _ = run_conv(device, **case)
    want = reference_conv(**case)
    k = want.shape[0]
    np.testing.assert_array_equal(got[:k], want)
    assert not got[k:].any(), "surplus maps of zero weights and biases must be zero"
    assert device.error is None
    device.close()


def test_accumulator_wraps_at_32_bits(device: Device) -> None:
    x = np.full((1, 1, 1), 1, np.int8)
    w = np.full((1, 1, 1, 1), 1, np.int8)
    got, _ = run_conv(device, x, w, np.array([2**31 - 1], np.int32), (1, 1), shift=24)
    assert got[0, 0, 0] == -128


@pytest.mark.parametrize("pad", [(-128, 127), (127, -128)])
def test_extreme_pads_read_only_zeros(device: Device, pad: tuple[int, int]) -> None:
    x = np.full((1, 2, 2), 77, np.int8)
    w = np.ones((16, 1, 3, 3), np.int8)
    got, _ = run_conv(device, x, w, np.full(16, 5, np.int32), (2, 2), pad=pad)
    assert (got == 5).all()


@PROPERTY
@given(
    k=st.integers(1, 16),
    c=st.integers(1, 200),
    shift=st.integers(0, 31),
    relu=st.booleans(),
    seed=st.integers(0, 2**32),
    bias=INT32,
)
@example(k=3, c=17, shift=0, relu=False, seed=0, bias=2**31 - 1)
def test_dense_equals_numpy(
    models: ctypes.CDLL, k: int, c: int, shift: int, relu: bool, seed: int, bias: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, c).astype(np.int8)
    w = rng.integers(-128, 128, (k, c)).astype(np.int8)
    biases = np.roll(np.r_[bias, rng.integers(-1000, 1000, k - 1)].astype(np.int32), seed % k)
    device = Device(models)
    packed = pack_dense(w, biases)
    device.l2[: packed.size] = packed
    device.put(0, pack_maps(x.reshape(1, 1, c)))
    registers = {
        0x10: k | c << 16,
        0x20: shift << 8 | relu << 16,
        0x24: 0,
        0x28: up(c),
        0x30: L2.base,
    }
    cycles = device.start(DENSE, registers)
    got = unpack_maps(device.get(up(c), 16), 1, 1, 16)[0, 0]
    want = requantize(w.astype(np.int64) @ x.astype(np.int64) + biases, shift, relu)
    np.testing.assert_array_equal(got[:k], want)
    constant = CORE.dense_trigger_cycles - CORE.dense_driver_cycles
    assert cycles == constant + -(-c // 16) + packed.size // 16
    device.close()


@PROPERTY
@given(
    groups=st.integers(1, 60), shift=st.integers(0, 9), relu=st.booleans(), seed=st.integers(0, 99)
)
def test_add_equals_numpy(
    models: ctypes.CDLL, groups: int, shift: int, relu: bool, seed: int
) -> None:
    size = 4 * groups
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-128, 128, (2, size)).astype(np.int8)
    device = Device(models)
    device.put(0, a)
    device.put(1024, b)
    registers = {0x10: size, 0x20: shift << 8 | relu << 16, 0x24: 0, 0x2C: 1024, 0x28: 2048}
    cycles = device.start(ADD, registers)
    got = device.get(2048, size)
    want = requantize(a.astype(np.int64) + b.astype(np.int64), shift, relu)
    np.testing.assert_array_equal(got, want)
    constant = CORE.add_trigger_cycles - CORE.add_driver_cycles
    assert cycles == constant + -(-size // 16)
    device.close()


@settings(max_examples=40, deadline=None)
@given(
    channels=st.integers(1, 9),
    rows=st.integers(1, 9),
    columns=st.integers(1, 40),
    filter_size=st.sampled_from([3, 5]),
    stride=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**32),
)
def test_depthwise_channel_by_channel(
    models: ctypes.CDLL,
    channels: int,
    rows: int,
    columns: int,
    filter_size: int,
    stride: int,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    pad = filter_size // 2
    out = (
        (rows + 2 * pad - filter_size) // stride + 1,
        (columns + 2 * pad - filter_size) // stride + 1,
    )
    assume(min(out) > 0)
    x = rng.integers(-128, 128, (channels, rows, columns)).astype(np.int8)
    w = rng.integers(-128, 128, (channels, 1, filter_size, filter_size)).astype(np.int8)
    bias = rng.integers(-(2**20), 2**20, channels).astype(np.int32)
    device = Device(models)
    device.put(0, pack_maps(x))
    packed = pack_depthwise(w, bias)
    device.l2[: packed.size] = packed
    device.l2[packed.size :][:64] = 0x55  # nothing behind them matters
    block = 16 * filter_size**2 + 64
    in_map, out_map = rows * up(columns), out[0] * up(out[1])
    for i in range(channels):
        registers = conv_registers(16, x[i : i + 1], w[i : i + 1], out, stride, (pad, pad), 9, True)
        registers[0x24] = i * in_map
        registers[0x28] = channels * in_map + i * out_map
        registers[0x30] = L2.base + i // 4 * block + i % 4 * 4
        device.start(DEPTHWISE, registers)
    got = unpack_maps(device.get(channels * in_map, channels * out_map), channels, *out)
    for i in range(channels):
        want = reference_conv(
            x[i : i + 1], w[i : i + 1], bias[i : i + 1], out, stride, (pad, pad), 9, True
        )
        np.testing.assert_array_equal(got[i], want[0])
    device.close()


# Layer detail derived from the published latencies: (name, K, C, oy, ox, fy, fx, stride, pad top,
# pad left, array cycles, weight cycles).  Input sizes follow from them.
LAYERS = [
    ("ResNet c1", 16, 3, 32, 32, 3, 3, 1, 1, 1, 3_920, 31),
    ("ResNet c2", 16, 16, 32, 32, 3, 3, 1, 1, 1, 13_696, 148),
    ("ResNet c4", 32, 16, 16, 16, 3, 3, 2, 0, 0, 6_848, 296),
    ("ResNet c5", 32, 32, 16, 16, 3, 3, 1, 1, 1, 12_608, 584),
    ("ResNet c6", 32, 16, 16, 16, 1, 1, 2, 0, 0, 1_856, 40),
    ("ResNet c7", 64, 32, 8, 8, 3, 3, 2, 0, 0, 12_608, 1_168),
    ("ResNet c8", 64, 64, 8, 8, 3, 3, 1, 1, 1, 23_360, 2_320),
    ("ResNet c9", 64, 32, 8, 8, 1, 1, 2, 0, 0, 2_880, 144),
    ("DS-CNN c1", 64, 1, 5, 25, 5, 7, 2, 2, 3, 2_448, 156),
    ("DS-CNN PW", 64, 64, 5, 25, 1, 1, 1, 0, 0, 6_160, 272),
    ("MobileNet c1", 8, 3, 48, 48, 3, 3, 2, 0, 0, 8_892, 31),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer[0])
def test_layer_detail_of_the_derived_table(device: Device, layer: tuple[Any, ...]) -> None:
    _, k, c, oy, ox, fy, fx, stride, top, left, array, weights = layer
    # One-sided padding at stride 2: the last window hangs over by what the first does not.
    iy = {5: 10}.get(oy, oy * stride)
    ix = {25: 49 if stride == 2 else 25}.get(ox, ox * stride)
    x = np.ones((c, iy, ix), np.int8)
    if fy == 1 and stride == 1:
        x = x[:, :oy, :ox]
    w = np.ones((k, c, fy, fx), np.int8)
    packed = pack_conv(w, np.zeros(k, np.int32))
    device.l2[: packed.size] = packed
    device.put(0, pack_maps(x))
    registers = conv_registers(k, x, w, (oy, ox), stride, (top, left), 0, False)
    cycles = device.start(CONV, registers)
    assert cycles + CORE.conv_driver_cycles == array + weights + 485
    event = device.events()[-1]
    assert (event["array"], event["weights"]) == (array, weights)
    assert event["macs"] == w.size * oy * ox


def test_depthwise_reaches_the_published_rate(device: Device) -> None:
    """Inside the image 3x3 depthwise computes 144 MAC in 38 cycles; the paper says 3.75."""
    x = np.ones((1, 18, 18), np.int8)
    w = np.ones((1, 1, 3, 3), np.int8)
    packed = pack_conv(w, np.zeros(1, np.int32))
    device.l2[: packed.size] = packed
    device.put(0, pack_maps(x))
    device.start(DEPTHWISE, conv_registers(16, x, w, (16, 16), 1, (0, 0), 0, False))
    event = device.events()[-1]
    assert event["macs"] / event["array"] == pytest.approx(144 / 38)
    assert event["macs"] / event["array"] == pytest.approx(3.75, rel=0.02)


def test_depthwise_layer_of_ds_cnn(device: Device) -> None:
    x = np.ones((1, 5, 25), np.int8)
    w = np.ones((1, 1, 3, 3), np.int8)
    packed = pack_conv(w, np.zeros(1, np.int32))
    device.l2[: packed.size] = packed
    device.put(0, pack_maps(x))
    cycles = device.start(DEPTHWISE, conv_registers(16, x, w, (5, 25), 1, (1, 1), 0, False))
    total = cycles + CORE.depthwise_driver_cycles
    assert 64 * total == 23_296 + 832 + 33_152


def test_l1_holds_what_the_description_says(device: Device) -> None:
    device.dma(0, L1.size - 16, 16)
    assert device.error is None
