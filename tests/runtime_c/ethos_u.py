"""Helper: the model of the Ethos-U as a library; Python plays compiler and driver."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler

Array = npt.NDArray[Any]

FOLDER = runtime_c() / "soc" / "ethos_u"
INCLUDES = (FOLDER, FOLDER / "model", runtime_c() / "include")
ACCELERATORS = {
    "ethos-u55-32": (55, 32),
    "ethos-u55-64": (55, 64),
    "ethos-u55-128": (55, 128),
    "ethos-u55-256": (55, 256),
    "ethos-u65-256": (65, 256),
}
DONE, BAD_CALL, BAD_PAYLOAD, BAD_STREAM, TOO_LONG = range(5)


def sources() -> list[Path]:
    """The C files of the model."""
    return sorted((FOLDER / "model").glob("*.c"))


class _Range(ctypes.Structure):
    _fields_ = (
        ("region", ctypes.c_uint32),
        ("first", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
    )


class _Call(ctypes.Structure):
    _fields_ = (
        ("payload", ctypes.c_void_p),
        ("payload_bytes", ctypes.c_size_t),
        ("base", ctypes.POINTER(ctypes.c_void_p)),
        ("bytes", ctypes.POINTER(ctypes.c_size_t)),
        ("regions", ctypes.c_uint32),
        ("macs", ctypes.c_uint32),
        ("product", ctypes.c_uint32),
        ("checked", ctypes.c_bool),
        ("constant", ctypes.c_uint32),
        ("written", ctypes.POINTER(_Range)),
        ("written_count", ctypes.c_uint32),
        ("work_limit", ctypes.c_uint64),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_size_t),
    )


class _Result(ctypes.Structure):
    _fields_ = (
        ("commands", ctypes.c_uint32),
        ("macs", ctypes.c_uint64),
        ("complaint", ctypes.c_char * 240),
    )


def library() -> ctypes.CDLL:
    """Build (once per change) and load the model."""
    path = Compiler.zig().built("ethos_u.so", sources(), INCLUDES, shared=True)
    return ctypes.CDLL(str(path))


def aligned(data: bytes | Array | int, spare: int = 0) -> Array:
    """Bytes (or so many zeros) in memory of their own, at a multiple of 16."""
    raw = np.zeros(data, np.uint8) if isinstance(data, int) else np.frombuffer(data, np.uint8)
    room = np.zeros(raw.size + spare + 16, np.uint8)
    first = -room.ctypes.data % 16
    out = room[first : first + raw.size + spare]
    out[: raw.size] = raw
    return out


@dataclass(frozen=True)
class Result:
    """How a run ended: its status, the complaint, and how much was computed."""

    status: int
    complaint: str
    commands: int
    macs: int


@dataclass
class EthosU:
    """The model with its regions.

    Attributes:
        lib: the library.
        regions: bytes of each region, by its number; aligned.
        constant: regions that must not be written.
        workspace: bytes.
    """

    lib: ctypes.CDLL
    regions: Mapping[int, Array]
    constant: frozenset[int] = frozenset()
    workspace: int = 1 << 20
    _room: Array = field(init=False)

    def __post_init__(self) -> None:
        self._room = aligned(self.workspace)

    def run(
        self,
        payload: bytes,
        *,
        checked: bool = True,
        written: Sequence[tuple[int, int, int]] | None = None,
        accelerator: str | None = None,
        work_limit: int = 0,
    ) -> Result:
        """Execute a payload.

        Args:
            payload: driver actions.
            checked: whether everything is looked for.
            written: regions, first bytes and numbers of bytes that hold values before.
            accelerator: the NPU; as the payload says if not given.
            work_limit: multiply-accumulates at most.
        """
        count = max(self.regions) + 1 if self.regions else 0
        base = (ctypes.c_void_p * max(1, count))()
        size = (ctypes.c_size_t * max(1, count))()
        for region, data in self.regions.items():
            base[region], size[region] = data.ctypes.data, data.size
        words = aligned(payload)
        ranges = None if written is None else (_Range * max(1, len(written)))(*written)
        product, macs = ACCELERATORS[accelerator] if accelerator is not None else (0, 0)
        call = _Call(
            payload=words.ctypes.data,
            payload_bytes=words.size,
            base=base,
            bytes=size,
            regions=count,
            macs=macs,
            product=product,
            checked=checked,
            constant=sum(1 << region for region in self.constant),
            written=ranges,
            written_count=0 if written is None else len(written),
            work_limit=work_limit,
            workspace=self._room.ctypes.data,
            workspace_bytes=self._room.size,
        )
        result = _Result()
        status = int(self.lib.htvm_ethos_u_run(ctypes.byref(call), ctypes.byref(result)))
        return Result(status, result.complaint.decode(), result.commands, result.macs)
