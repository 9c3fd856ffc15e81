"""Helper: N-EUREKA's device model; Python plays memory, clock and driver."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from byoc_dory.soc.base import Accelerator, Host, HostCost, SimControl, Soc
from byoc_dory.soc.siracusa.memories import L1, MRAM, SRAM
from byoc_dory.soc.siracusa.neureka import NEUREKA, cautious
from tests.runtime_c.models import Models, load

Array = npt.NDArray[Any]

# What the SoC lacks so far does not matter here; nothing below reads it.
SOC = Soc(
    name="siracusa",
    title="N-EUREKA and its memories",
    clock_hz=1,
    memories=(L1, MRAM, SRAM),
    host=Host("none", "rv32imc", 0, HostCost(*[0.0] * 10)),
    sim=SimControl(0, 0, 0),
    dma=None,
    accelerators=(cast(Accelerator, NEUREKA),),
    targets=(),
    driver="siracusa",
)
CAUTIOUS = replace(
    SOC, name="siracusa_cautious", accelerators=(cast(Accelerator, cautious(NEUREKA)),)
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
