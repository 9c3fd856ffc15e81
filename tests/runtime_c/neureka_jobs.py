"""Helper: random jobs of N-EUREKA, placed in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.soc.siracusa.neureka_core import Mode
from byoc_dory.soc.siracusa.neureka_jobs import NeurekaJob
from tests.reference import neureka as reference
from tests.reference.neureka import Job, Kind, Places

Array = npt.NDArray[Any]

L1, L1_BYTES = 0x10000000, 256 * 1024
MRAM, SRAM = 0x10400000, 0x10800000
KINDS: tuple[Kind, ...] = ("3x3", "depthwise", "1x1")


@dataclass(frozen=True)
class Placed:
    """A job in memory: L1 before and after, and the weights' bytes and address if elsewhere."""

    job: Job
    places: Places
    l1: Array
    expected: Array
    weights: bytes
    weights_at: int


def planned(job: Job) -> NeurekaJob:
    """The job as planning describes it."""
    rows, columns, outputs = job.shape
    return NeurekaJob(
        mode=Mode(reference.CODE[job.kind]),
        rows=rows,
        columns=columns,
        inputs=job.x.shape[2],
        outputs=outputs,
        weight_bits=job.bits,
        padding_bottom=job.padding[2],
        padding_right=job.padding[1],
        scale_bytes=0 if job.scale is None else 4 if job.wide_scale else 1,
        bias=job.bias is not None,
        channel_shift=not isinstance(job.shift, int),
        stream_in=job.begun is not None,
        prefetch=job.prefetch,
    )


def random_job(rng: np.random.Generator) -> Job:
    """All modes, bits, paddings and options; sizes around those of blocks and tiles."""
    kind = KINDS[rng.integers(3)]
    bits = int(rng.integers(2, 9))
    rows, columns = (int(size) for size in rng.integers(1, 21, 2))
    outputs, inputs = _channels(rng), _channels(rng)
    padding = (0, 0, 0, 0)
    if kind != "1x1":
        padding = _padding(rng, rows, columns)
        rows, columns = rows + 2, columns + 2
    if kind == "depthwise":
        outputs = inputs
    top, right, bottom, left = padding
    signed = bool(rng.integers(2))
    low, high = (-128, 128) if signed else (0, 256)
    x = rng.integers(low, high, (rows - top - bottom, columns - left - right, inputs))
    side = 1 if kind == "1x1" else 3
    shape = (outputs, 1 if kind == "depthwise" else inputs, side, side)
    first = int(rng.integers(-(2 ** (bits - 1)) - 20, 20))
    weights = rng.integers(first, first + 2**bits, shape)
    weights.flat[0] = first  # the offset is exact even where there are few weights
    taps = rng.permutation(9)[: rng.integers(1, 8)] if side == 3 and rng.random() < 0.3 else ()
    job = Job(
        kind=kind,
        x=x.astype(np.int8 if signed else np.uint8),
        weights=weights,
        bits=bits,
        padding=padding,
        padding_value=int(rng.integers(low, high)) if rng.random() < 0.5 else 0,
        mask=frozenset(int(tap) for tap in taps),
        weight_memory=bool(rng.integers(2)),
        prefetch=bool(rng.integers(2)),
    )
    return _with_output(rng, job)


def _channels(rng: np.random.Generator) -> int:
    near = int(rng.choice([28, 32, 56, 64])) + int(rng.integers(-1, 2))
    return near if rng.random() < 0.4 else int(rng.integers(1, 70))


def _padding(rng: np.random.Generator, rows: int, columns: int) -> tuple[int, int, int, int]:
    """Of an output with so many rows and columns, as the engine can have it."""

    def axis(size: int) -> tuple[int, int]:
        last = (size - 1) % 6 + 1
        while True:
            before, after = (int(side) for side in rng.integers(0, 3, 2))
            # One input at least; and a block reads two inputs of the next, which are not padding.
            if last + 2 - after >= (before + 1 if size <= 6 else 2):
                return before, after

    (top, bottom), (left, right) = axis(rows), axis(columns)
    return top, right, bottom, left


def _with_output(rng: np.random.Generator, job: Job) -> Job:
    """The job with a random kind of output that stays within 32 bits."""
    if rng.random() < 0.3:
        begun = rng.integers(-(2**31), 2**31, job.shape) if rng.random() < 0.6 else None
        return replace(job, begun=begun)
    outputs = job.shape[2]
    wide = bool(rng.integers(2))
    largest = int(np.abs(reference.sums(job)).max()) + 1
    top = rng.choice([2**32, 2**31 // largest + 2]) if wide else 256
    scale = rng.integers(0, top, outputs)
    biased = rng.random() < 0.7
    if wide and biased and rng.random() < 0.5:
        scale = -scale % 2**32  # negative, as the product's 32 bits tell
    shift: int | Array = int(rng.integers(0, 32))
    job = replace(job, scale=scale, wide_scale=wide, signed_output=bool(rng.integers(2)))
    if biased:
        products = reference.scaled(replace(job, bias=np.zeros(outputs, np.int64)))
        low = np.maximum(-(2**31) - products.min((0, 1)), -(2**31))
        high = np.minimum(2**31 - 1 - products.max((0, 1)), 2**31 - 1)
        # Most of them small, so that not everything is clipped.
        small = rng.integers(-5000, 5000, outputs)
        anywhere = rng.integers(low, high + 1)
        bias = np.clip(np.where(rng.random(outputs) < 0.7, small, anywhere), low, high)
        job = replace(job, bias=bias)
    # A shift that leaves some of the values within a byte.
    spread = int(np.abs(reference.scaled(job)).max()) >> 7
    if rng.random() < 0.8:
        shift = min(31, max(0, spread.bit_length() - int(rng.integers(0, 3))))
    if rng.random() < 0.3:
        shift = np.clip(shift + rng.integers(-2, 3, outputs), 0, 31)
    return replace(job, shift=shift)


def place(rng: np.random.Generator, job: Job, weights: bytes) -> Placed | None:
    """Put a job's arrays apart from each other, at any byte; None if L1 is too small."""
    rows, columns, outputs = job.shape
    x_pixel, x_row = _strides(rng, job.x.shape[1], job.x.shape[2])
    wide = 1 if job.scale is not None else 4
    output_pixel, output_row = _strides(rng, columns, outputs * wide)
    shift = np.asarray(job.shift).astype(np.uint8)
    sizes = {
        "x": (job.x.shape[0] - 1) * x_row + (job.x.shape[1] - 1) * x_pixel + job.x.shape[2],
        "output": (rows - 1) * output_row + (columns - 1) * output_pixel + outputs * wide,
        "scale": 0 if job.scale is None else outputs * (4 if job.wide_scale else 1),
        "shift": shift.size if shift.ndim else 0,
        "bias": 0 if job.bias is None else outputs * 4,
        "weights": 0 if job.weight_memory else len(weights),
    }
    at, end = {}, int(rng.integers(0, 40))
    for name in rng.permutation(list(sizes)):
        at[name] = end
        end += sizes[name] + int(rng.integers(0, 40))
    if end > L1_BYTES:
        return None
    l1 = rng.integers(0, 256, end).astype(np.uint8)

    def put(name: str, data: Array) -> None:
        raw = np.frombuffer(data.tobytes(), np.uint8)
        l1[at[name] : at[name] + raw.size] = raw

    _window(l1, at["x"], job.x.shape, x_row, x_pixel)[:] = job.x.view(np.uint8)
    if job.scale is not None:
        put("scale", job.scale.astype("<u4" if job.wide_scale else np.uint8))
    if shift.ndim:
        put("shift", shift)
    if job.bias is not None:
        put("bias", job.bias.astype("<i4"))
    if not job.weight_memory:
        put("weights", np.frombuffer(weights, np.uint8))
    shape = (rows, columns, outputs * wide)
    if job.begun is not None:
        begun = np.asarray(job.begun.astype("<i4"), order="C").view(np.uint8)
        _window(l1, at["output"], shape, output_row, output_pixel)[:] = begun
    expected = l1.copy()
    _window(expected, at["output"], shape, output_row, output_pixel)[:] = reference.output(job)
    weights_at = int(rng.choice([MRAM, SRAM])) + 32 * int(rng.integers(0, 100))
    if not job.weight_memory:
        weights_at = L1 + at["weights"]
    places = Places(
        weights=weights_at - (MRAM if job.weight_memory else 0),
        x=L1 + at["x"],
        output=L1 + at["output"],
        scale=L1 + at["scale"],
        shift=L1 + at["shift"],
        bias=L1 + at["bias"],
        x_row=x_row,
        x_pixel=x_pixel,
        output_row=output_row,
        output_pixel=output_pixel,
    )
    return Placed(job, places, l1, expected, weights, weights_at)


def _strides(rng: np.random.Generator, columns: int, size: int) -> tuple[int, int]:
    """Strides of pixels and of rows, with gaps or without."""
    pixel = size + int(rng.integers(0, 2)) * int(rng.integers(0, 20))
    row = columns * pixel + int(rng.integers(0, 2)) * int(rng.integers(0, 50))
    return pixel, row


def _window(memory: Array, at: int, shape: tuple[int, ...], row: int, pixel: int) -> Array:
    return np.lib.stride_tricks.as_strided(memory[at:], shape, (row, pixel, 1))
