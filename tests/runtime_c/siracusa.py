"""Helper: N-EUREKA's device model; Python plays memory, clock and driver."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from byoc_dory.soc.base import Accelerator, Soc
from byoc_dory.soc.siracusa import memories
from byoc_dory.soc.siracusa.description import soc as description
from byoc_dory.soc.siracusa.memories import L2, MRAM, SRAM
from byoc_dory.soc.siracusa.neureka import NEUREKA, cautious
from htvm.firmware.paths import runtime_c
from tests.runtime_c.models import Models, load

Array = npt.NDArray[Any]

# All of L1, as if the firmware had no stacks there.
L1 = replace(memories.L1, size=memories.L1.size + memories.L1.reserved, reserved=0)
SOC = replace(description(), memories=(L1, L2, MRAM, SRAM))
CAUTIOUS = replace(
    SOC, name="siracusa_cautious", accelerators=(cast(Accelerator, cautious(NEUREKA)),)
)
# The drivers of devices, without those that need the cluster's harts.
DRIVERS = tuple(
    runtime_c() / "soc" / "siracusa" / f"siracusa_{name}_driver.c" for name in ("dma", "neureka")
)
BASE = 0x00201000
TRIGGER, ACQUIRE, FINISHED, STATUS, RUNNING, CLEAR, JOB = 0, 4, 8, 0xC, 0x10, 0x14, 0x20
FULL, LOCKED = 0xFFFFFFFF, 0xFFFFFFFE
WEIGHT_BYTES = 1 << 20  # as much of each half of the weight memory as tests need


def library(soc: Soc = SOC) -> ctypes.CDLL:
    """Build (once per change) and load the model."""
    return load(soc)


class Engine(Models):
    """The engine with memories of its own."""

    def __init__(self, lib: ctypes.CDLL) -> None:
        self.l1 = np.zeros(L1.size, np.uint8)
        self.mram = np.zeros(WEIGHT_BYTES, np.uint8)
        self.sram = np.zeros(WEIGHT_BYTES, np.uint8)
        super().__init__(lib, {L1.base: self.l1, MRAM.base: self.mram, SRAM.base: self.sram})

    def get(self, offset: int) -> int:
        return self.read(BASE + offset)

    def set(self, offset: int, value: int) -> None:
        self.write(BASE + offset, value)

    def start(self, registers: list[int]) -> int:
        """Queue a job; return its number."""
        number = self.get(ACQUIRE)
        for index, value in enumerate(registers):
            self.set(JOB + 4 * index, value)
        self.set(TRIGGER, 0)
        return number

    def drain(self) -> int:
        """Wait until all jobs are done; return the cycles that took."""
        begin = self.now
        while self.get(STATUS):
            self.now = self.next_event()
        return self.now - begin
