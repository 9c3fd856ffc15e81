"""Helper: a SoC's device models as a shared library; Python plays memory, clock and driver."""

from __future__ import annotations

import ctypes
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.soc.base import Soc
from byoc_dory.soc.header import render
from htvm.firmware.host import include_folders, model_sources
from htvm.firmware.toolchain import Compiler

_MAP = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)


class _Bus(ctypes.Structure):
    _fields_ = [("ctx", ctypes.c_void_p), ("map", _MAP)]


def load(soc: Soc) -> ctypes.CDLL:
    """Build (once per change) and load the models."""
    path = Compiler.zig().built(
        f"lib{soc.name}_models.so",
        model_sources(soc),
        include_folders(soc),
        generated=(("htvm_soc.h", render(soc)),),
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


class Models:
    """The devices of one SoC, and the memories that they find on the bus.

    Attributes:
        now: the time, in cycles, of the next access.
    """

    def __init__(self, lib: ctypes.CDLL, memories: Mapping[int, npt.NDArray[np.uint8]]) -> None:
        """``memories``: device address of the first byte -> the bytes."""
        self._lib = lib

        def translate(_ctx: int, addr: int, size: int) -> int | None:
            for base, memory in memories.items():
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
        """Poll the status register at ``base`` until it says idle; return the cycles that took."""
        start = self.now
        while self.read(base) == 1:
            self.now = self.next_event()
        assert self.read(base) == 0, self.error
        return self.now - start

    def events(self) -> list[dict[str, Any]]:
        """What the devices did, and when the host waited."""
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        libc.fclose.argtypes = [ctypes.c_void_p]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "events"
            file = libc.fopen(str(path).encode(), b"w")
            self._lib.htvm_soc_events(self._soc, file)
            libc.fclose(file)
            return [json.loads(line) for line in path.read_text().splitlines()]
