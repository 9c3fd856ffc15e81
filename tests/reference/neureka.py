"""What N-EUREKA computes, how it stores weights, and how long it takes, in numpy.

An independent definition: it shares no code with the product, neither the device model nor the
driver nor the packing.  Convolutions are sums of shifted images in int64, brought back to 32 bits
where the engine has no more; weights are placed bit by bit; cycles are counted step by step, by the
rules of GVSoC's public model of the engine and with constants of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Kind = Literal["3x3", "depthwise", "1x1"]
CODE: dict[Kind, int] = {"3x3": 0, "depthwise": 1, "1x1": 2}


@dataclass(frozen=True)
class Job:
    """A job by its values.

    ``x`` is [rows, columns, C], signed or unsigned bytes; ``weights`` [K, C, f, f], depthwise
    [C, 1, f, f]; ``padding`` is top, right, bottom, left; ``mask`` has the numbers of taps that are
    off.  With ``scale`` [K] sums are scaled to 8 bits, otherwise they stay int32 and may begin with
    ``begun`` [rows, columns, K].
    """

    kind: Kind
    x: Array
    weights: Array
    bits: int
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    padding_value: int = 0
    mask: frozenset[int] = frozenset()
    scale: Array | None = None
    wide_scale: bool = False
    bias: Array | None = None
    shift: int | Array = 0
    signed_output: bool = False
    begun: Array | None = None
    weight_memory: bool = False
    prefetch: bool = False

    @property
    def filter(self) -> int:
        return 1 if self.kind == "1x1" else 3

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the output."""
        top, right, bottom, left = self.padding
        rows = self.x.shape[0] + top + bottom - self.filter + 1
        columns = self.x.shape[1] + left + right - self.filter + 1
        return rows, columns, self.weights.shape[0]

    @property
    def offset(self) -> int:
        return int(self.weights.min())


def wrap32(values: Array) -> Array:
    """The int32 number that is congruent to each of these, as int64."""
    return (np.asarray(values, np.int64) + 2**31) % 2**32 - 2**31


def sums(job: Job) -> Array:
    """Sums before scaling, int64 [rows, columns, K] with values of 32 bits."""
    top, right, bottom, left = job.padding
    x = np.pad(
        job.x.astype(np.int64),
        ((top, bottom), (left, right), (0, 0)),
        constant_values=job.padding_value,
    )
    rows, columns, outputs = job.shape
    total = np.zeros((rows, columns, outputs), np.int64)
    if job.begun is not None:
        total += job.begun
    for tap in range(job.filter**2):
        if tap in job.mask:
            continue
        dy, dx = divmod(tap, job.filter)
        window = x[dy : dy + rows, dx : dx + columns]
        values = job.weights[:, :, dy, dx].astype(np.int64)
        total += window * values[:, 0] if job.kind == "depthwise" else window @ values.T
    return wrap32(total)


def scaled(job: Job) -> Array:
    """Products of sums and scales, int64; with a bias their 32 bits, the bias not included."""
    assert job.scale is not None
    products = sums(job) * job.scale.astype(np.int64)
    return products if job.bias is None else wrap32(products)


def output(job: Job) -> Array:
    """The bytes of the output, uint8 [rows, columns, bytes of a pixel]."""
    if job.scale is None:
        return np.asarray(sums(job).astype("<i4"), order="C").view(np.uint8)
    values = scaled(job)
    if job.bias is not None:
        values = values + job.bias
        assert np.abs(values + 0.5).max() < 2**31, "beyond 32 bits nothing is defined"
    shifted = np.floor_divide(values, 2 ** np.asarray(job.shift, np.int64))
    low, high = (-128, 127) if job.signed_output else (0, 255)
    return np.clip(shifted, low, high).astype(np.int64).astype(np.uint8)


# ---------------------------------------------------------------------- weights


def stored_weights(job: Job) -> bytes:
    """The weights' bytes, each weight's bits placed one by one."""
    stored = job.weights.astype(np.int64) - job.offset
    outputs, inputs = stored.shape[:2]
    if job.kind == "depthwise":
        stored, outputs, inputs = stored.transpose(1, 0, 2, 3), 1, outputs
    channels = 32 if job.kind == "1x1" else 28
    planes = 1 if job.kind == "1x1" else job.bits
    tiles = -(-inputs // channels)
    data = bytearray(32 * outputs * tiles * planes)
    for k, c, y, x in np.ndindex(stored.shape):
        tile, lane = divmod(c, channels)
        for plane in range(job.bits):
            if not int(stored[k, c, y, x]) >> plane & 1:
                continue
            if job.kind == "1x1":
                word, bit = k * tiles + tile, 32 * (lane // 4) + 4 * plane + lane % 4
            else:
                word, bit = (k * tiles + tile) * planes + plane, 28 * (3 * y + x) + lane
            data[32 * word + bit // 8] |= 1 << bit % 8
    return bytes(data)


# ---------------------------------------------------------------------- registers


@dataclass(frozen=True)
class Places:
    """Addresses, and strides in bytes; that of the weights counts from the weight memory if the job
    has them there."""

    weights: int
    x: int
    output: int
    scale: int
    shift: int
    bias: int
    x_row: int
    x_pixel: int
    output_row: int
    output_pixel: int


def _tiles(size: int, step: int) -> tuple[int, int]:
    """Number of tiles, and the size of the last."""
    return (size - 1) // step + 1, (size - 1) % step + 1


def registers(job: Job, at: Places) -> list[int]:
    """The 24 job registers."""
    rows, columns, outputs = job.shape
    inputs = job.x.shape[2]
    top, right, bottom, left = job.padding
    nko, ko = _tiles(outputs, 28 if job.kind == "depthwise" else 32)
    nki, ki = _tiles(inputs, 32 if job.kind == "1x1" else 28)
    nho, ho = _tiles(rows, 6)
    nwo, wo = _tiles(columns, 6)
    halo = job.filter - 1
    per_channel = {"3x3": 32 * job.bits * nki, "1x1": 32 * nki, "depthwise": 0}[job.kind]
    conf0 = (
        job.bits - 1
        | (job.scale is not None) << 4
        | CODE[job.kind] << 5
        | job.weight_memory << 9
        | job.prefetch << 10
        | (2 if job.wide_scale else 0) << 12
        | (job.begun is not None) << 14
        | 1 << 15
        | (job.shift if isinstance(job.shift, int) else 0) << 16
        | (0 if job.scale is not None else 2) << 21
        | job.signed_output << 23
        | (not isinstance(job.shift, int)) << 24
        | (job.bias is not None) << 25
        | (job.x.dtype == np.int8) << 26
    )
    first = at.x - top * at.x_row - left * at.x_pixel
    padding = top << 28 | right << 24 | bottom << 20 | left << 16 | job.padding_value & 0xFF
    mask = sum(1 << tap for tap in job.mask)
    values = [at.weights, first, at.output, at.scale, at.shift, at.bias]
    values += [at.x_pixel, at.x_row, 0, 32, at.output_pixel, at.output_row, 32, per_channel, 0]
    values += [ko << 16 | ki, ho << 16 | wo, ho + halo - bottom << 16 | wo + halo - right]
    values += [nko << 16 | nki, nho << 16 | nwo, padding, job.offset, mask, conf0]
    return [int(value) & 0xFFFFFFFF for value in values]


# ---------------------------------------------------------------------- cycles


def _steps(size: int, step: int) -> Iterator[tuple[int, bool]]:
    """Sizes of the parts, and whether each is the last."""
    for start in range(0, size, step):
        yield min(step, size - start), start + step >= size


def cycles(job: Job, slack: int = 0) -> int:
    """Cycles of a job whose memories never wait, ``slack`` more for each block and Ko tile."""
    rows, columns, outputs = job.shape
    _, right, bottom, _ = job.padding
    time = 1
    for k, last_k in _steps(outputs, 28 if job.kind == "depthwise" else 32):
        ahead = 0  # cycles of computing that began with the patch before
        for h, last_h in _steps(rows, 6):
            for w, last_w in _steps(columns, 6):
                patch = (h + 2 - bottom * last_h) * (w + 2 - right * last_w)
                if job.kind == "1x1":
                    patch = 36
                inputs = 1 if job.kind == "depthwise" else job.x.shape[2]
                for _, last_c in _steps(inputs, 32 if job.kind == "1x1" else 28):
                    last = last_h and last_w and last_c
                    time, ahead = _tile(job, time, ahead, patch, k, last)
                time += slack + _written(job, k, last_k, (h - 1) * 6 + w)
    return time


def _tile(job: Job, time: int, ahead: int, patch: int, k: int, last: bool) -> tuple[int, int]:
    """The time after one Ki tile, and the cycles that the next patch may hide."""
    load, wait, prefetch_wait, work = {
        "3x3": (6 + patch, 6, 6, job.bits * k + 8),
        "1x1": (12 + patch, 10, 3, k),
        "depthwise": (6 + patch, 34, 34, job.bits * k),
    }[job.kind]
    if not job.prefetch:
        return time + load + wait + work, 0
    time += load + max(0, ahead - (load - 3)) + prefetch_wait
    if not last:
        return time, prefetch_wait + work
    return time + work + (10 if job.kind == "1x1" else 0), 0


def _written(job: Job, k: int, last_k: bool, pixels: int) -> int:
    """Cycles from the last computation of a block until it is stored."""
    after = 3 if job.kind == "1x1" else 0
    if job.scale is None:
        words = pixels * ((k + 7) // 8)
        return words + after + (words + 10 if job.begun is not None else 0)
    read = k if last_k else 32
    factors = read + 9 if job.wide_scale else (read + 3) // 4 + 9
    shifts = 0 if isinstance(job.shift, int) else 8
    return factors + shifts + (12 if job.bias is not None else 8) + pixels + after
