"""Operations on elements, pools and tables of the Ethos-U's model, field by field, against numpy.

Networks do not notice some mistakes (a table one entry off, a rounding that softmax divides out).
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest

from tests.runtime_c.ethos_u import DONE, EthosU, aligned, library
from tests.runtime_c.ethos_u_arithmetic import bricks, limited, scaled, unbricked, upscaled
from tests.runtime_c.ethos_u_stream import ELEMENTWISE, Map, Stream, kernel

Array = np.ndarray[Any, Any]
Rng = np.random.Generator

SECOND, OUT, TABLE, SIZE = 0x4000, 0x8000, 0x10000, 0x11000
TABLES = 0x5800  # of the shared buffer of 24 KB
ROUNDINGS = ("TFL", "TRUNCATE", "NATURAL")


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    return library()


def kind_of(fm: Map) -> np.dtype[Any]:
    return np.dtype(f"<{'i' if fm.signed else 'u'}{fm.bytes}")


def put(npu: EthosU, fm: Map, data: Array) -> list[tuple[int, int, int]]:
    """Write a map, tile by tile; returns what was written."""
    rows, columns, channels = fm.shape
    width, left, right = fm.tiles or (columns, rows, rows)
    kind, known = kind_of(fm), []
    tiles = [
        (fm.at, 0, left, 0, width),
        (fm.bases[0], 0, right, width, columns),
        (fm.bases[1], left, rows, 0, width),
        (fm.bases[2], right, rows, width, columns),
    ]
    registers = fm.registers("IFM")
    for base, top, bottom, first, last in tiles:
        for y in range(top, min(bottom, rows)):
            for x in range(first, min(last, columns)):
                at = base + (y - top) * registers["IFM_STRIDE_Y"]
                step = 16 * fm.bytes if fm.bricks else registers["IFM_STRIDE_X"]
                for c in range(0, channels, 16 if fm.bricks else channels):
                    part = data[y, x, c : c + 16 if fm.bricks else channels].astype(kind)
                    start = at + (x - first) * step
                    start += c // 16 * registers["IFM_STRIDE_C"] if fm.bricks else 0
                    raw = np.frombuffer(part.tobytes(), np.uint8)
                    npu.regions[1][start : start + raw.size] = raw
                    known.append((1, start, raw.size))
    return known


def get(npu: EthosU, fm: Map) -> Array:
    """Read a map of one tile."""
    rows, columns, channels = fm.shape
    shape = (rows, -(-channels // 16), columns, 16) if fm.bricks else fm.shape
    count = math.prod(shape) * fm.bytes
    raw = npu.regions[1][fm.at : fm.at + count].view(kind_of(fm)).reshape(shape)
    return unbricked(raw, channels) if fm.bricks else raw


def values(rng: Rng, fm: Map) -> Array:
    info = np.iinfo(kind_of(fm))
    drawn = rng.integers(info.min, int(info.max) + 1, fm.shape)
    ends = rng.choice([info.min, info.max, 0, 1], fm.shape)
    return np.where(rng.random(fm.shape) < 0.1, ends, drawn)


def draw_map(rng: Rng, shape: tuple[int, int, int], at: int, size: int, signed: bool) -> Map:
    zero = 0 if size == 4 else int(rng.integers(-128, 128)) if signed else int(rng.integers(256))
    fm = Map(shape, at, size, signed, bool(rng.random() < 0.4), zero)
    if at == OUT or rng.random() < 0.6:
        return fm
    rows, columns, _ = shape
    width, left, right = (int(rng.integers(1, n + 1)) for n in (columns, rows, rows))
    return fm.moved(tiles=(width, left, right), bases=(at + 0x1000, at + 0x2000, at + 0x3000))


def sum_operands(
    rng: Rng, registers: dict[str, Any], size: int, a: Array, b: Array
) -> tuple[Array, Array]:
    """Draw how a sum's operands are scaled; returns them scaled."""
    mode = int(rng.integers(3)) if size < 4 else 0
    rounding = str(rng.choice(ROUNDINGS))
    registers["IFM_PRECISION"] |= mode << 8 | ROUNDINGS.index(rounding) << 14
    if mode == 0:
        factors = [int(v) for v in rng.integers(1, 1 << 16, 2)]
        registers["OPA_SCALE"], registers["OPB_SCALE"] = (factors[0], 0), factors[1]
        return (a, b) if size == 4 else (a * factors[0], b * factors[1])
    factor, shift = int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(28, 34))
    registers["OPA_SCALE"], registers["OPB_SCALE"] = (factor, shift), 0
    left = 20 if size == 1 else 15
    first = scaled(a << left, factor, shift + left, rounding) if mode == 1 else a << (left - 1)
    second = scaled(b << left, factor, shift + left, rounding) if mode == 2 else b << (left - 1)
    return first, second


def combined(
    rng: Rng, name: str, registers: dict[str, Any], size: int, a: Array, b: Array, rounding: str
) -> Array:
    """What an operation gives before zero point and limits; draws its scales."""
    a, b = a.astype(object), b.astype(object)
    multiplier, shift = int(rng.integers(1, 1 << 31)), int(rng.integers(25, 50))
    if name == "MUL" and size == 4:
        multiplier, shift = 1 << 30, int(rng.choice([0, 1, 30, 31, 32, 37, 60]))
        registers["OFM_SCALE"] = (multiplier, shift)
        return np.clip(scaled(a * b, 1, shift, rounding), -(1 << 31), (1 << 31) - 1)
    if name in ("CLZ", "SHR", "SHL"):
        if name == "CLZ":
            return np.frompyfunc(lambda v: 32 - (int(v) % (1 << 32)).bit_length(), 1, 1)(a)
        if name == "SHL":
            wrap = np.frompyfunc(
                lambda v, s: ((int(v) << int(s)) + (1 << 31)) % (1 << 32) - (1 << 31), 2, 1
            )
            return np.asarray(wrap(a, b), object)
        other = rounding if rounding != "TFL" else "NATURAL"
        return np.asarray(scaled(a, 1, b, other), object)
    registers["OFM_SCALE"] = (multiplier, shift)
    if name in ("ADD", "SUB"):
        a, b = sum_operands(rng, registers, size, a, b)
        return scaled(a + b if name == "ADD" else a - b, multiplier, shift, rounding)
    if name == "MUL":
        return scaled(a * b, multiplier, shift, rounding)
    if name == "LRELU":
        return np.where(a < 0, scaled(a, multiplier, shift, rounding), a)
    picked = {"MIN": np.minimum, "MAX": np.maximum}[name](a, b) if name != "ABS" else np.abs(a)
    return scaled(picked, multiplier, shift, rounding)


def limits(rng: Rng, ofm: Map, registers: dict[str, Any]) -> tuple[int, int]:
    """Draw minimum and maximum, and whether another range is forced."""
    info = np.iinfo(kind_of(ofm))
    clip = int(rng.choice([0, 0, 2, 3, 5]))
    forced = {0: (info.min, int(info.max)), 2: (0, 255), 3: (-128, 127), 5: (-32768, 32767)}[clip]
    low, high = sorted(int(v) for v in rng.integers(-128, 128, 2))
    if clip == 2 or (clip == 0 and not ofm.signed):
        low, high = sorted((abs(low), abs(high)))
    registers["ACTIVATION"] = clip << 12
    registers["ACTIVATION_MIN"], registers["ACTIVATION_MAX"] = low, high
    if ofm.bytes == 4 and clip == 0:
        return forced
    low, high = max(low, forced[0]), min(high, forced[1])
    return low, high


def check_elements(lib: ctypes.CDLL, name: str, seed: int) -> None:
    rng = np.random.default_rng([seed, ELEMENTWISE.index(name)])
    shape = (int(rng.integers(1, 6)), int(rng.integers(1, 6)), int(rng.integers(1, 40)))
    size = 4 if name in ("CLZ", "SHR", "SHL") else int(rng.choice([1, 1, 2, 4]))
    signed = size == 4 or bool(rng.random() < 0.7)
    ifm = draw_map(rng, shape, 0, size, signed)
    out_size = 4 if size == 4 and rng.random() < 0.7 else int(rng.choice([1, 2]))
    ofm = draw_map(rng, shape, OUT, out_size, out_size == 4 or signed)
    flags = int(rng.integers(8)) | int(rng.integers(2)) << 6
    small = tuple(1 if flags >> axis & 1 else n for axis, n in enumerate(shape))
    ifm2 = draw_map(rng, small, SECOND, size, signed)  # type: ignore[arg-type]
    rounding = str(rng.choice(ROUNDINGS))
    registers = kernel(ifm, ofm, rounding=rounding)
    low, high = limits(rng, ofm, registers)
    npu = EthosU(lib, {1: aligned(SIZE)})
    first = values(rng, ifm)
    known = put(npu, ifm, first)
    a = first.astype(np.int64) - ifm.zero_point
    b = np.zeros(shape, np.int64)
    if name not in ("LRELU", "ABS", "CLZ"):
        second = values(rng, ifm2) if name not in ("SHR", "SHL") else rng.integers(0, 32, small)
        registers |= ifm2.registers("IFM2")
        if rng.random() < 0.3:
            flags |= 0x80
            top = 32 if name in ("SHR", "SHL") else 128
            scalar = int(rng.integers(-top if signed and top == 128 else 0, top))
            registers["IFM2_SCALAR"], second = scalar, np.full((1, 1, 1), scalar)
        else:
            known += put(npu, ifm2, second)
        registers["IFM2_BROADCAST"] = flags
        b = np.broadcast_to(second.astype(np.int64) - ifm2.zero_point, shape)
        if flags & 0x40:
            if name in ("SHR", "SHL"):
                registers["IFM2_BROADCAST"] = flags & ~0x40
            else:
                a, b = b, a
    result = combined(rng, name, registers, size, a, b, rounding)
    wanted = limited(result, ofm.zero_point, low, high)
    stream = Stream().set(**registers).op("ELEMENTWISE", ELEMENTWISE.index(name))
    done = npu.run(stream.payload(), written=known)
    assert (done.status, done.complaint) == (DONE, ""), (seed, registers)
    found = get(npu, ofm)
    low_bits = np.frompyfunc(lambda v: int(v) % (1 << 8 * ofm.bytes), 1, 1)
    assert (low_bits(found) == low_bits(wanted)).all(), (name, seed, registers)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elements(lib: ctypes.CDLL, name: str) -> None:
    for seed in range(12):
        check_elements(lib, name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elements_at_length(lib: ctypes.CDLL, name: str) -> None:
    for seed in range(100, 400):
        check_elements(lib, name, seed)


# ---- tables ----


def identity(fm: Map, ofm: Map, activation: int, clip: int = 0) -> dict[str, Any]:
    """A copy of elements through a table."""
    limits = (-32768, 32767) if ofm.signed else (0, 255)
    registers = kernel(fm, ofm, activation=activation | clip << 12, limits=limits)
    return registers | {"IFM2_BROADCAST": 0x80, "IFM2_SCALAR": 0, "IFM2_PRECISION": 1}


def with_table(lib: ctypes.CDLL, fm: Map, ofm: Map, data: Array, table: Array, slot: int) -> Array:
    """A 1x1 average of the data, through a table that the DMA loads first."""
    npu = EthosU(lib, {1: aligned(SIZE)})
    raw = np.frombuffer(table.tobytes(), np.uint8)
    npu.regions[1][TABLE : TABLE + raw.size] = raw
    known = [*put(npu, fm, data), (1, TABLE, raw.size)]
    clip = 3 if ofm.bytes == 4 else 0
    stream = Stream().set(
        DMA0_SRC_REGION=1, DMA0_SRC=TABLE, DMA0_DST_REGION=0x103,
        DMA0_DST=TABLES + 256 * slot, DMA0_LEN=raw.size,
    ).op("DMA_START").op("DMA_WAIT")  # fmt: skip
    stream.set(**identity(fm, ofm, 16 + slot, clip)).op("POOL", 1)
    done = npu.run(stream.payload(), written=known)
    assert (done.status, done.complaint) == (DONE, "")
    return get(npu, ofm)


@pytest.mark.parametrize(("size", "slot"), [(1, 0), (1, 3), (1, 7), (4, 0), (4, 3), (4, 4)])
def test_every_entry_of_a_table(lib: ctypes.CDLL, size: int, slot: int) -> None:
    """Tables of 8-bit numbers: an entry for each, as wide as results; a slot has 256 bytes."""
    data = np.arange(-128, 128).reshape(2, 8, 16)
    fm, ofm = Map((2, 8, 16), 0), Map((2, 8, 16), OUT, size)
    table = np.random.default_rng(slot).permutation(256) * (1 if size == 1 else 99991) - 128
    found = with_table(lib, fm, ofm, data, table.astype(kind_of(ofm)), slot)
    assert (found == table[data + 128]).all()


def test_a_table_of_unsigned_numbers(lib: ctypes.CDLL) -> None:
    data = np.arange(256).reshape(2, 8, 16)
    fm, ofm = Map((2, 8, 16), 0, signed=False), Map((2, 8, 16), OUT, signed=False)
    table = np.random.default_rng(9).permutation(256)
    found = with_table(lib, fm, ofm, data, table.astype(np.uint8), 7)
    assert (found == table[data]).all()


def test_a_table_with_slopes(lib: ctypes.CDLL) -> None:
    """512 bases and slopes of 16-bit numbers: every step's ends and middle, all between of some."""
    rng = np.random.default_rng(4)
    steps = np.arange(512)[:, None] * 128 + np.array([0, 1, 63, 64, 127])
    data = np.concatenate([steps.ravel(), np.arange(1000, 1512)])[:3072] - 32768
    data = data.reshape(6, 32, 16)
    fm, ofm = Map((6, 32, 16), 0, 2), Map((6, 32, 16), OUT, 2)
    base, slope = rng.integers(-16000, 16000, 512), rng.integers(-8000, 8000, 512)
    table = np.stack([base, slope], 1).astype(np.int16)
    found = with_table(lib, fm, ofm, data, table, 0)
    place, rest = (data + 32768) // 128, (data + 32768) % 128
    assert (found == base[place] + np.floor(slope[place] * rest / 128 + 0.5)).all()


# ---- pools ----


def check_pool(lib: ctypes.CDLL, seed: int) -> None:
    rng = np.random.default_rng([seed, 99])
    kind = int(rng.integers(3))
    ky, kx = (1, 1) if kind == 2 else (int(v) for v in rng.integers(1, 5, 2))
    sy, sx = (1, 1) if kind == 2 else (int(v) for v in rng.integers(1, 4, 2))
    upscale = int(rng.choice([0, 0, 1, 2])) if sy == sx == 1 and kind != 2 else 0
    rows, columns, channels = (int(v) for v in rng.integers(1, (7, 7, 30)))
    pads = [0] * 4 if kind == 2 else [int(rng.integers(0, k)) for k in (ky, kx, ky, kx)]
    height = (rows - 1) * sy + ky - pads[0] - pads[2]
    width = (columns - 1) * sx + kx - pads[1] - pads[3]
    if height < 1 or width < 1:
        return
    size = int(rng.choice([1, 2] if kind < 2 else [1, 2, 4]))
    depth = int(rng.integers(1, 200)) if kind == 2 else channels
    seen = (-(-height // 2), -(-width // 2)) if upscale else (height, width)
    ifm = draw_map(rng, (*seen, depth), 0, size, True).moved(tiles=None)
    ofm = draw_map(rng, (rows, columns, 1 if kind == 2 else channels), OUT, size, True)
    rounding = str(rng.choice(ROUNDINGS))
    scale = (int(rng.integers(1 << 20, 1 << 31)), int(rng.integers(30, 40)))
    registers = kernel(ifm, ofm, rounding=rounding, scale=scale) | {
        "KERNEL_HEIGHT_M1": ky - 1,
        "KERNEL_WIDTH_M1": kx - 1,
        "KERNEL_STRIDE": (sx - 1 & 1) | (sy - 1 & 1) << 1 | (sx - 1 >> 1) << 6 | (sy - 1 >> 1) << 9,
        "IFM_PAD_TOP": pads[0],
        "IFM_PAD_LEFT": pads[1],
        "IFM_PAD_BOTTOM": pads[2],
        "IFM_PAD_RIGHT": pads[3],
        "IFM_UPSCALE": upscale,
    }
    npu = EthosU(lib, {1: aligned(SIZE)})
    data = values(rng, ifm)
    known = put(npu, ifm, data)
    real = upscaled(data.astype(np.int64) - ifm.zero_point, upscale, height, width)
    result = np.zeros(ofm.shape, object)
    for y in range(rows):
        for x in range(columns):
            top, left = y * sy - pads[0], x * sx - pads[1]
            part = real[max(top, 0) : top + ky, max(left, 0) : left + kx].astype(object)
            if kind == 0:
                result[y, x] = part.max((0, 1))
            elif kind == 2:
                result[y, x] = part.sum()
            else:
                total = part.sum((0, 1))
                count = part.shape[0] * part.shape[1]
                if any(pads):  # to the nearest integer, halves away from zero
                    total = np.where(
                        total < 0, -((-2 * total + count) // (2 * count)),
                        (2 * total + count) // (2 * count),
                    )  # fmt: skip
                result[y, x] = total
    info = np.iinfo(kind_of(ofm))
    wanted = limited(scaled(result, *scale, rounding), ofm.zero_point, int(info.min), int(info.max))
    if size == 1:
        registers["ACTIVATION_MIN"], registers["ACTIVATION_MAX"] = -128, 127
    done = npu.run(Stream().set(**registers).op("POOL", kind).payload(), written=known)
    assert (done.status, done.complaint) == (DONE, ""), (seed, registers)
    assert (get(npu, ofm) == wanted).all(), (seed, registers)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_pools(lib: ctypes.CDLL, first: int) -> None:
    for seed in range(first, first + 20):
        check_pool(lib, seed)


@pytest.mark.slow
def test_pools_at_length(lib: ctypes.CDLL) -> None:
    for seed in range(100, 1100):
        check_pool(lib, seed)


def test_rows_written_backwards(lib: ctypes.CDLL) -> None:
    """A negative stride: the last row first."""
    fm, ofm = Map((4, 3, 5), 0), Map((4, 3, 5), OUT)
    npu = EthosU(lib, {1: aligned(SIZE)})
    data = np.arange(60).reshape(4, 3, 5)
    known = put(npu, fm, data)
    registers = kernel(fm, ofm, limits=(-128, 127)) | {
        "OFM_BASE0": OUT + 45,
        "OFM_STRIDE_Y": ((-15) & 0xFFFFFFFF, 0xFF),
    }
    done = npu.run(Stream().set(**registers).op("POOL", 1).payload(), written=known)
    assert (done.status, done.complaint) == (DONE, "")
    assert (get(npu, ofm) == data[::-1]).all()
    low = registers | {"OFM_BASE0": 15}
    done = npu.run(Stream().set(**low).op("POOL", 1).payload(), written=known)
    assert "the OFM of 4x3x5 leaves region 1" in done.complaint


def test_factors_of_any_size(lib: ctypes.CDLL) -> None:
    """Products of up to 96 bits; results are limited to 64."""
    rng = np.random.default_rng(8)
    lib.ethos_u_scale.restype = ctypes.c_int64
    lib.ethos_u_scale.argtypes = [ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32]
    for _ in range(4000):
        value = int(rng.integers(-(1 << 63), 1 << 63)) >> int(rng.integers(0, 64))
        multiplier = int(rng.integers(0, 1 << 32)) >> int(rng.integers(0, 32))
        shift, rounding = int(rng.integers(0, 64)), int(rng.integers(3))
        exact = int(scaled(np.array([value], object), multiplier, shift, ROUNDINGS[rounding])[0])
        found = lib.ethos_u_scale(value, multiplier, shift, rounding)
        assert found == exact or (abs(exact) >= 1 << 63 and abs(found) >= (1 << 63) - 1)


def test_bricks_are_those_of_numpy() -> None:
    data = np.arange(2 * 3 * 20).reshape(2, 3, 20)
    assert (unbricked(bricks(data), 20) == data).all()
