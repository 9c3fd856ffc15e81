"""Helper: run kernels of the cluster on the simulated harts: operands in L1, results, cycles.

On rv32 all fields of a kernel's arguments are words, in the order of cluster_kernels.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byoc_dory.soc.snitch_ita.description import soc
from htvm.firmware import rv32
from htvm.firmware.host import driver_sources
from htvm.firmware.paths import driver_folders
from htvm.firmware.socs import machine_of
from htvm.firmware.toolchain import Compiler
from htvm.sim.rv32 import run_rv32

Array = npt.NDArray[Any]

KERNELS = (
    "nothing", "gemm", "matmul", "add", "map", "table_softmax", "ita_softmax", "layer_norm",
    "rms_norm", "affine_norm", "conv2d", "depthwise", "transpose",
)  # fmt: skip
_WORDS = 32
_IMAGE = 1 << 22

SOC = soc()
L1 = SOC.memory("L1")


@dataclass
class Case:
    """One run of a kernel.

    Attributes:
        kernel: of `KERNELS`.
        words: its arguments; negative numbers in two's complement.
        out: (address, bytes) of the result.
    """

    kernel: str
    words: Sequence[int] = ()
    out: tuple[int, int] = (0, 0)
    _image: list[Array] = field(default_factory=list)
    _used: int = 0

    def put(self, values: Array, align: int = 8) -> int:
        """Place an operand in L1; returns its address."""
        at = self.room(values.nbytes, align)
        self._image[-1][:] = np.asarray(values, order="C").view(np.uint8).reshape(-1)
        return at

    def room(self, size: int, align: int = 8) -> int:
        """Room for a result, behind all before; returns its address."""
        gap = -self._used % align
        self._image += [np.zeros(gap, np.uint8), np.zeros(size, np.uint8)]
        self._used += gap + size
        assert self._used <= L1.size, f"{self._used} B in L1"
        return L1.base + self._used - size

    @property
    def image(self) -> bytes:
        """L1 before the kernel runs."""
        return b"".join(part.tobytes() for part in self._image)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a kernel left, uint8, and the cycles from its call on hart 0 to its return there."""

    result: Array
    cycles: int


def build(folder: Path, compiler: Compiler | None = None) -> rv32.Firmware:
    """The firmware that runs cases."""
    return rv32.build_firmware(
        [Path(__file__).with_name("cluster_kernels.c"), *driver_sources(SOC)],
        driver_folders(SOC),
        machine_of(SOC),
        folder,
        compiler or Compiler.zig(),
        SOC.host.stack,
        ("-Wall", "-Wextra", "-Werror"),
    )


def run(firmware: rv32.Firmware, cases: Sequence[Case]) -> list[Outcome]:
    """Run cases one after another."""
    entries, image, kept = [], b"", 0
    for case in cases:
        words = [word & 0xFFFFFFFF for word in case.words]
        before, size = case.image, case.out[1]
        entries += [KERNELS.index(case.kernel), *words, *[0] * (_WORDS - len(words))]
        entries += [len(image), len(before), max(case.out[0] - L1.base, 0), kept, size]
        image, kept = image + before, kept + size
    assert max(len(image), kept) <= _IMAGE
    ran = run_rv32(
        firmware,
        {
            "cases": np.array(entries, np.uint32).tobytes(),
            "count": np.uint32(len(cases)).tobytes(),
            "image": image,
        },
        {"results": max(kept, 1)},
    )
    results = np.frombuffer(ran.outputs["results"], np.uint8)
    times = {event: cycle for cycle, event in ran.marks}
    outcomes, at = [], 0
    for index, case in enumerate(cases):
        size = case.out[1]
        cycles = times[2 * index + 1] - times[2 * index]
        outcomes.append(Outcome(results[at : at + size], cycles))
        at += size
    return outcomes
