"""The arm platform: running a firmware for a Cortex-M core on an emulator (the package unicorn).

The emulator executes the core's instructions exactly, without its timing: instructions are counted,
not cycles.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

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
        self.firmware, self.soc = firmware, firmware.machine
        self.emulator = _emulator(self.soc)
        self.steps = StepCounts(firmware, entry, kernels)
        self.code = self._load()
        self.entered = np.zeros(len(self.code) // 2 + 2, np.int64)
        # What was counted when the entry function, and the step that is under way, was called.
        self.called = self.step_called = (self.entered, (0, 0, 0))
        self.executed: Executed | None = None
        self.step_executed: list[Executed] = []
        # The steps are noted before the block that ends or begins them is counted.
        self._note_steps()
        self.count, self._kept = self._count(compiler, limit)

    def _load(self) -> bytes:
        """Map the memories, load the program, and return the contents of the code's memory."""
        from unicorn.unicorn_const import UC_PROT_EXEC, UC_PROT_READ, UC_PROT_WRITE

        flash, ram = self.soc.memory(self.soc.code_memory), self.soc.memory("L2")
        self.emulator.mem_map(
            flash.base, -(-flash.size // _PAGE) * _PAGE, UC_PROT_READ | UC_PROT_EXEC
        )
        self.emulator.mem_map(ram.base, -(-ram.size // _PAGE) * _PAGE, UC_PROT_READ | UC_PROT_WRITE)
        image = flash_image(self.firmware)
        self.emulator.mem_write(flash.base, image)
        low, top = self.steps.low, self.steps.top
        self.emulator.mem_write(low, PAINT * (top - low))
        return image

    # ------------------------------------------------------------------ counting

    def _count(self, compiler: Compiler, limit: int) -> tuple[_Count, tuple[Any, ...]]:
        """Count the instructions of every block; return the count, and what it refers to."""
        from unicorn.unicorn_const import UC_HOOK_BLOCK, UC_HOOK_MEM_READ

        path = compiler.built(
            "emulator-count.so", [runtime_c() / "emulator" / "count.c"], shared=True
        )
        native = ctypes.CDLL(str(path))
        flash = self.soc.memory(self.soc.code_memory)
        reads = flash.reads
        counts = (ctypes.c_uint32 * (len(self.code) // 2 + 1))()
        kept = (0, 0) if reads is None else (reads.code_lines, reads.data_lines)
        lines = [(ctypes.c_uint32 * max(number, 1))() for number in kept]
        count = _Count(
            instructions=0,
            limit=limit,
            code=self.code,
            known=ctypes.addressof(counts),
            entered=self.entered.ctypes.data,
            stop=ctypes.cast(_library().uc_emu_stop, ctypes.c_void_p).value,
            base=flash.base,
            bytes=len(self.code),
            line_bytes=0 if reads is None else reads.line_bytes,
            fetched=_Lines(ctypes.addressof(lines[0]), kept[0]),
            loaded=_Lines(ctypes.addressof(lines[1]), kept[1]),
        )
        self._call(UC_HOOK_BLOCK, native.htvm_count_block, count, 1, 0)
        if reads is not None:
            end = flash.base + flash.size - 1
            self._call(UC_HOOK_MEM_READ, native.htvm_count_load, count, flash.base, end)
        return count, (counts, lines, native)

    def _call(self, kind: int, function: Any, count: _Count, first: int, last: int) -> None:
        """Have the emulator call a function of the counter; ``first > last``: everywhere."""
        handle = ctypes.c_size_t()
        status = _library().uc_hook_add(
            self.emulator._uch,
            ctypes.byref(handle),
            kind,
            ctypes.cast(function, ctypes.c_void_p),
            ctypes.cast(ctypes.byref(count), ctypes.c_void_p),
            ctypes.c_uint64(first),
            ctypes.c_uint64(last),
        )
        if status != 0:
            raise self.firmware.error(f"the emulator refused to count instructions (code {status})")

    def _note_steps(self) -> None:
        """Note the count at the entry of every kernel, and whenever the entry function goes on."""
        from unicorn.unicorn_const import UC_HOOK_BLOCK

        def add(place: Place, first: int, end: int) -> None:
            def noted(_emulator: Any, address: int, _size: int, _data: Any) -> None:
                before = self.steps.reached
                self.steps.note(place, address, self.count.instructions)
                self._classify(before, self.steps.reached)

            self.emulator.hook_add(UC_HOOK_BLOCK, noted, None, first, end - 2)

        for address in self.steps.kernels:
            add("kernel", address, address + 2)
        for first, end, place in self.steps.ranges:
            add(place, first, end)

    def _classify(self, before: Reached, after: Reached) -> None:
        """Classify what was executed, if the run or a step has ended."""
        if before == after:
            return
        count = self.count
        now = (self.entered.copy(), (count.taken, count.fetched.missed, count.loaded.missed))

        def since(begin: tuple[Any, tuple[int, int, int]]) -> Executed:
            taken, fetched, loaded = (new - old for new, old in zip(now[1], begin[1], strict=True))
            found = executed(self.code, now[0] - begin[0], taken)
            return replace(found, fetched=fetched, loaded=loaded)

        if after.begun and not before.begun:
            self.called = now
        if after.steps > before.steps:
            self.step_executed.append(since(self.step_called))
        if after.inside:
            self.step_called = now
        if after.ended and not before.ended:
            self.executed = since(self.called)

    # ------------------------------------------------------------------ running

    def run(self, inputs: Mapping[str, bytes], outputs: Mapping[str, int]) -> ArmRun:
        for name, data in inputs.items():
            self.emulator.mem_write(self.firmware.symbol(name, len(data)).address, data)
        places = {name: self.firmware.symbol(name, size) for name, size in outputs.items()}
        self._execute()
        low, top = self.steps.low, self.steps.top
        return self.steps.result(
            {
                name: bytes(self.emulator.mem_read(place.address, outputs[name]))
                for name, place in places.items()
            },
            bytes(self.emulator.mem_read(low, top - low)),
            self.executed,
            self.step_executed,
        )

    def _execute(self) -> None:
        from unicorn import UcError
        from unicorn.arm_const import UC_ARM_REG_PC, UC_ARM_REG_SP

        done_address = self.firmware.symbol("htvm_done").address & ~1
        self.emulator.reg_write(UC_ARM_REG_SP, self.steps.top)
        try:
            self.emulator.emu_start(self.firmware.symbol("htvm_reset").address | 1, done_address)
        except UcError as error:
            pc = self.emulator.reg_read(UC_ARM_REG_PC) & ~1
            raise self.firmware.error(
                f"the program stopped at {pc:#010x}{self._function_at(pc)}: {error}",
                "an access outside of flash and RAM, or an instruction that the core lacks",
            ) from error
        pc = self.emulator.reg_read(UC_ARM_REG_PC) & ~1
        if pc != done_address:
            why = "left its code" if self.count.outside else "took too many instructions"
            raise self.firmware.error(
                f"the program {why} ({self.count.instructions:,}) at {pc:#010x}"
            )

    def _function_at(self, pc: int) -> str:
        for name, symbol in self.firmware.symbols.items():
            if symbol.size and symbol.address & ~1 <= pc < (symbol.address & ~1) + symbol.size:
                return f" in {name}"
        return ""


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
