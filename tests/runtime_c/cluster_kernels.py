"""Helper: call the cluster's kernels; a loop plays the cores, and results have guards.

There are two sets of kernels, plain ones and those for cores with SIMD.  The latter fall back to
plain C here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.layers import Layer, MulShift, Shift
from byoc_dory.soc.cluster import packing as records
from byoc_dory.soc.header import render
from byoc_dory.soc.snitch_ita.description import soc as description
from htvm.firmware.host import sanitizing
from htvm.firmware.paths import runtime_c
from htvm.firmware.toolchain import Compiler

Array = npt.NDArray[Any]

IN_UNSIGNED, OUT_UNSIGNED, WIDE, PER_CHANNEL, B_ROWS, OUT_TRANSPOSED = 1, 2, 4, 8, 16, 32
LONG = 128
_GUARD = 64  # bytes before and behind a result
_FILL = 0xA5

_PTR, _U32, _I32 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int32


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Requant(ctypes.Structure):
    """cluster_requant_t."""

    _fields_ = [
        *_fields(_I32, "mul add"),
        *_fields(_U32, "shift"),
        *_fields(_I32, "low high"),
        *_fields(_PTR, "muls adds shifts"),
    ]


_REQUANT = [("requant", Requant)]


class Gemm(ctypes.Structure):
    """cluster_gemm_t."""

    _fields_ = [
        *_fields(_PTR, "source weights bias out table"),
        *_fields(_U32, "rows k c in_pitch out_pitch flags"),
        *_REQUANT,
    ]


class Matmul(ctypes.Structure):
    """cluster_matmul_t."""

    _fields_ = [
        *_fields(_PTR, "a second out"),
        *_fields(_U32, "batch rows k c flags"),
        *_REQUANT,
        *_fields(_PTR, "scratch"),
        *_fields(_U32, "workers"),
    ]


class Add(ctypes.Structure):
    """cluster_add_t."""

    _fields_ = [
        ("source", _PTR * 8),
        ("out", _PTR),
        *_fields(_U32, "operands elements flags"),
        *_REQUANT,
        *_fields(_PTR, "table"),
    ]


class Combine(ctypes.Structure):
    """cluster_combine_t."""

    _fields_ = [
        ("source", _PTR * 2),
        ("out", _PTR),
        ("tables", _PTR * 2),
        *_fields(_U32, "elements flags"),
        *_REQUANT,
    ]


class Map(ctypes.Structure):
    """cluster_map_t."""

    _fields_ = [*_fields(_PTR, "source out table"), *_fields(_U32, "elements")]


class TableSoftmax(ctypes.Structure):
    """cluster_table_softmax_t."""

    _fields_ = [
        *_fields(_PTR, "source out exponentials"),
        *_fields(_U32, "rows n levels flags"),
    ]


class ItaSoftmax(ctypes.Structure):
    """cluster_ita_softmax_t."""

    _fields_ = [
        *_fields(_PTR, "source out"),
        *_fields(_U32, "rows n group step_bits numerator flags"),
    ]


class Norm(ctypes.Structure):
    """cluster_norm_t."""

    _fields_ = [
        *_fields(_PTR, "source out weight bias"),
        *_fields(_U32, "rows n shift"),
        *_fields(_I32, "mul"),
        *_fields(_U32, "flags"),
    ]


class Conv(ctypes.Structure):
    """cluster_conv_t."""

    _fields_ = [
        *_fields(_PTR, "source weights bias out"),
        *_fields(_U32, "k c iy ix oy ox fy fx stride_y stride_x pad_top pad_left"),
        *_fields(_U32, "in_pitch out_pitch flags"),
        *_REQUANT,
        *_fields(_PTR, "scratch"),
        *_fields(_U32, "workers"),
    ]


class Transpose(ctypes.Structure):
    """cluster_transpose_t."""

    _fields_ = [*_fields(_PTR, "source out"), *_fields(_U32, "rows columns")]


class Kernels:
    """The kernels, and the arrays that arguments point to."""

    def __init__(self, simd: bool = False) -> None:
        self.simd = simd
        cluster, parts = runtime_c() / "cluster", runtime_c() / "simd"
        folders = [cluster / "rows", cluster / "plain"]
        if simd:
            folders = [cluster / "rows", cluster / "simd", parts]
        sources = [path for folder in folders for path in folder.glob("*.c")]
        includes = [cluster, *folders]
        path = sanitizing_library(sorted(sources), includes)
        self._lib = ctypes.CDLL(str(path))
        self._kept: list[Array] = []
        self._scratch: Array | None = None

    def pointer(self, values: Array | None) -> int | None:
        """Where the bytes of an array are; None for none."""
        if values is None:
            return None
        kept = np.asarray(values, order="C")
        self._kept.append(kept)
        return int(kept.ctypes.data)

    def weights(
        self, weight: Array, bias: Array | None, requant: MulShift, flags: int
    ) -> dict[str, int | None]:
        """The fields of weights: [K][bytes of a window], or depthwise [C][fy][fx]."""
        if not self.simd:
            if weight.ndim == 3:
                weight = weight.transpose(1, 2, 0)
            return {"weights": self.pointer(weight), "bias": self.pointer(bias)}
        count = weight.shape[0]
        numbers = [
            np.resize(np.array(values, np.int64), count)
            for values in ((0,) if bias is None else bias, requant.mul, requant.add, requant.shift)
        ]
        wide = bool(flags & WIDE)
        if weight.ndim == 3:
            unsigned = bool(flags & IN_UNSIGNED)
            packed = records.pack_channels(weight, *numbers, unsigned=unsigned, wide=wide)
        else:
            packed = records.pack_quads(weight, *numbers, wide=wide)
        return {"weights": self.pointer(packed), "bias": None}

    def scratch(self, size: int) -> int:
        """Scratch memory with guards."""
        self._scratch = np.full(size + 2 * _GUARD, _FILL, np.uint8)
        return int(self._scratch.ctypes.data) + _GUARD

    def requant(self, layer: Layer, wide: bool = False) -> tuple[Requant, int]:
        """A layer's requantization, and its flags."""
        rule = layer.requant
        if isinstance(rule, Shift):
            rule = MulShift((1,), (rule.shift,))
        assert isinstance(rule, MulShift)
        low, high = layer.clip
        flags = WIDE if wide else 0
        if max(len(rule.mul), len(rule.add), len(rule.shift)) == 1:
            return Requant(rule.mul[0], rule.add[0], rule.shift[0], low, high), flags
        count = layer.K
        arrays = (
            np.resize(np.array(rule.mul, np.int32), count),
            np.resize(np.array(rule.add, np.int32), count),
            np.resize(np.array(rule.shift, np.uint8), count),
        )
        pointers = [self.pointer(values) for values in arrays]
        return Requant(0, 0, 0, low, high, *pointers), flags | PER_CHANNEL

    def run(
        self,
        name: str,
        args: ctypes.Structure,
        size: int,
        cores: int = 8,
        order: Iterable[int] | None = None,
        gaps: tuple[int, int] | None = None,
        start: Array | None = None,
    ) -> Array:
        """The `size` bytes that a kernel writes to ``args.out``, once it ran on all cores.

        Args:
            name: without ``cluster_``.
            args: all but ``out``.
            size: bytes of the result.
            cores: how many.
            order: in which they run.
            gaps: (bytes, pitch) of the result's rows; what is between them must stay.
            start: bytes that are there before, and the operand.
        """
        buffer = np.full(size + 2 * _GUARD, _FILL, np.uint8)
        args.out = buffer.ctypes.data + _GUARD
        if start is not None:
            buffer[_GUARD : _GUARD + size] = start
            args.source = args.out
        function = getattr(self._lib, f"cluster_{name}")
        for core in order if order is not None else range(cores):
            function(ctypes.byref(args), _U32(core), _U32(cores))
        self._kept.clear()
        if self._scratch is not None:
            guards = self._scratch[:_GUARD], self._scratch[-_GUARD:]
            assert all((guard == _FILL).all() for guard in guards)
            self._scratch = None
        result = buffer[_GUARD : _GUARD + size]
        assert (buffer[:_GUARD] == _FILL).all() and (buffer[-_GUARD:] == _FILL).all()
        if gaps is not None:
            width, pitch = gaps
            padded = np.resize(result, (-(-size // pitch), pitch))
            assert (padded[:-1, width:] == _FILL).all(), "a gap was written to"
        return result.copy()


def sanitizing_library(sources: Iterable[Any], includes: Iterable[Any]) -> Any:
    """A library that stops at undefined behaviour."""
    compiler = sanitizing(Compiler.zig())
    flags = ("-Wall", "-Wextra", "-Werror", "-O0")  # sanitized code takes long to optimize
    return compiler.built(
        "libcluster_kernels.so",
        [*sources],
        [*includes],
        flags,
        generated=(("htvm_soc.h", render(description())),),
        shared=True,
    )
