"""The simulator as a library: runs a region's command stream natively, without a host.

The library is made of ``runtime_c/soc/dla/native`` and the device model, and takes the numbers of a
design as data, so that one library serves all designs (`htvm.sim.native` builds it).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byoc_dory.errors import InputError, SimulationError
from byoc_dory.layers import Array
from byoc_dory.soc.dla.assemble import SLOT_RESULT, SLOT_WEIGHTS, Stream, slot_of
from byoc_dory.soc.dla.design import Design
from byoc_dory.soc.dla.header import KINDS
from byoc_dory.soc.dla.isa import INSTRUCTIONS, disassemble
from byoc_dory.soc.dla.region_file import LayerEntry, RegionFile

_MNEMONIC = {instruction.opcode: instruction.name for instruction in INSTRUCTIONS}
_N = len(KINDS)


class _DesignC(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in (
        "pes_in", "pes_out", "sram", "dma_bytes", "dma_setup",
    )]  # fmt: skip


class _TotalsC(ctypes.Structure):
    _fields_ = [
        ("cycles", ctypes.c_uint64 * _N),
        ("instructions", ctypes.c_uint64 * _N),
        ("macs", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("writes", ctypes.c_uint64),
    ]


class _DoneC(ctypes.Structure):
    _fields_ = [
        ("word", ctypes.c_uint64),
        ("cycles", ctypes.c_uint64),
        ("macs", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("kind", ctypes.c_uint32),
        ("opcode", ctypes.c_uint32),
    ]


@dataclass(frozen=True)
class LayerCount:
    """What one layer of a region did.

    Attributes:
        name, op: of the layer.
        cycles, instructions: by kind: CONV, DEPTH, REQUANT, OTHER, DMA.
        macs: multiply-accumulates, with those of padding.
        bytes: bytes moved between system memory and SRAM.
        writes: register writes.
    """

    name: str
    op: str
    cycles: Mapping[str, int]
    instructions: Mapping[str, int]
    macs: int
    bytes: int
    writes: int

    @property
    def computing(self) -> int:
        """Cycles of everything but transfers."""
        return sum(count for kind, count in self.cycles.items() if kind != "DMA")


@dataclass(frozen=True)
class Executed:
    """An instruction that ran; ``word`` is its index in the region's stream."""

    word: int
    name: str
    kind: str
    cycles: int
    macs: int
    bytes: int

    def utilisation(self, pes: int) -> float:
        """Return which part of the PEs' multiply-accumulates it used."""
        return self.macs / (self.cycles * pes) if self.cycles else 0.0


class Simulator:
    """An accelerator with its SRAM and registers, which keep their contents between runs.

    Args:
        library: path of the simulator's shared library.
        design: numbers of the accelerator.

    Raises:
        SimulationError: the library cannot be loaded, or there is not enough memory for the SRAM.
    """

    def __init__(self, library: Path, design: Design) -> None:
        self._self: Any = None
        try:
            self._c: Any = ctypes.CDLL(str(library))
        except OSError as error:
            raise SimulationError(
                f"the simulator's library cannot be loaded: {error}",
                where=str(library),
                hint="remove that file; it will be built again",
            ) from error
        self._c.dla_native_new.restype = ctypes.c_void_p
        self._c.dla_native_error.restype = ctypes.c_char_p
        self._c.dla_native_run.argtypes = [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64,
            ctypes.POINTER(_TotalsC), ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64),
        ]  # fmt: skip
        self._c.dla_native_slot.argtypes = [
            ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint64,
        ]  # fmt: skip
        self._c.dla_native_free.argtypes = self._c.dla_native_error.argtypes = [ctypes.c_void_p]
        numbers = _DesignC(
            design.pes_in, design.pes_out, design.sram, design.dma_bytes, design.dma_setup
        )
        self._self = self._c.dla_native_new(ctypes.byref(numbers))
        if not self._self:
            raise SimulationError(
                f"there is no memory for an SRAM of {design.sram} B", where="dla simulator"
            )

    def __del__(self) -> None:
        if self._self:
            self._c.dla_native_free(self._self)

    def run(
        self,
        region: RegionFile,
        weights: bytes,
        inputs: Mapping[str, Array],
        stream: Stream,
        trace: list[Executed] | None = None,
    ) -> tuple[dict[str, Array], list[LayerCount]]:
        """Execute a region.

        Args:
            region: its layers.
            weights: the contents of its file of weights.
            inputs: int8 ``[rows, columns, channels]`` of each input, by name.
            stream: its command stream for this design.
            trace: receives every instruction.

        Returns:
            The outputs, int8 ``[rows, columns, channels]``, and what each layer did.

        Raises:
            InputError: an input is missing, or has another size.
            SimulationError: the accelerator complained; the message has layer and word.
        """
        arrays = [np.zeros((t.rows, t.columns, t.channels), np.int8) for t in region.tensors]
        for tensor, entry in zip(arrays, region.tensors, strict=True):
            if entry.kind == "input":
                given = inputs.get(entry.name)
                if given is None or given.size != tensor.size or given.dtype != np.int8:
                    raise InputError(
                        f"input '{entry.name}' is not int8{list(tensor.shape)}",
                        where=f"region '{region.name}'",
                    )
                tensor[...] = given.reshape(tensor.shape)
        packed = np.frombuffer(weights, np.uint8)
        words = np.frombuffer(stream.words.tobytes(), np.uint32)
        counts = []
        for number, layer in enumerate(region.layers):
            self._slots(region, layer, packed, arrays)
            first, last = stream.starts[number : number + 2]
            counts.append(self._layer(layer, words[first:last], first, trace))
        return {
            entry.name: tensor
            for tensor, entry in zip(arrays, region.tensors, strict=True)
            if entry.kind == "output"
        }, counts

    def _slots(
        self, region: RegionFile, layer: LayerEntry, weights: Array, arrays: list[Array]
    ) -> None:
        block = weights[layer.weights : layer.weights + region.block_bytes(layer)]
        self._slot(SLOT_WEIGHTS, block)
        for place, number in enumerate(layer.inputs):
            self._slot(slot_of(place), arrays[number])
        self._slot(SLOT_RESULT, arrays[layer.output])

    def execute(self, words: Sequence[int], slots: Mapping[int, Array]) -> LayerCount:
        """Execute words that belong to no region, such as those of a test.

        Args:
            words: a command stream.
            slots: system memory of each slot that it moves from or to.

        Raises:
            SimulationError: the accelerator complained.
        """
        for slot, memory in slots.items():
            self._slot(slot, memory)
        layer = LayerEntry("words", "conv", (), 0, (1, 1), (1, 1), (0, 0, 0, 0), 0, (0, 0), 0)
        return self._layer(layer, np.array(words, np.uint32), 0, None)

    def _slot(self, slot: int, memory: Array) -> None:
        self._c.dla_native_slot(self._self, slot, memory.ctypes.data, memory.nbytes)

    def _layer(
        self, layer: LayerEntry, words: Array, first: int, trace: list[Executed] | None
    ) -> LayerCount:
        totals, entries = _TotalsC(), ctypes.c_uint64(0)
        executed = None if trace is None else (_DoneC * len(words))()
        failed = self._c.dla_native_run(
            self._self, words.ctypes.data, len(words), ctypes.byref(totals),
            None if executed is None else ctypes.addressof(executed), ctypes.byref(entries),
        )  # fmt: skip
        if failed:
            raise SimulationError(
                self._c.dla_native_error(self._self).decode(),
                where=f"layer '{layer.name}', whose stream begins at word {first}",
            )
        if executed is not None and trace is not None:
            for each in executed[: entries.value]:
                trace.append(
                    Executed(
                        first + each.word, _MNEMONIC[each.opcode], KINDS[each.kind], each.cycles,
                        each.macs, each.bytes,
                    )
                )  # fmt: skip
        return LayerCount(
            layer.name,
            layer.op,
            dict(zip(KINDS, totals.cycles, strict=True)),
            dict(zip(KINDS, totals.instructions, strict=True)),
            totals.macs,
            totals.bytes,
            totals.writes,
        )


def trace_lines(words: Sequence[int], executed: Sequence[Executed], pes: int) -> Iterator[str]:
    """Yield one line per word or register write; instructions with their cycles.

    Args:
        words: a region's command stream.
        executed: what `Simulator.run` traced of it.
        pes: number of PEs, for their utilisation.
    """
    executed_at = {each.word: each for each in executed}
    start = 0
    for line in disassemble(words):
        found = executed_at.get(int(line.split(maxsplit=1)[0]))
        if found is None:
            yield line
            continue
        work = f"{found.bytes:,} B"
        if found.kind != "DMA":
            work = f"{found.macs:,} MAC, {100 * found.utilisation(pes):.0f} % of the PEs"
        yield f"{line:<40} at {start:>10,}: {found.cycles:,} cycles, {work}"
        start += found.cycles
