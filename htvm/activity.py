"""What happened in a run over time: when units worked, and what lay in memories."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """An interval in which a unit works, in cycles from the entry function's call.

    Attributes:
        unit: a working device ("dma", "digital", ...); "waiting": the host polls a device;
            "cluster": all compute cores run a kernel, including the host ("core0"); "core1" and so
            on: one of them, or the one that serves the DMA.
        start, end: first cycle, and the cycle after the last.
    """

    unit: str
    start: int
    end: int


@dataclass(frozen=True)
class MemoryBlock:
    """A range of bytes of a memory that is in use for some steps.

    Attributes:
        name: name of the tensor stored there.
        offset: offset of the first byte.
        bytes: number of bytes.
        first, last: indices of the first and the last step (rows of a report, layers of a run) that
            need it, both inclusive.
        resident: whether it is a whole tensor that stays in L1 between layers.
    """

    name: str
    offset: int
    bytes: int
    first: int
    last: int
    resident: bool = False


@dataclass(frozen=True)
class MemoryMap:
    """The contents of a memory over time.

    Attributes:
        memory: name of the memory, "L1" or "L2 arena".
        limit: size in bytes.
        peak: bytes in use.
        blocks: the ranges in use, in the order of their first step.
    """

    memory: str
    limit: int
    peak: int
    blocks: tuple[MemoryBlock, ...]
