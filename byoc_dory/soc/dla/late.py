"""The late assembler as a library: what a device does at start-up, called from Python; and its C.

The same C files are part of programs built with ``assembly="late"``; here they are in the native
library of the simulator (`byoc_dory.soc.dla.simulator`), and sweeps use them, because a new design
then costs a fraction of a millisecond.

The JSON and the weights of the region are constants, and files beside the C in exports.  Tensors
are parameters of every layer, also if they stay in SRAM on this design: on another one they may
not, and the same C and JSON run there.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from byoc_dory.emit.text import part_name, rendered
from byoc_dory.errors import (
    HtvmError,
    InputError,
    ModelError,
    SimulationError,
    TargetError,
    TilingError,
)
from byoc_dory.region import Constant, Kernel, Region
from byoc_dory.soc.dla.assemble import Stream
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.memory import LayerMemory
from byoc_dory.soc.dla.region_file import RegionFile
from byoc_dory.soc.dla.tiles import Tiling

# Sizes of the C component's tables (dla_late.h): all fields are 32-bit numbers.
_TENSOR_BYTES = 8 * 4
_LAYER_BYTES = 26 * 4

(_ARENA, _TABLES, _TRUNCATED, _SYNTAX, _FORMAT, _VERSION, _FIELD, _LAYER, _LENGTH, _WEIGHTS, _SRAM,
 _DESIGN) = range(-1, -13, -1)  # fmt: skip


def arena_bytes(region: RegionFile, stream: Stream) -> int:
    """Return the bytes of arena, at a multiple of 8, that a device needs to make a stream."""
    tables = len(region.tensors) * _TENSOR_BYTES + len(region.layers) * _LAYER_BYTES
    return tables + 4 * len(stream.starts) + 4 * len(stream.words)


class _DesignC(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in (
        "pes_in", "pes_out", "sram", "dma_bytes", "dma_setup", "depthwise", "fused", "rows",
        "resident",
    )]  # fmt: skip


class _TensorC(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in (
        "channels", "rows", "columns", "kind", "place", "last", "stays", "known",
    )]  # fmt: skip


class _LayerC(ctypes.Structure):
    _fields_ = [
        ("op", ctypes.c_uint32), ("inputs", ctypes.c_uint32 * 2), ("output", ctypes.c_uint32),
        ("kernel", ctypes.c_uint32 * 2), ("stride", ctypes.c_uint32 * 2),
        ("pad", ctypes.c_uint32 * 4), ("shift", ctypes.c_uint32), ("clip", ctypes.c_int32 * 2),
        ("weights", ctypes.c_uint32), ("tile_k", ctypes.c_uint32), ("tile_y", ctypes.c_uint32),
        ("operands", ctypes.c_uint32 * 2), ("result", ctypes.c_uint32), ("sums", ctypes.c_uint32),
        ("block", ctypes.c_uint32), ("resident", ctypes.c_uint32 * 2), ("stays", ctypes.c_uint32),
    ]  # fmt: skip


class _LateC(ctypes.Structure):
    _fields_ = [
        ("tensors", ctypes.POINTER(_TensorC)), ("layers", ctypes.POINTER(_LayerC)),
        ("starts", ctypes.POINTER(ctypes.c_uint32)), ("words", ctypes.POINTER(ctypes.c_uint32)),
        *((name, ctypes.c_uint32) for name in (
            "tensor_count", "layer_count", "word_count", "weights_bytes", "peak", "written",
            "unchanged",
        )),
        ("needed", ctypes.c_uint64), ("at", ctypes.c_uint64),
    ]  # fmt: skip


@dataclass(frozen=True)
class LateResult:
    """What the late assembler made.

    Attributes:
        stream: the command stream.
        layers: tile and places of each layer.
        peak: bytes of SRAM in use.
        arena: bytes of the arena in use.
    """

    stream: Stream
    layers: tuple[LayerMemory, ...]
    peak: int
    arena: int


class LateAssembler:
    """The C component, with an arena of its own.

    Args:
        library: path of the simulator's shared library.
        arena: bytes of arena; it grows as needed if it is None.

    Raises:
        SimulationError: the library cannot be loaded.
    """

    def __init__(self, library: Path, arena: int | None = None) -> None:
        try:
            c = ctypes.CDLL(str(library))
        except OSError as error:
            raise SimulationError(
                f"the simulator's library cannot be loaded: {error}",
                where=str(library),
                hint="remove that file; it will be built again",
            ) from error
        self._call: Any = c.dla_late_assemble
        self._call.restype = ctypes.c_int32
        self._call.argtypes = [
            ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t,
            ctypes.POINTER(_DesignC), ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_LateC),
        ]  # fmt: skip
        self._grows = arena is None
        self._arena = self._allocated(1 << 16 if arena is None else arena)

    @staticmethod
    def _allocated(size: int) -> Any:
        return (ctypes.c_uint64 * max(1, -(-size // 8)))(), size

    def assemble(
        self, json: bytes, design: Design, weights: bytes | None = None, where: str = ""
    ) -> LateResult:
        """Make tiles, memory plan and command stream of a region.

        Args:
            json: the region's file.
            design: numbers of the accelerator.
            weights: contents of the file beside it, whose hash is checked; None to leave that out.
            where: name of the file, for messages.

        Raises:
            ModelError: the JSON is truncated, damaged, of a newer schema, or no region, or the
                weights are those of another network.
            TilingError: a layer's smallest tile does not fit.
            InputError: the arena is too small; the message has the size that it needs.
        """
        numbers = _DesignC(
            design.pes_in, design.pes_out, design.sram, design.dma_bytes, design.dma_setup,
            design.depthwise, design.fused, design.rows, design.resident,
        )  # fmt: skip
        late = _LateC()
        for _ in range(3):
            memory, size = self._arena
            code = self._call(
                json, len(json), weights, 0 if weights is None else len(weights),
                ctypes.byref(numbers), ctypes.addressof(memory), size, ctypes.byref(late),
            )  # fmt: skip
            if code == 0:
                return _result(late)
            if code not in (_ARENA, _TABLES) or not self._grows:
                break
            self._arena = self._allocated(2 * late.needed)
        raise _error(code, late, where or "region file", design)


def _result(late: Any) -> LateResult:
    words = array("I", bytes(0))
    size = 4 * late.word_count
    words.frombytes(ctypes.string_at(late.words, size))
    starts = tuple(late.starts[: late.layer_count + 1])
    layers = tuple(_memory(late.layers[number]) for number in range(late.layer_count))
    stream = Stream(words, starts, late.written, late.unchanged)
    return LateResult(stream, layers, late.peak, late.needed)


def _memory(layer: Any) -> LayerMemory:
    operands = 2 if layer.op == 3 else 1
    return LayerMemory(
        tile=Tiling(layer.tile_k, layer.tile_y),
        operands=tuple(layer.operands[:operands]),
        result=layer.result,
        sums=layer.sums,
        weights=layer.block,
        resident=tuple(bool(found) for found in layer.resident[:operands]),
        stays=bool(layer.stays),
    )


def _error(code: int, late: Any, where: str, design: Design) -> HtvmError:
    """Return the exception of an error code."""
    again = "write it again"
    texts = {
        _TRUNCATED: (f"the JSON ends too early, after {late.at} B", again),
        _SYNTAX: (f"this is no JSON, at byte {late.at}", again),
        _FORMAT: ("it is no region", "give the JSON of a region"),
        _VERSION: (f"its schema has version {late.at}, which this program does not know",
                   "read it with the version of HTVM that wrote it, or write it again"),
        _FIELD: (f"a field is missing, unknown or out of range, at byte {late.at}", again),
        _LAYER: (f"layer {late.at} contradicts its tensors", again),
        _LENGTH: (f"there are not {late.weights_bytes} B of weights",
                  "give the file that was written with it"),
        _WEIGHTS: ("the weights are those of another network: their hash differs",
                   "give the file that was written with it"),
    }  # fmt: skip
    if code in texts:
        what, hint = texts[code]
        return ModelError(what, where=where, hint=hint)
    if code == _SRAM:
        return TilingError(
            f"the smallest tile needs {late.needed} B of SRAM, the limit is {design.sram} B",
            where=f"{where}, layer {late.at}",
            hint="give more SRAM, or tile rows, too",
            limit=design.sram,
            smallest=late.needed,
        )
    if code == _DESIGN:
        return TargetError("a number of the design is out of range", where=where)
    least = "" if code == _ARENA else "at least "
    return InputError(
        f"the arena is too small: it needs {least}{late.needed} B", where=where,
        hint="give that much",
    )  # fmt: skip


@dataclass(frozen=True)
class _Late:
    """A region's name in C, and its two constants."""

    name: str
    json: Constant
    weights: Constant


def late_kernels(
    region: Region,
    file: RegionFile,
    weights: bytes,
    stream: Stream,
    design: Design,
    kernels: Sequence[Kernel],
    symbol: Callable[[str], str],
    sram: int | None,
) -> tuple[Kernel, ...]:
    """Return the kernels of a region that is assembled late.

    Args:
        region, file, weights: the region, as layers and as its two files.
        stream: the stream that this design will have, for the size of the arena.
        design: numbers of the accelerator.
        kernels: the kernels as they are ahead of time.
        symbol: makes C names.
        sram: bytes of SRAM that may be used; None for all that the device has.
    """
    name = symbol(f"{region.name}_region")
    text = msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"
    late = _Late(
        name,
        Constant(part_name(name, "json"), np.frombuffer(text, np.uint8), f"{region.name} as JSON",
                 file=f"{name}.json"),
        Constant(part_name(name, "weights"), np.frombuffer(weights or b"\0", np.uint8),
                 f"weights and biases of {region.name}", file=f"{name}.bin"),
    )  # fmt: skip
    bytes_ = -(-arena_bytes(file, stream) // 8) * 8
    head = rendered(
        "byoc_dory.soc.dla",
        "late.c.jinja",
        region=region.name,
        name=name,
        bytes=bytes_,
        sram="HTVM_L1_SIZE" if sram is None else f"{sram}u",
        resident=int(design.resident),
        json_bytes=f"{len(text)}u",
        weights_bytes=f"{len(weights)}u",
    )
    made = [_kernel(kernel, file, late, number) for number, kernel in enumerate(kernels)]
    return (replace(made[0], source=head + made[0].source), *made[1:])


def _kernel(kernel: Kernel, file: RegionFile, late: _Late, number: int) -> Kernel:
    layer, plan = kernel.layer, kernel.plan
    assert layer is not None and plan is not None
    entry = file.layers[number]
    block = file.block_bytes(entry)
    slots = [f"{late.weights.name} + {entry.weights}" if block else "NULL"]
    slots += [f"in{place}" for place in range(len(layer.inputs))]
    slots += ["NULL"] * (3 - len(slots))
    arguments = [f"const int8_t *in{place}" for place in range(len(layer.inputs))]
    signature = f"int32_t {kernel.symbol}({', '.join(arguments)}, int8_t *out)"
    text = rendered(
        "byoc_dory.soc.dla",
        "late_layer.c.jinja",
        layer=layer,
        tile=plan.solution.tile,
        signature=signature,
        slots=[*slots, "out"],
        name=late.name,
        number=number,
    )
    return replace(
        kernel,
        source=text,
        prototype=f"{signature};",
        inputs=tuple(tensor.name for tensor in layer.inputs),
        outputs=(layer.output.name,),
        constants=(late.json, late.weights),
    )
