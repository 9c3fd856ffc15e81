"""Helper: DIANA's device models; Python plays bus, clock and driver."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from byoc_dory.soc.diana.cores import DigitalCore
from byoc_dory.soc.registry import resolve
from tests.runtime_c.models import Models, load

DIANA = resolve("diana").soc
L2 = DIANA.memory("L2")
L1 = DIANA.memory("L1")
_core = DIANA.accelerator("digital")
assert isinstance(_core, DigitalCore)
CORE: DigitalCore = _core
DMA = 0x1A100000
DIGITAL = 0x1A101000
TO_L2 = 0x80000000
CONV, DEPTHWISE, DENSE, ADD = 1, 2, 3, 4


def library() -> ctypes.CDLL:
    """Build (once per change) and load the models."""
    return load(DIANA)


class Device(Models):
    """The devices with an L2 of their own; every operation ends when the device is idle."""

    def __init__(self, lib: ctypes.CDLL) -> None:
        self.l2 = np.zeros(L2.size, np.uint8)
        super().__init__(lib, {L2.base: self.l2})

    def dma(self, l2: int, l1: int, size: int, flags: int = 0) -> int:
        for offset, value in ((0x10, L2.base + l2), (0x14, l1), (0x18, size | flags)):
            self.write(DMA + offset, value)
        return self.finish(DMA)

    def put(self, l1: int, data: np.ndarray) -> None:
        """DMA bytes into L1 through the top of L2."""
        raw = np.asarray(data, order="C").view(np.uint8).ravel()
        at = L2.size - -(-raw.size // 4) * 4
        self.l2[at : at + raw.size] = raw
        self.dma(at, l1, raw.size)

    def get(self, l1: int, size: int) -> np.ndarray:
        at = L2.size - -(-size // 4) * 4
        self.dma(at, l1, size, TO_L2)
        return self.l2[at : at + size].view(np.int8).copy()

    def start(self, operation: int, registers: dict[int, int]) -> int:
        for offset, value in registers.items():
            self.write(DIGITAL + offset, value)
        self.write(DIGITAL + 0x34, operation)
        return self.finish(DIGITAL)

    def events(self) -> list[dict[str, Any]]:
        """What the devices did, without the times the host waited."""
        return [event for event in super().events() if event["unit"] != "host"]


def up(value: int, step: int = 16) -> int:
    return -(-value // step) * step


def swap(data: np.ndarray) -> np.ndarray:
    """Reverse every aligned group of four bytes; the size is a multiple of four."""
    return np.asarray(data, order="C").view(np.uint8).reshape(-1, 4)[:, ::-1].ravel()


def pack_maps(maps: np.ndarray) -> np.ndarray:
    """[C][y][x] int8 -> the accelerator's layout."""
    channels, rows, columns = maps.shape
    padded = np.zeros((channels, rows, up(columns)), np.int8)
    padded[:, :, :columns] = maps
    return swap(padded)


def unpack_maps(data: np.ndarray, channels: int, rows: int, columns: int) -> np.ndarray:
    plain = swap(data).view(np.int8).reshape(-1, rows, up(columns))
    assert not plain[:, :, columns:].any(), "void columns are not zero"
    return plain[:channels, :, :columns]


def pack_conv(weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """[K][C][fy][fx] int8 and [K] int32 -> blocks of 16 K, each followed by its biases."""
    k = weights.shape[0]
    padded = np.zeros((up(k), *weights.shape[1:]), np.int8)
    padded[:k] = weights
    biases = np.zeros(up(k), np.int32)
    biases[:k] = bias
    parts = []
    for block in range(0, up(k), 16):
        lanes = padded[block : block + 16]
        parts.append(lanes.transpose(1, 2, 3, 0).ravel().view(np.uint8))
        planes = biases[block : block + 16].astype("<i4").view(np.uint8).reshape(16, 4).T
        parts.append(planes.ravel())
    return swap(np.concatenate(parts))


def pack_depthwise(weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """[C][1][fy][fx] int8 and [C] int32 -> blocks of 4 channels in lanes 0, 4, 8, 12.

    With 12 bytes at the end, which the load of a fourth channel includes.
    """
    parts = []
    for first in range(0, len(bias), 4):
        lanes = np.zeros((16, *weights.shape[1:]), np.int8)
        biases = np.zeros(16, np.int32)
        for j in range(min(4, len(bias) - first)):
            lanes[4 * j], biases[4 * j] = weights[first + j], bias[first + j]
        parts.append(pack_conv(lanes, biases))
    return np.concatenate([*parts, np.zeros(12, np.uint8)])


def pack_dense(weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """[K <= 16][C] int8 and [K] int32 -> one block of a dense trigger."""
    k, c = weights.shape
    padded = np.zeros((16, up(c)), np.int8)
    padded[:k, :c] = weights
    values = padded.reshape(16, -1, 16).transpose(1, 0, 2).ravel().view(np.uint8)
    biases = np.zeros((16, 16), np.uint8)
    biases[:k, :4] = bias.astype("<i4").view(np.uint8).reshape(k, 4)
    return swap(np.concatenate([values, biases.ravel()]))
