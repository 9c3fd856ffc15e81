"""The qemu platform: running a firmware for a Cortex-M core on a machine of ``qemu-system-arm``.

QEMU logs every block of straight code that it executes, and the code of a block when it first meets
it; a block's instructions times its executions are exact counts.  Steps are found as on the arm
platform, by the symbols of the firmware, and nothing is added to the program.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from byoc_dory.errors import DependencyError
from htvm.firmware.arm import core_of
from htvm.sim.arm_run import MAX_INSTRUCTIONS, PAINT, ArmRun, Place, StepCounts, flash_image

if TYPE_CHECKING:
    from htvm.firmware.arm import ArmFirmware

PROGRAM = "qemu-system-arm"

_What: TypeAlias = Place | Literal["", "done", "fault"]

_KEPT_LINES = 5
_BLOCK = "Trace "
_CODE = re.compile(r"0x[0-9a-f]{8}: {1,2}([0-9a-f]{4})(?: ([0-9a-f]{4}))?\b")
_PC = re.compile(r"\[[0-9a-f]+/([0-9a-f]+)/")


def run_qemu(
    firmware: ArmFirmware,
    inputs: Mapping[str, bytes],
    outputs: Mapping[str, int],
    *,
    entry: str,
    kernels: Sequence[str],
    max_instructions: int = MAX_INSTRUCTIONS,
) -> ArmRun:
    """Run a firmware on QEMU's machine with its core.

    Args:
        firmware: the firmware, linked for the memories of `htvm.firmware.arm.on_qemu`.
        inputs, outputs, entry, kernels, max_instructions: as for `htvm.sim.arm.run_arm`.

    Raises:
        DependencyError: QEMU is not installed.
        SimulationError: the firmware lacks a symbol, faulted, or took too many instructions, or
            QEMU failed.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise DependencyError(
            f"running firmware on QEMU needs {PROGRAM}",
            hint="install the package of your system with it: on Debian and Ubuntu, "
            "qemu-system-arm",
        )
    with tempfile.TemporaryDirectory(prefix="htvm-qemu-") as folder:
        return _Run(firmware, entry, kernels, max_instructions, Path(folder)).run(
            program, inputs, outputs
        )


class _Run:
    """One run of a firmware."""

    def __init__(
        self, firmware: ArmFirmware, entry: str, kernels: Sequence[str], limit: int, folder: Path
    ) -> None:
        self.firmware, self.limit, self.folder = firmware, limit, folder
        self.steps = StepCounts(firmware, entry, kernels)
        self.ranges: list[tuple[int, int, _What]] = [
            *self.steps.ranges,
            self.steps.range("htvm_done", "done"),
            self.steps.range("htvm_fault", "fault"),
        ]

    # ------------------------------------------------------------------ running

    def run(self, program: str, inputs: Mapping[str, bytes], outputs: Mapping[str, int]) -> ArmRun:
        low, top, symbol = self.steps.low, self.steps.top, self.firmware.symbol
        loaded = {low: PAINT * (top - low)}
        loaded |= {symbol(name, len(data)).address: data for name, data in inputs.items()}
        saved = {name: (symbol(name, size).address, size) for name, size in outputs.items()}
        saved["__stack"] = (low, top - low)
        image = self.folder / "flash.elf"
        image.write_bytes(self._flash())
        line = [program, "-M", self._machine(), "-kernel", str(image)]
        line += ["-display", "none", "-serial", "none", "-monitor", "stdio"]
        line += ["-d", "exec,nochain,in_asm"]
        for number, (address, data) in enumerate(loaded.items()):
            (self.folder / f"in{number}").write_bytes(data)
            file = f"{self.folder}/in{number}"
            line += ["-device", f"loader,file={file},addr={address:#x},force-raw=on"]
        self._execute(line, [*saved.values()])
        found = {name: (self.folder / f"out{at}").read_bytes() for at, name in enumerate(saved)}
        return self.steps.result(found, found.pop("__stack"))

    def _flash(self) -> bytes:
        """Return an ELF file of the contents of flash only: QEMU refuses to load RAM twice."""
        soc, data = self.firmware.machine, flash_image(self.firmware)
        base, head, size = soc.memory(soc.code_memory).base, 52 + 32, len(data)
        kind, flags = (b"\x7fELF", 1, 1, 1, 0, 2, 40, 1), 0x5000000
        return (
            struct.pack("<4s4B8x2H5I6H", *kind, base, 52, 0, flags, 52, 32, 1, 0, 0, 0)
            + struct.pack("<8I", 1, head, base, base, size, size, 7, 4)
            + data
        )

    def _machine(self) -> str:
        machine = core_of(self.firmware.machine, "qemu").qemu
        assert machine is not None  # it was linked for it
        return machine.name

    def _execute(self, line: list[str], saved: list[tuple[int, int]]) -> None:
        """Run QEMU until the firmware is done, and let it save these parts of memory."""
        ending = "".join(
            f'memsave {address:#x} {size} "{self.folder}/out{number}"\n'
            for number, (address, size) in enumerate(saved)
        )
        process = subprocess.Popen(
            line,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        assert process.stdin is not None and process.stderr is not None
        try:
            self._count(process.stderr)
            process.stdin.write(f"stop\n{ending}quit\n")
            process.stdin.close()
            deque(process.stderr, maxlen=0)  # what it logs until it stops
            if process.wait() != 0:
                raise self.firmware.error(f"{PROGRAM} ended with code {process.returncode}")
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    # ------------------------------------------------------------------ counting

    def _count(self, log: Iterable[str]) -> None:
        """Count what a log says until the firmware is done."""
        executed = 0
        blocks: dict[str, tuple[int, int, _What]] = {}
        code: list[str] = []
        last: deque[str] = deque(maxlen=_KEPT_LINES)
        for line in log:
            if not line.startswith(_BLOCK):
                found = _CODE.match(line)
                if found is not None:
                    code += [half for half in found.groups() if half]
                elif line.startswith("IN:"):
                    code = []
                else:
                    last.append(line)
                continue
            if code:  # first execution of a block
                blocks[line] = (_instructions(code), *self._what(line))
                code = []
            try:
                number, pc, what = blocks[line]
            except KeyError:
                raise self.firmware.error(
                    f"{PROGRAM} did not say what it executes: {line!r}"
                ) from None
            if what == "done":
                return
            if what == "fault":
                raise self.firmware.error(
                    f"the program faulted after {executed:,} instructions",
                    "an unaligned access, or an instruction that the core lacks",
                )
            if what:
                self.steps.note(what, pc, executed)
            executed += number
            if executed > self.limit:
                raise self.firmware.error(
                    f"the program took too many instructions ({self.limit:,})"
                )
        raise self.firmware.error(f"{PROGRAM} ended: {' '.join(last).strip() or 'it said nothing'}")

    def _what(self, line: str) -> tuple[int, _What]:
        found = _PC.search(line)
        if found is None:
            raise self.firmware.error(f"{PROGRAM} logged no address: {line!r}")
        pc = int(found[1], 16)
        if pc in self.steps.kernels:
            return pc, "kernel"
        ranges = (what for first, end, what in self.ranges if first <= pc < end)
        return pc, next(ranges, "")


def _instructions(halfwords: Sequence[str]) -> int:
    """Return the number of Thumb instructions; the first halfword tells if one has two."""
    number = at = 0
    while at < len(halfwords):
        at += 2 if int(halfwords[at], 16) >> 11 in (0x1D, 0x1E, 0x1F) else 1
        number += 1
    return number
