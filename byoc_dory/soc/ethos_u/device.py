"""The model of the device, called from Python as its driver would call it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from byoc_dory.layers import Array
from byoc_dory.soc.ethos_u.vela import Compiled

_WORKSPACE = 1 << 20
_COMPLAINT = 240
_ALIGNMENT = 16
_WEIGHTS, _SCRATCH = 0, 1


class _Range(ctypes.Structure):
    _fields_ = (
        ("region", ctypes.c_uint32),
        ("first", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
    )


class _Call(ctypes.Structure):
    """``htvm_ethos_u_call_t`` of ``runtime_c/soc/ethos_u/htvm_ethos_u.h``."""

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
    """``htvm_ethos_u_result_t``."""

    _fields_ = (
        ("commands", ctypes.c_uint32),
        ("macs", ctypes.c_uint64),
        ("complaint", ctypes.c_char * _COMPLAINT),
    )


class Device:
    """The model of the device.

    Args:
        library: the models as a shared library.
    """

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))

    def run(self, made: Compiled, inputs: list[Array]) -> tuple[list[Array], str]:
        """Execute what Vela made of a network.

        Args:
            made: the program.
            inputs: its inputs.

        Returns:
            The bytes of its outputs, int8, and the model's complaint; empty if there is none.
        """
        weights = _aligned(np.frombuffer(made.weights or bytes(_ALIGNMENT), np.uint8))
        scratch = _aligned(np.zeros(max(made.scratch, _ALIGNMENT), np.uint8))
        payload = _aligned(np.frombuffer(made.payload, np.uint8))
        ranges = (_Range * (1 + len(inputs)))()
        ranges[0] = _Range(_WEIGHTS, 0, weights.size)
        for number, (place, array) in enumerate(zip(made.inputs, inputs, strict=True)):
            flat = np.asarray(array, order="C").reshape(-1).view(np.uint8)
            scratch[place.offset : place.offset + flat.size] = flat
            ranges[1 + number] = _Range(_SCRATCH, place.offset, flat.size)
        fast = _aligned(np.zeros(max(made.fast, _ALIGNMENT), np.uint8))
        regions = (weights, scratch, fast)[: 3 if made.fast else 2]
        room = _WORKSPACE + sum(region.size for region in regions) // 8
        workspace = _aligned(np.zeros(room, np.uint8))
        base = (ctypes.c_void_p * 3)(*(region.ctypes.data for region in regions))
        sizes = (ctypes.c_size_t * 3)(*(region.size for region in regions))
        call = _Call(
            payload=payload.ctypes.data,
            payload_bytes=payload.size,
            base=base,
            bytes=sizes,
            regions=len(regions),
            checked=True,
            constant=1 << _WEIGHTS,
            written=ranges,
            written_count=len(ranges),
            workspace=workspace.ctypes.data,
            workspace_bytes=workspace.size,
        )
        result = _Result()
        status = self._library.htvm_ethos_u_run(ctypes.byref(call), ctypes.byref(result))
        complaint = result.complaint.decode(errors="replace")
        if status and not complaint:
            complaint = f"status {status}"
        outputs = [
            scratch[place.offset : place.offset + place.size].view(np.int8).copy()
            for place in made.outputs
        ]
        return outputs, complaint


def _aligned(data: Array) -> Array:
    """Return a copy of bytes in memory that begins at a multiple of 16."""
    room = np.zeros(data.size + _ALIGNMENT, np.uint8)
    first = -room.ctypes.data % _ALIGNMENT
    room[first : first + data.size] = data
    return room[first : first + data.size]
