"""A model of DIANA's DMA and digital core, on plain numpy bytes.

An independent definition: it shares no code with the product, neither its packing nor its
scheduling.  It executes the steps of a `Schedule` the way the hardware would (physical bytes with
each aligned group of four reversed, rows padded to 16, weights read out of the packed image by
index) and complains about everything the hardware would.
"""

from __future__ import annotations

import numpy as np

from byoc_dory.soc.diana.program import AddTrigger, ConvTrigger, DenseTrigger
from tests.byoc_dory.driver_calls import Finish, Load, Prepare, Queue, Start, Store, Wait

WEIGHT_MEMORY = 64_000


def up16(value: int) -> int:
    return (value + 15) // 16 * 16


def flip(count: int) -> np.ndarray:
    """Physical address of each of ``count`` logical bytes."""
    return np.arange(count) ^ 3


class Core:
    """L1 with a shadow of what was written, and the operations.

    ``late_dma`` and ``late_core`` say when queued transfers and started triggers happen: at once,
    or only when they are waited for.  A schedule is free of races if its results do not depend on
    that.
    """

    def __init__(
        self, l1_bytes: int, weights: np.ndarray, late_dma: bool = False, late_core: bool = False
    ) -> None:
        self.l1 = np.full(l1_bytes, 0xA5, np.uint8)
        self.written = np.zeros(l1_bytes, bool)
        self.weights = weights
        self.late_dma = late_dma
        self.late_core = late_core
        self.prepared = None  # what the registers hold
        self.running = None
        self.queued: list[Load | Store] = []

    def run(self, steps, inputs: list[np.ndarray], output: np.ndarray) -> None:
        for step in steps:
            if isinstance(step, Queue):
                self.queued.append(step.transfer)
                if not self.late_dma:
                    self._drain(inputs, output)
            elif isinstance(step, Wait):
                self._drain(inputs, output)
            elif isinstance(step, Prepare):
                assert not self._several(self.running), "registers are not free yet"
                self.prepared = step.trigger
            elif isinstance(step, Start):
                assert self.running is None and self.prepared == step.trigger
                self.running = step.trigger
                if not self.late_core:
                    self._trigger(step.trigger)
            elif isinstance(step, Finish):
                assert self.running == step.trigger
                assert self.prepared == step.trigger or not self._several(step.trigger)
                if self.late_core:
                    self._trigger(step.trigger)
                self.running = None
            elif isinstance(step, Load | Store):
                self._transfer(step, inputs, output)
            else:
                self._trigger(step)
        assert self.running is None and not self.queued, "still at work at the end"

    @staticmethod
    def _several(trigger) -> bool:
        """Whether the driver still needs the registers to go on with it."""
        return isinstance(trigger, DenseTrigger) or getattr(trigger, "depthwise", False)

    def _drain(self, inputs: list[np.ndarray], output: np.ndarray) -> None:
        for transfer in self.queued:
            self._transfer(transfer, inputs, output)
        self.queued = []

    def _transfer(self, step: Load | Store, inputs: list[np.ndarray], output: np.ndarray) -> None:
        if isinstance(step, Load):
            self._dma(step, inputs[step.operand], to_l1=True)
        else:
            self._dma(step, output, to_l1=False)

    def _trigger(self, step) -> None:
        if isinstance(step, DenseTrigger):
            self._dense(step)
        elif isinstance(step, AddTrigger):
            self._add(step)
        elif step.depthwise and step.channels > 1:
            self._depthwise_blocks(step)
        elif step.depthwise:
            self._depthwise(step)
        else:
            self._conv(step, step.l1_in, step.l1_out, step.weight_offset, step.c, step.k)

    # ------------------------------------------------------------------ DMA

    def _dma(self, step: Load | Store, l2: np.ndarray, to_l1: bool) -> None:
        block = step.block
        for channel in range(block.channels):
            for row in range(block.rows):
                here = step.l1_offset + channel * block.l1_channel_stride
                here += row * block.l1_row_stride
                there = step.l2_offset + channel * block.l2_channel_stride
                there += row * block.l2_row_stride
                assert here % 16 == 0, "L1 address alignment"
                assert there % 4 == 0 and block.bytes % 4 == 0, "L2 address alignment"
                assert 0 <= here and here + block.bytes <= len(self.l1), "L1 range"
                assert 0 <= there and there + block.bytes <= len(l2), "L2 range"
                if to_l1:
                    self.l1[here : here + block.bytes] = l2[there : there + block.bytes]
                    self.written[here : here + block.bytes] = True
                else:
                    assert self.written[here : here + block.bytes].all(), "stores garbage"
                    l2[there : there + block.bytes] = self.l1[here : here + block.bytes]

    # ------------------------------------------------------------------ helpers

    def _read(self, offset: int, shape: tuple[int, ...], columns: int) -> np.ndarray:
        """int8 values [..., columns] of rows padded to 16; only used columns must be written."""
        assert offset % 16 == 0
        rows = int(np.prod(shape))
        physical = offset + flip(rows * up16(columns)).reshape(rows, -1)[:, :columns]
        assert physical.max() < len(self.l1), "L1 range"
        assert self.written[physical].all(), "uninitialised L1 read"
        return self.l1[physical].view(np.int8).reshape(*shape, columns)

    def _write(self, offset: int, values: np.ndarray) -> None:
        """Rows [..., columns], void columns of the pitch become 0."""
        assert offset % 16 == 0
        columns = values.shape[-1]
        padded = np.zeros((*values.shape[:-1], up16(columns)), np.int8)
        padded[..., :columns] = values
        flat = padded.reshape(-1).view(np.uint8)
        assert offset + len(flat) <= len(self.l1), "L1 range"
        self.l1[offset + flip(len(flat))] = flat
        self.written[offset : offset + len(flat)] = True

    def _requantize(self, acc: np.ndarray, shift: int, relu: bool) -> np.ndarray:
        wrapped = acc.astype(np.int64).astype(np.int32)
        return np.clip(wrapped >> shift, 0 if relu else -128, 127).astype(np.int8)

    def _packed(self, offset: int, size: int) -> np.ndarray:
        assert offset % 4 == 0 and offset + size <= len(self.weights), "weights range"
        return self.weights[offset + flip(size)]

    # ------------------------------------------------------------------ operations

    def _conv(
        self, t: ConvTrigger, l1_in: int, l1_out: int, weights_at: int, c: int, k: int
    ) -> None:
        assert t.stride in (1, 2) and {t.fy, t.fx} <= {1, 3, 5, 7} and 0 <= t.shift <= 31
        assert -128 <= t.pad_top < t.fy and -128 <= t.pad_left < t.fx
        blocks = (k + 15) // 16
        size = 16 * c * t.fy * t.fx + 64
        assert blocks * size <= WEIGHT_MEMORY, "weight memory overrun"
        end_in = l1_in + c * t.iy * up16(t.ix)
        end_out = l1_out + 16 * blocks * t.oy * up16(t.ox)
        assert end_in <= l1_out or end_out <= l1_in, "overlap"
        # A canvas of zeros large enough for all positions that outputs look at.
        top, left = max(0, t.pad_top), max(0, t.pad_left)
        skip_y, skip_x = max(0, -t.pad_top), max(0, -t.pad_left)
        need_y = (t.oy - 1) * t.stride + t.fy
        need_x = (t.ox - 1) * t.stride + t.fx
        used_y = range(skip_y, min(t.iy, skip_y + need_y - top))
        used_x = range(skip_x, min(t.ix, skip_x + need_x - left))
        tile = np.zeros((c, t.iy, t.ix), np.int8)
        rows = self._read_used(l1_in, c, t.iy, t.ix, used_y, used_x)
        tile[:, used_y.start : used_y.stop, used_x.start : used_x.stop] = rows
        canvas = np.zeros((c, top + t.iy + need_y, left + t.ix + need_x), np.int64)
        canvas[:, top : top + t.iy - skip_y, left : left + t.ix - skip_x] = tile[
            :, skip_y:, skip_x:
        ]
        for block in range(blocks):
            raw = self._packed(weights_at + block * size, size)
            weight = raw[: size - 64].view(np.int8).reshape(c, t.fy, t.fx, 16).astype(np.int64)
            bias = sum(raw[size - 64 + 16 * p :][:16].astype(np.int64) << (8 * p) for p in range(4))
            acc = np.zeros((16, t.oy, t.ox), np.int64) + bias[:, None, None]
            for i in range(t.fy):
                for j in range(t.fx):
                    window = canvas[
                        :,
                        i : i + (t.oy - 1) * t.stride + 1 : t.stride,
                        j : j + (t.ox - 1) * t.stride + 1 : t.stride,
                    ]
                    acc += np.tensordot(weight[:, i, j, :].T, window, axes=1)
            out = self._requantize(acc, t.shift, t.relu)
            self._write(l1_out + block * 16 * t.oy * up16(t.ox), out)

    def _depthwise_blocks(self, t: ConvTrigger) -> None:
        """Convolutions over some channels each, whose weights keep them apart."""
        at, done = t.weight_offset, 0
        while done < t.k:
            c = min(t.channels, t.k - done)
            here = t.l1_in + done * t.iy * up16(t.ix)
            self._conv(t, here, t.l1_out + done * t.oy * up16(t.ox), at, c, c)
            at += 16 * c * t.fy * t.fx + 64
            done += c

    def _read_used(self, offset, c, iy, ix, used_y, used_x) -> np.ndarray:
        rows = (np.arange(c)[:, None] * iy + np.array(used_y)[None, :]) * up16(ix)
        physical = offset + ((rows[:, :, None] + np.array(used_x)[None, None, :]) ^ 3)
        assert physical.max() < len(self.l1), "L1 range"
        assert self.written[physical].all(), "uninitialised L1 read"
        return self.l1[physical].view(np.int8)

    def _depthwise(self, t: ConvTrigger) -> None:
        block = 16 * t.fy * t.fx + 64
        for channel in range(t.k):
            out = t.l1_out + channel * t.oy * up16(t.ox)
            self._conv(
                t,
                t.l1_in + channel * t.iy * up16(t.ix),
                out,
                # Four channels share a block; the lane at the load's start is lane 0.
                t.weight_offset + channel // 4 * block + channel % 4 * 4,
                c=1,
                k=16,
            )
            # The other lanes' maps are void.
            void = out + t.oy * up16(t.ox)
            self.written[void : out + 16 * t.oy * up16(t.ox)] = False

    def _dense(self, t: DenseTrigger) -> None:
        """One trigger for each block of 16 outputs."""
        size = 16 * up16(t.c) + 256
        assert size <= WEIGHT_MEMORY, "weight memory overrun"
        for block in range((t.k + 15) // 16):
            values = self._read(t.l1_in, (1,), t.c)[0].astype(np.int64)
            raw = self._packed(t.weight_offset + block * size, size)
            weight = raw[: size - 256].view(np.int8).reshape(-1, 16, 16).astype(np.int64)
            values = np.pad(values, (0, up16(t.c) - t.c))
            biases = raw[size - 256 :].reshape(16, 16)[:, :4]
            out = np.zeros(16, np.int8)
            for lane in range(16):
                bias = int.from_bytes(biases[lane].tobytes(), "little", signed=True)
                acc = np.int64(weight[:, lane, :].reshape(-1) @ values + bias)
                out[lane] = self._requantize(np.array([acc]), t.shift, t.relu)[0]
            self._write(t.l1_out + 16 * block, out)

    def _add(self, t: AddTrigger) -> None:
        index = flip(t.elements)
        for operand in (t.l1_a, t.l1_b):
            assert self.written[operand + index].all(), "uninitialised L1 read"
        a = self.l1[t.l1_a + index].view(np.int8).astype(np.int64)
        b = self.l1[t.l1_b + index].view(np.int8).astype(np.int64)
        self.l1[t.l1_out + index] = self._requantize(a + b, t.shift, t.relu).view(np.uint8)
        self.written[t.l1_out + index] = True
