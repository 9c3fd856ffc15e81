"""Helper: the cluster's device models; Python plays memory, clock and driver."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.soc.base import Soc
from byoc_dory.soc.snitch_ita.description import soc as description
from byoc_dory.soc.snitch_ita.ita import ITA as DESCRIBED
from tests.reference.ita import Requant
from tests.runtime_c.models import Models, load

Array = npt.NDArray[Any]


def described() -> Soc:
    """The SoC, with ITA whether or not its description has it already."""
    soc = description()
    others = tuple(entry for entry in soc.accelerators if entry.name != DESCRIBED.name)
    return replace(soc, accelerators=(*others, DESCRIBED))


SOC = described()
CORE = DESCRIBED
L1 = SOC.memory("L1")
L2 = SOC.memory("L2")
L2_BYTES = 1 << 18  # as much of it as tests need
assert SOC.dma is not None
DMA_ENGINE = SOC.dma
DMA = SOC.dma.registers
ITA = CORE.registers

STATUS, ERROR, ROOM, STARTED, COMPLETED = 0x00, 0x04, 0x08, 0x0C, 0x10
LINEAR, QK, AV = 1, 2, 3
NO_BIAS, BIAS_COLS, BIAS_ROWS = 0, 1, 2
IDENTITY, GELU, RELU = 0, 1, 2
UNIT_SHIFT = 1


def library() -> ctypes.CDLL:
    """Build (once per change) and load the models."""
    return load(SOC)


class Cluster(Models):
    """The devices with memories of their own."""

    def __init__(self, lib: ctypes.CDLL) -> None:
        self.l1 = np.zeros(L1.size, np.uint8)
        self.l2 = np.zeros(L2_BYTES, np.uint8)
        super().__init__(lib, {L1.base: self.l1, L2.base: self.l2})

    def put(self, at: int, data: Array, stride: int | None = None) -> None:
        """Store rows of bytes at an offset of L1."""
        rows = np.asarray(data, order="C").view(np.uint8).reshape(len(data), -1)
        self.window(at, *rows.shape, stride)[:] = rows

    def window(self, at: int, rows: int, columns: int, stride: int | None = None) -> Array:
        """Rows of bytes at an offset of L1, as a view."""
        step = columns if stride is None else stride
        assert at + (rows - 1) * step + columns <= self.l1.size
        return np.lib.stride_tricks.as_strided(self.l1[at:], (rows, columns), (step, 1))

    def dma(
        self,
        source: int,
        dest: int,
        size: int,
        rows: int = 1,
        source_stride: int = 0,
        dest_stride: int = 0,
    ) -> None:
        """Queue a transfer between device addresses."""
        values = (source, dest, size, rows, source_stride, dest_stride, 1)
        for offset, value in zip(range(0x14, 0x30, 4), values, strict=True):
            self.write(DMA + offset, value)

    def program(
        self,
        sizes: tuple[int, int, int],
        left: tuple[int, int],
        right: tuple[int, int],
        out: tuple[int, int],
        requant: Requant,
        *,
        operation: int = LINEAR,
        length: int | None = None,
        bias: int | None = None,
        bias_kind: int = BIAS_COLS,
        activation: int = IDENTITY,
        act_requant: Requant | None = None,
        gelu: tuple[int, int] = (0, 0),
        flags: int = 0,
    ) -> None:
        """Start a task; operands are offsets in L1 with strides."""
        rows, cols, inner = sizes
        second = act_requant or Requant(0, 0)
        words = (
            rows | cols << 16,
            inner | (cols if length is None else length) << 16,
            operation
            | (NO_BIAS if bias is None else bias_kind) << 8
            | activation << 16
            | flags << 24,
            _packed(requant),
            _packed(second),
            gelu[0] & 0xFFFF | (gelu[1] & 0xFFFF) << 16,
            L1.base + left[0],
            left[1],
            L1.base + right[0],
            right[1],
            L1.base + (bias or 0),
            L1.base + out[0],
            out[1],
            1,
        )
        for offset, word in zip(range(0x14, 0x4C, 4), words, strict=True):
            self.write(ITA + offset, word)

    def wait_for_context(self) -> None:
        while self.read(ITA + ROOM) == 0:
            self.now = self.next_event()


def _packed(r: Requant) -> int:
    return r.mult | r.shift << 8 | (r.add & 0xFF) << 16


def bias_bytes(bias: Array) -> Array:
    """24-bit biases, three bytes each."""
    return np.asarray(bias, "<i4").view(np.uint8).reshape(-1, 4)[:, :3].reshape(1, -1)
