"""The arm platform: running a firmware for a Cortex-M core on an emulator (the package unicorn).

The emulator executes the core's instructions exactly, without its timing: instructions are counted,
not cycles.  A step's instructions are those from the first of its kernel to its return, as the
symbols of the firmware tell; nothing is added to the program for that.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import DependencyError, SimulationError
from htvm.firmware.arm import ArmFirmware, core_of
from htvm.firmware.elf import read_segments
from htvm.firmware.paths import runtime_c
from htvm.sim.thumb import Executed, executed

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.firmware.toolchain import Compiler

__all__ = ["MAX_INSTRUCTIONS", "PAINT", "ArmRun", "flash_image", "run_arm", "unpainted"]

MAX_INSTRUCTIONS = 20_000_000_000
"""Default limit of a run in instructions: some minutes."""

PAINT = 0xA5
"""The byte that the stack is filled with before a run."""

_PAGE = 4096


@dataclass(frozen=True)
class ArmRun:
    """The results of running a firmware.

    Attributes:
        instructions: executed from the call of the entry function to its return.
        steps: for each kernel called by the entry function, in order: its symbol, and the
            instructions before its first and before the one after its last, counted from the entry
            function's call.
        outputs: contents of each symbol in ``outputs``.
        stack_used: largest use of the stack in bytes.
        executed: classes of these instructions; None if the machine does not tell.
    """

    instructions: int
    steps: tuple[tuple[str, int, int], ...]
    outputs: dict[str, bytes] = field(repr=False)
    stack_used: int
    executed: Executed | None = None


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
        self.entry = entry
        self.kernels = {self._symbol(name): name for name in kernels}
        self.stack = (self._symbol("__stack_low"), self._symbol("__stack_top"))
        self.code = self._load()
        self.steps: list[tuple[str, int, int]] = []
        self.open: tuple[str, int] | None = None
        self.begin: int | None = None
        self.end: int | None = None
        self.entered = np.zeros(len(self.code) // 2 + 2, np.int64)
        self.before: tuple[Any, int] = (self.entered, 0)
        self.after = self.before
        self.failed: Exception | None = None
        # The steps are noted before the block that ends or begins them is counted.
        self._note_steps()
        self.count, self._kept = self._count(compiler, limit)

    def _symbol(self, name: str, size: int = 0) -> int:
        symbol = self.firmware.symbols.get(name)
        if symbol is None:
            raise self._error(f"the firmware has no symbol {name!r}")
        if size > symbol.size:
            raise self._error(f"{size} bytes do not fit into {name!r}, which has {symbol.size}")
        return symbol.address & ~1 if name not in ("__stack_low", "__stack_top") else symbol.address

    def _error(self, what: str, hint: str = "") -> SimulationError:
        return SimulationError(what, where=str(self.firmware.elf), hint=hint)

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
        low, top = self.stack
        self.emulator.mem_write(low, bytes([PAINT]) * (top - low))
        return image

    # ------------------------------------------------------------------ counting

    def _count(self, compiler: Compiler, limit: int) -> tuple[_Count, tuple[Any, ...]]:
        """Count the instructions of every block; return the count, and what it refers to."""
        import unicorn
        from unicorn.unicorn_const import UC_HOOK_BLOCK

        path = compiler.built(
            "emulator-count.so", [runtime_c() / "emulator" / "count.c"], shared=True
        )
        native = ctypes.CDLL(str(path))
        library = unicorn.unicorn_py3.unicorn.uclib
        flash = self.soc.memory(self.soc.code_memory)
        known = (ctypes.c_uint32 * (len(self.code) // 2 + 1))()
        count = _Count(
            instructions=0,
            limit=limit,
            code=self.code,
            known=ctypes.addressof(known),
            entered=self.entered.ctypes.data,
            stop=ctypes.cast(library.uc_emu_stop, ctypes.c_void_p).value,
            base=flash.base,
            bytes=len(self.code),
        )
        handle = ctypes.c_size_t()
        status = library.uc_hook_add(
            self.emulator._uch,
            ctypes.byref(handle),
            UC_HOOK_BLOCK,
            ctypes.cast(native.htvm_count_block, ctypes.c_void_p),
            ctypes.cast(ctypes.byref(count), ctypes.c_void_p),
            ctypes.c_uint64(1),
            ctypes.c_uint64(0),
        )
        if status != 0:
            raise self._error(f"the emulator refused to count instructions (code {status})")
        return count, (known, native)

    def _note_steps(self) -> None:
        """Note the count at the entry of every kernel, and whenever the entry function goes on."""
        from unicorn.unicorn_const import UC_HOOK_BLOCK

        def add(callback: Any, first: int, last: int) -> None:
            self.emulator.hook_add(UC_HOOK_BLOCK, callback, None, first, last)

        symbols = self.firmware.symbols
        for address in self.kernels:
            add(self._kernel_begins, address, address)
        for name in (self.entry, f"{self.entry}_in"):
            symbol = symbols.get(name)
            if symbol is not None:
                first = symbol.address & ~1
                add(self._entry_goes_on, first, first + symbol.size - 2)
        main = symbols["main"]
        add(self._main_goes_on, main.address & ~1, (main.address & ~1) + main.size - 2)

    def _kernel_begins(self, _emulator: Any, address: int, _size: int, _data: Any) -> None:
        if self.begin is not None and self.open is None:
            self.open = (self.kernels[address], self.count.instructions)

    def _entry_goes_on(self, _emulator: Any, address: int, _size: int, _data: Any) -> None:
        now = self.count.instructions
        if self.begin is None and address == self._symbol(self.entry):
            self.begin = now
            self.before = (self.entered.copy(), self.count.taken)
        elif self.open is not None and self.begin is not None:
            name, start = self.open
            self.steps.append((name, start - self.begin, now - self.begin))
            self.open = None

    def _main_goes_on(self, _emulator: Any, _address: int, _size: int, _data: Any) -> None:
        if self.begin is not None and self.end is None:
            self.end = self.count.instructions
            self.after = (self.entered.copy(), self.count.taken)

    # ------------------------------------------------------------------ running

    def run(self, inputs: Mapping[str, bytes], outputs: Mapping[str, int]) -> ArmRun:
        for name, data in inputs.items():
            self.emulator.mem_write(self._symbol(name, len(data)), data)
        places = {name: self._symbol(name, size) for name, size in outputs.items()}
        self._execute()
        if self.begin is None or self.end is None:
            raise self._error(f"the firmware never called {self.entry!r}")
        return ArmRun(
            instructions=self.end - self.begin,
            steps=tuple(self.steps),
            outputs={
                name: bytes(self.emulator.mem_read(place, outputs[name]))
                for name, place in places.items()
            },
            stack_used=self._stack_used(),
            executed=executed(
                self.code, self.after[0] - self.before[0], self.after[1] - self.before[1]
            ),
        )

    def _execute(self) -> None:
        from unicorn import UcError
        from unicorn.arm_const import UC_ARM_REG_PC, UC_ARM_REG_SP

        done = self._symbol("htvm_done")
        self.emulator.reg_write(UC_ARM_REG_SP, self.stack[1])
        try:
            self.emulator.emu_start(self._symbol("htvm_reset") | 1, done)
        except UcError as error:
            pc = self.emulator.reg_read(UC_ARM_REG_PC) & ~1
            raise self._error(
                f"the program stopped at {pc:#010x}{self._function_at(pc)}: {error}",
                hint="an access outside of flash and RAM, or an instruction that the core lacks",
            ) from error
        pc = self.emulator.reg_read(UC_ARM_REG_PC) & ~1
        if pc != done:
            why = "left its code" if self.count.outside else "took too many instructions"
            raise self._error(f"the program {why} ({self.count.instructions:,}) at {pc:#010x}")

    def _function_at(self, pc: int) -> str:
        for name, symbol in self.firmware.symbols.items():
            if symbol.size and symbol.address & ~1 <= pc < (symbol.address & ~1) + symbol.size:
                return f" in {name}"
        return ""

    def _stack_used(self) -> int:
        low, top = self.stack
        stack = bytes(self.emulator.mem_read(low, top - low))
        used = unpainted(stack)
        if used == len(stack):
            raise self._error(
                f"the program used all {top - low:,} B of its stack",
                hint="reserve more in the SoC's description: Host.stack",
            )
        return used


def flash_image(firmware: ArmFirmware) -> bytes:
    """Return the contents of the memory with code, from its first byte on."""
    base, image = firmware.machine.memory(firmware.machine.code_memory).base, bytearray()
    for segment in read_segments(firmware.elf):
        offset = segment.address - base
        image.extend(bytes(max(0, offset + len(segment.data) - len(image))))
        image[offset : offset + len(segment.data)] = segment.data
    return bytes(image)


def unpainted(stack: bytes) -> int:
    """Return how many bytes of a painted stack, lowest first, were used."""
    return len(stack.lstrip(bytes([PAINT])))


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
