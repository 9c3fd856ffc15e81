"""Helper: what a device model says of the banks of L1 that it takes."""

from __future__ import annotations

import ctypes


class Port(ctypes.Structure):
    """``htvm_soc_port_t``."""

    _fields_ = [
        ("start", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("busy", "of", "bank", "step", "width", "most")),
    ]


class Banks(ctypes.Structure):
    """``htvm_soc_banks_t``."""

    _fields_ = [
        ("start", ctypes.c_uint64),
        ("until", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("port", Port * 4),
    ]
