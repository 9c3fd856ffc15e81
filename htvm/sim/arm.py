"""The arm platform: running a firmware for a Cortex-M core on an emulator (the package unicorn).

The emulator executes the core's instructions exactly, without its timing: instructions are counted,
not cycles.  Of two cores, each has an emulator, and both have one RAM.  Shares of a part of a
kernel are executed one after the other, the first core's first; the part takes the instructions of
the longer one.
"""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_dory.errors import DependencyError, SimulationError
from htvm.firmware.arm import ArmFirmware, core_of
from htvm.firmware.paths import runtime_c
from htvm.sim.arm_run import (
    MAX_INSTRUCTIONS,
    PAINT,
    ArmRun,
    Place,
    Reached,
    StepCounts,
    flash_image,
)
from htvm.sim.thumb import Executed, executed

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.firmware.toolchain import Compiler

_PAGE = 4096

_WAKE, _BARRIER = 8, 4
"""Registers of ``htvm_multicore.c``: a write wakes the second core, a read waits for it."""

_Counted: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""What was counted: `_Count.entered`, and taken branches and lines that were fetched and loaded."""


class _Lines(ctypes.Structure):
    """``htvm_lines_t``."""

    _fields_ = (
        ("lines", ctypes.c_void_p),
        ("number", ctypes.c_uint32),
        ("missed", ctypes.c_uint64),
    )


class _Count(ctypes.Structure):
    """``htvm_count_t`` of ``runtime_c/emulator/count.c``."""

    _fields_ = (
        ("instructions", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
        ("code", ctypes.c_char_p),
        ("known", ctypes.c_void_p),
        ("entered", ctypes.c_void_p),
        ("taken", ctypes.c_uint64),
        ("next", ctypes.c_uint64),
        ("stop", ctypes.c_void_p),
        ("base", ctypes.c_uint32),
        ("bytes", ctypes.c_uint32),
        ("outside", ctypes.c_uint32),
        ("line_bytes", ctypes.c_uint32),
        ("fetched", _Lines),
        ("loaded", _Lines),
    )


def run_arm(
    firmware: ArmFirmware,
    inputs: Mapping[str, bytes],
    outputs: Mapping[str, int],
    *,
    entry: str,
    kernels: Sequence[str],
    compiler: Compiler,
    max_instructions: int = MAX_INSTRUCTIONS,
) -> ArmRun:
    """Run a firmware on the emulator.

    Args:
        firmware: the firmware.
        inputs: symbol -> bytes written to it after loading.
        outputs: symbol -> number of its bytes to read after the run.
        entry: symbol of the entry function, which ``main`` calls.
        kernels: symbols of the functions that it calls, one per step.
        compiler: builds the counter of instructions.
        max_instructions: limit of the run.

    Raises:
        DependencyError: the package unicorn is not installed.
        SimulationError: the firmware lacks a symbol, executed an unknown instruction, accessed
            memory that is not there, faulted, or took too many instructions.
        ToolchainError: the counter cannot be built.
    """
    if importlib.util.find_spec("unicorn") is None:
        raise DependencyError(
            "running firmware for Arm needs an emulator: the Python package unicorn",
            hint="it comes with htvm; install it again: pip install unicorn",
        )
    return _Run(firmware, entry, kernels, compiler, max_instructions).run(inputs, outputs)


class _Core:
    """A core that is emulated, and what it has executed.

    Args:
        firmware: the firmware.
        image: contents of the code's memory.
        ram: contents of the RAM.
    """

    def __init__(self, firmware: ArmFirmware, image: bytes, ram: mmap.mmap) -> None:
        from unicorn.unicorn_const import UC_PROT_EXEC, UC_PROT_READ, UC_PROT_WRITE

        self.firmware, self.image, self.soc = firmware, image, firmware.machine
        self.emulator = _emulator(self.soc)
        flash, data = self.soc.memory(self.soc.code_memory), self.soc.memory("L2")
        self.emulator.mem_map(
            flash.base, -(-flash.size // _PAGE) * _PAGE, UC_PROT_READ | UC_PROT_EXEC
        )
        self.emulator.mem_write(flash.base, image)
        self._ram = (ctypes.c_char * len(ram)).from_buffer(ram)
        access = UC_PROT_READ | UC_PROT_WRITE
        self.emulator.mem_map_ptr(data.base, len(ram), access, ctypes.addressof(self._ram))
        self.entered = np.zeros(len(image) // 2 + 2, np.int64)

    def count_instructions(self, compiler: Compiler, limit: int) -> None:
        """Count the instructions of every block from here on, until there are too many."""
        from unicorn.unicorn_const import UC_HOOK_BLOCK, UC_HOOK_MEM_READ

        path = compiler.built(
            "emulator-count.so", [runtime_c() / "emulator" / "count.c"], shared=True
        )
        native = ctypes.CDLL(str(path))
        flash = self.soc.memory(self.soc.code_memory)
        reads = flash.reads
        counts = (ctypes.c_uint32 * (len(self.image) // 2 + 1))()
        kept = (0, 0) if reads is None else (reads.code_lines, reads.data_lines)
        lines = [(ctypes.c_uint32 * max(number, 1))() for number in kept]
        self.count = _Count(
            instructions=0,
            limit=limit,
            code=self.image,
            known=ctypes.addressof(counts),
            entered=self.entered.ctypes.data,
            stop=ctypes.cast(_library().uc_emu_stop, ctypes.c_void_p).value,
            base=flash.base,
            bytes=len(self.image),
            line_bytes=0 if reads is None else reads.line_bytes,
            fetched=_Lines(ctypes.addressof(lines[0]), kept[0]),
            loaded=_Lines(ctypes.addressof(lines[1]), kept[1]),
        )
        self._kept = (counts, lines, native)
        self._call(UC_HOOK_BLOCK, native.htvm_count_block, 1, 0)
        if reads is not None:
            end = flash.base + flash.size - 1
            self._call(UC_HOOK_MEM_READ, native.htvm_count_load, flash.base, end)

    def _call(self, kind: int, function: Any, first: int, last: int) -> None:
        """Have the emulator call a function of the counter; ``first > last``: everywhere."""
        handle = ctypes.c_size_t()
        status = _library().uc_hook_add(
            self.emulator._uch,
            ctypes.byref(handle),
            kind,
            ctypes.cast(function, ctypes.c_void_p),
            ctypes.cast(ctypes.byref(self.count), ctypes.c_void_p),
            ctypes.c_uint64(first),
            ctypes.c_uint64(last),
        )
        if status != 0:
            raise self.firmware.error(f"the emulator refused to count instructions (code {status})")

    @property
    def counted(self) -> _Counted:
        """What was counted so far."""
        count = self.count
        others = (count.taken, count.fetched.missed, count.loaded.missed)
        return self.entered.copy(), np.array(others, np.int64)

    def run(self, begin: int, stack: int, until: int) -> int:
        """Execute from an address on, until another one is reached, or the emulator is stopped.

        Args:
            begin: address of the first instruction.
            stack: address of the stack's end.
            until: address at which to stop.

        Returns:
            The address of the next instruction.

        Raises:
            SimulationError: the core accessed memory that is not there, or lacks an instruction.
        """
        from unicorn import UcError
        from unicorn.arm_const import UC_ARM_REG_PC, UC_ARM_REG_SP

        self.emulator.reg_write(UC_ARM_REG_SP, stack)
        try:
            self.emulator.emu_start(begin | 1, until)
        except UcError as error:
            pc = self.emulator.reg_read(UC_ARM_REG_PC) & ~1
            raise self.firmware.error(
                f"the program stopped at {pc:#010x}{self._function_at(pc)}: {error}",
                "an access outside of flash and RAM, or an instruction that the core lacks",
            ) from error
        return int(self.emulator.reg_read(UC_ARM_REG_PC)) & ~1

    def error(self, pc: int) -> SimulationError:
        """Return the error for a program that was stopped at an address before its end."""
        why = "left its code" if self.count.outside else "took too many instructions"
        return self.firmware.error(f"the program {why} ({self.count.instructions:,}) at {pc:#010x}")

    def _function_at(self, pc: int) -> str:
        for name, symbol in self.firmware.symbols.items():
            if symbol.size and symbol.address & ~1 <= pc < (symbol.address & ~1) + symbol.size:
                return f" in {name}"
        return ""


class _SecondCore:
    """The second of two cores, and how much longer than the first it takes.

    Args:
        first: the first core, in whose memory it is.
        second: the second.

    Attributes:
        waited: instructions that the second core executed while the first one had to wait.
        longer: what was counted in shares of the second core that took longer, less that of the
            first core's; added to what the first counts, it gives what the program takes.
    """

    def __init__(self, first: _Core, second: _Core) -> None:
        self.first, self.second = first, second
        self.waited = 0
        self.longer: _Counted = (np.zeros_like(first.entered), np.zeros(3, np.int64))
        self._woken: tuple[int, _Counted] | None = None
        self._arrived = False
        soc = first.soc
        assert soc.cluster is not None
        self.top = first.firmware.symbol("__stack_low").address
        self.low = self.top - soc.cluster.worker_stack
        for core, read in ((first, self._wait), (second, self._arrive)):
            core.emulator.mmio_map(soc.cluster.registers, _PAGE, read, None, self._write, None)

    def _write(self, _emulator: Any, offset: int, _size: int, _value: int, _data: Any) -> None:
        if offset == _WAKE:
            self._woken = (self.first.count.instructions, self.first.counted)

    def _arrive(self, emulator: Any, _offset: int, _size: int, _data: Any) -> int:
        """Stop the second core, which has done its share."""
        self._arrived = True
        emulator.emu_stop()
        return 0

    def _wait(self, _emulator: Any, offset: int, _size: int, _data: Any) -> int:
        """Execute the second core's share, for which the first one waits."""
        from unicorn.arm_const import UC_ARM_REG_R0

        if offset != _BARRIER or self._woken is None:
            raise self.first.firmware.error("the first core waits for one that is not awake")
        (before, own), self._woken = self._woken, None
        begun, other = self.second.count.instructions, self.second.counted
        self._arrived = False
        self.second.emulator.reg_write(UC_ARM_REG_R0, 1)
        start = self.first.firmware.symbol("htvm_hart_main").address
        pc = self.second.run(start & ~1, self.top, 0)
        if not self._arrived:
            raise self.second.error(pc)
        longer = self.second.count.instructions - begun - (self.first.count.instructions - before)
        if longer > 0:
            self.waited += longer
            gained = zip(self.second.counted, other, self.first.counted, own, strict=True)
            for total, (now, old, here, there) in zip(self.longer, gained, strict=True):
                total += (now - old) - (here - there)
        return 0

    def check_stack(self) -> None:
        """Refuse a run whose second core has used all of its stack.

        Raises:
            SimulationError: it has.
        """
        size = self.top - self.low
        if bytes(self.second.emulator.mem_read(self.low, len(PAINT))) != PAINT:
            raise self.first.firmware.error(
                f"the second core used all {size:,} B of its stack",
                "reserve more in the SoC's description: Cluster.worker_stack",
            )


class _Run:
    """One run of a firmware."""

    def __init__(
        self,
        firmware: ArmFirmware,
        entry: str,
        kernels: Sequence[str],
        compiler: Compiler,
        limit: int,
    ) -> None:
        soc, self.firmware = firmware.machine, firmware
        self.steps = StepCounts(firmware, entry, kernels)
        self.image, memory = flash_image(firmware), soc.memory("L2")
        ram = mmap.mmap(-1, -(-memory.size // _PAGE) * _PAGE)
        low = self.steps.low - (soc.stacks - soc.host.stack)
        ram[low - memory.base : self.steps.top - memory.base] = PAINT * (self.steps.top - low)
        self.core = _Core(firmware, self.image, ram)
        self.executed: Executed | None = None
        self.step_executed: list[Executed] = []
        # The steps are noted before the block that ends or begins them is counted.
        self._note_steps()
        self.core.count_instructions(compiler, limit)
        self.second: _SecondCore | None = None
        if soc.cluster is not None:
            other = _Core(firmware, self.image, ram)
            other.count_instructions(compiler, limit)
            self.second = _SecondCore(self.core, other)
        # What was counted when the entry function, and the step that is under way, was called.
        self.called = self.step_called = self._counted()
        self.begun = self.each = (0, 0)

    # ------------------------------------------------------------------ counting

    def _now(self) -> int:
        """Return the instructions that the program has taken so far."""
        waited = 0 if self.second is None else self.second.waited
        return int(self.core.count.instructions) + waited

    def _counted(self) -> _Counted:
        """Return what was counted so far."""
        entered, others = self.core.counted
        if self.second is None:
            return entered, others
        return entered + self.second.longer[0], others + self.second.longer[1]

    def _instructions(self) -> tuple[int, int]:
        """Return the instructions that each core has executed so far."""
        second = self.second
        own = int(self.core.count.instructions)
        return own, 0 if second is None else int(second.second.count.instructions)

    def _note_steps(self) -> None:
        """Note the count at the entry of every kernel, and whenever the entry function goes on."""
        from unicorn.unicorn_const import UC_HOOK_BLOCK

        def add(place: Place, first: int, end: int) -> None:
            def noted(_emulator: Any, address: int, _size: int, _data: Any) -> None:
                before = self.steps.reached
                self.steps.note(place, address, self._now())
                self._classify(before, self.steps.reached)

            self.core.emulator.hook_add(UC_HOOK_BLOCK, noted, None, first, end - 2)

        for address in self.steps.kernels:
            add("kernel", address, address + 2)
        for first, end, place in self.steps.ranges:
            add(place, first, end)

    def _classify(self, before: Reached, after: Reached) -> None:
        """Classify what was executed, if the run or a step has ended."""
        if before == after:
            return
        now = self._counted()

        def since(begin: _Counted) -> Executed:
            taken, fetched, loaded = (now[1] - begin[1]).tolist()
            found = executed(self.image, now[0] - begin[0], taken)
            return replace(found, fetched=fetched, loaded=loaded)

        if after.begun and not before.begun:
            self.called, self.begun = now, self._instructions()
        if after.steps > before.steps:
            self.step_executed.append(since(self.step_called))
        if after.inside:
            self.step_called = now
        if after.ended and not before.ended:
            self.executed = since(self.called)
            ends = self._instructions()
            self.each = (ends[0] - self.begun[0], ends[1] - self.begun[1])

    # ------------------------------------------------------------------ running

    def run(self, inputs: Mapping[str, bytes], outputs: Mapping[str, int]) -> ArmRun:
        emulator = self.core.emulator
        for name, data in inputs.items():
            emulator.mem_write(self.firmware.symbol(name, len(data)).address, data)
        places = {name: self.firmware.symbol(name, size) for name, size in outputs.items()}
        done = self.firmware.symbol("htvm_done").address & ~1
        pc = self.core.run(self.firmware.symbol("htvm_reset").address, self.steps.top, done)
        if pc != done:
            raise self.core.error(pc)
        if self.second is not None:
            self.second.check_stack()
        low, top = self.steps.low, self.steps.top
        result = self.steps.result(
            {
                name: bytes(emulator.mem_read(place.address, outputs[name]))
                for name, place in places.items()
            },
            bytes(emulator.mem_read(low, top - low)),
            self.executed,
            self.step_executed,
        )
        return result if self.second is None else replace(result, core_instructions=self.each)


def _library() -> Any:
    """Return the emulator's library."""
    import unicorn

    return unicorn.unicorn_py3.unicorn.uclib


def _emulator(soc: Soc) -> Any:
    """Return an emulator of the SoC's core, without memory."""
    from unicorn import Uc, arm_const
    from unicorn.unicorn_const import UC_ARCH_ARM, UC_MODE_THUMB

    core = core_of(soc)
    model = getattr(arm_const, f"UC_CPU_ARM_{core.emulator.replace('-', '_').upper()}", None)
    if model is None:
        raise SimulationError(
            f"the emulator does not know the core {core.cpu}",
            where=f"SoC {soc.name}",
            hint="use platform='qemu'",
        )
    # With UC_MODE_MCLASS the emulator would ignore the model, and execute every instruction.
    return Uc(UC_ARCH_ARM, UC_MODE_THUMB, model)
