"""The cluster's device models as a shared library: Python plays memory, clock and driver."""

from __future__ import annotations

import ctypes
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.soc.base import Soc
from byoc_dory.soc.header import render
from byoc_dory.soc.snitch_ita.description import soc as description
from byoc_dory.soc.snitch_ita.ita_core import ITA as DESCRIBED
from htvm.sim.host import include_folders
from htvm.sim.paths import runtime_c
from htvm.sim.toolchain import Compiler
from tests.ita_reference import Requant

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

_MAP = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)


class _Bus(ctypes.Structure):
    _fields_ = [("ctx", ctypes.c_void_p), ("map", _MAP)]


def library() -> ctypes.CDLL:
    """Build (once per change) and load the models."""
    sources = sorted((runtime_c() / "soc" / "snitch_ita" / "model").glob("*.c"))
    path = Compiler.zig().built(
        "libsnitch_models.so",
        sources,
        include_folders(SOC),
        generated=(("htvm_soc.h", render(SOC)),),
        shared=True,
    )
    lib = ctypes.CDLL(str(path))
    u32, u64, ptr = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    lib.htvm_soc_new.argtypes, lib.htvm_soc_new.restype = [ctypes.POINTER(_Bus)], ptr
    lib.htvm_soc_free.argtypes = [ptr]
    lib.htvm_soc_read.argtypes, lib.htvm_soc_read.restype = [ptr, u32, u64], u32
    lib.htvm_soc_write.argtypes = [ptr, u32, u32, u64]
    lib.htvm_soc_next_event.argtypes, lib.htvm_soc_next_event.restype = [ptr, u64], u64
    lib.htvm_soc_error.argtypes, lib.htvm_soc_error.restype = [ptr], ctypes.c_char_p
    lib.htvm_soc_events.argtypes = [ptr, ptr]
    return lib


class Cluster:
    """The devices with memories of their own."""

    def __init__(self, lib: ctypes.CDLL) -> None:
        self._lib = lib
        self.l1 = np.zeros(L1.size, np.uint8)
        self.l2 = np.zeros(L2_BYTES, np.uint8)
        places = ((L1.base, self.l1), (L2.base, self.l2))

        def translate(_ctx: int, addr: int, size: int) -> int | None:
            for base, memory in places:
                if base <= addr and addr + size <= base + memory.size:
                    return int(memory.ctypes.data) + addr - base
            return None

        self._bus = _Bus(None, _MAP(translate))
        self._soc = lib.htvm_soc_new(ctypes.byref(self._bus))
        assert self._soc
        self.now = 0

    def close(self) -> None:
        self._lib.htvm_soc_free(self._soc)

    @property
    def error(self) -> str | None:
        text = self._lib.htvm_soc_error(self._soc)
        return None if text is None else text.decode()

    def write(self, address: int, value: int) -> None:
        self._lib.htvm_soc_write(self._soc, address, int(value) & 0xFFFFFFFF, self.now)

    def read(self, address: int) -> int:
        return int(self._lib.htvm_soc_read(self._soc, address, self.now))

    def next_event(self) -> int:
        return int(self._lib.htvm_soc_next_event(self._soc, self.now))

    def finish(self, base: int) -> int:
        """Poll until the device is idle; return the cycles that took."""
        start = self.now
        while self.read(base + STATUS) == 1:
            self.now = self.next_event()
        assert self.read(base + STATUS) == 0, self.error
        return self.now - start

    def events(self) -> list[dict[str, Any]]:
        """What the devices did."""
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        libc.fclose.argtypes = [ctypes.c_void_p]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events"
            file = libc.fopen(str(path).encode(), b"w")
            self._lib.htvm_soc_events(self._soc, file)
            libc.fclose(file)
            return [json.loads(line) for line in path.read_text().splitlines()]

    def put(self, at: int, data: Array, stride: int | None = None) -> None:
        """Store rows of bytes at an offset of L1."""
        rows = np.ascontiguousarray(data).view(np.uint8).reshape(len(data), -1)
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
