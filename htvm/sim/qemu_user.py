"""The qemu platform of RISC-V cores with vectors and of Xtensa cores: QEMU's user mode.

A plugin of QEMU (``runtime_c/emulator/user_count.c``) counts the instructions of every block of
straight code, and notes the count where steps begin and end, as the symbols of the firmware tell.
Inputs are in the executable that QEMU is given; in the end, the process writes what is in its RAM.
"""

from __future__ import annotations

import re
import shutil
import signal
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from byoc_dory.errors import DependencyError, SimulationError
from htvm.firmware.paths import runtime_c, work_folder
from htvm.firmware.user_mode import check_user_mode
from htvm.processes import Ended, run
from htvm.sim.arm_run import MAX_INSTRUCTIONS, PAINT, ArmRun, StepCounts, flash_image

if TYPE_CHECKING:
    from byoc_dory.soc.cores import Host
    from htvm.firmware.arm import ArmFirmware
    from htvm.firmware.toolchain import Compiler

_TOO_MANY = 75  # as the plugin ends a process
_SECOND_SINCE = 9  # QEMU whose plugins have version 2 at least
_PAGE = 4096
_READ, _WRITE, _EXECUTE = 4, 2, 1


@dataclass(frozen=True)
class _Process:
    """How QEMU's user mode executes a core's programs.

    Attributes:
        program: QEMU's program.
        core: its name of the core.
        bits: of an address.
        machine, flags: of ELF files for the core: compressed code and doubles in registers on
            RISC-V, instructions and constants side by side on Xtensa.
    """

    program: str
    core: str
    bits: int
    machine: int
    flags: int

    @classmethod
    def of(cls, host: Host) -> _Process:
        check_user_mode(host)
        if host.xtensa is not None:
            return cls("qemu-xtensa", host.xtensa.emulator, 32, machine=94, flags=0x300)
        assert host.vectors is not None, host.name
        bits = int(host.isa[2:4])
        core = f"{host.vectors.emulator},v=true,vext_spec=v1.0,vlen={host.vectors.bits}"
        return cls(f"qemu-riscv{bits}", core, bits, machine=243, flags=0x5 if bits == 64 else 0x1)


def run_qemu_user(
    firmware: ArmFirmware,
    inputs: Mapping[str, bytes],
    outputs: Mapping[str, int],
    *,
    entry: str,
    kernels: Sequence[str],
    compiler: Compiler,
    max_instructions: int = MAX_INSTRUCTIONS,
) -> ArmRun:
    """Run a firmware in QEMU's user mode.

    Args:
        firmware: the firmware.
        inputs, outputs, entry, kernels, max_instructions: as for `htvm.sim.arm.run_arm`.
        compiler: builds the plugin.

    Raises:
        DependencyError: QEMU is not installed.
        SimulationError: the firmware lacks a symbol, faulted, or took too many instructions, or
            QEMU failed.
        TargetError: its core is none of those.
        ToolchainError: the plugin cannot be built.
    """
    process = _Process.of(firmware.machine.host)
    name = process.program
    program = shutil.which(name)
    if program is None:
        raise DependencyError(
            f"running firmware for {firmware.machine.host.name} needs {name}",
            hint="install the package of your system with it: on Debian and Ubuntu, qemu-user",
        )
    version = run([program, "--version"], name, SimulationError, program).printed
    plugin = compiler.built(
        "user-count.so",
        [runtime_c() / "emulator" / "user_count.c"],
        flags=(f"-DHTVM_PLUGIN_VERSION={plugin_version(version)}",),
        shared=True,
    )
    steps = StepCounts(firmware, entry, kernels)
    with work_folder("htvm-user-") as folder:
        watched = [(first, end) for first, end, _ in steps.ranges]
        watched += [(address, address + 2) for address in steps.kernels]
        (folder / "ranges").write_bytes(np.array(watched, np.uint64).tobytes())
        image = folder / "image.elf"
        image.write_bytes(_image(firmware, steps, inputs, process))
        image.chmod(0o700)
        said = f"ranges={folder}/ranges,notes={folder}/notes,limit={max_instructions}"
        line = [program, "-cpu", process.core, "-plugin", f"{plugin},{said}", str(image)]
        ended = run(line, name, SimulationError, str(firmware.elf))
        _check(firmware, name, ended, max_instructions)
        notes = np.fromfile(folder / "notes", np.uint64).reshape(-1, 2)
    for address, count in notes.tolist():
        if address in steps.kernels:
            steps.note("kernel", address, count)
            continue
        for first, end, place in steps.ranges:
            if first <= address < end:
                steps.note(place, address, count)
    ram, left = firmware.symbol("__data_start").address, ended.output
    variables = firmware.symbol("__noinit_end").address - ram
    if len(left) != variables + steps.top - steps.low:
        raise firmware.error(f"the program left {len(left):,} bytes of RAM, not all of it")
    found = {}
    for symbol, size in outputs.items():
        at = firmware.symbol(symbol, size).address - ram
        found[symbol] = left[at : at + size]
    return steps.result(found, left[variables:])


def plugin_version(said: str) -> int:
    """Return the version of plugins that a QEMU takes, given what it says of its own version."""
    found = re.search(r"version (\d+)\.", said)
    return 2 if found is not None and int(found[1]) >= _SECOND_SINCE else 1


def _check(firmware: ArmFirmware, name: str, ended: Ended, limit: int) -> None:
    """Raise the error of a process that did not end by itself, or of QEMU."""
    if ended.code == 0:
        return
    said = " ".join(ended.said.split())[-300:] or "it said nothing"
    if ended.code == _TOO_MANY:
        raise firmware.error(f"the program took too many instructions ({limit:,})")
    faults = {
        -signal.SIGILL: "an instruction that the core lacks",
        -signal.SIGSEGV: "an access outside of flash and RAM",
        -signal.SIGBUS: "an access outside of flash and RAM",
    }
    if ended.code in faults:
        raise firmware.error("the program faulted", f"{faults[ended.code]}; {name}: {said}")
    raise firmware.error(f"{name} ended with code {ended.code}: {said}")


def _image(
    firmware: ArmFirmware, steps: StepCounts, inputs: Mapping[str, bytes], process: _Process
) -> bytes:
    """Return an executable of flash and RAM, with the inputs in it and the stack painted."""
    soc, symbol = firmware.machine, firmware.symbol
    start, end = symbol("__data_start").address, symbol("__noinit_end").address
    variables = bytearray(end - start)
    for name, data in inputs.items():
        at = symbol(name, len(data)).address - start
        variables[at : at + len(data)] = data
    stack = PAINT * (steps.top - steps.low)
    flash = soc.memory(soc.code_memory).base
    parts = [(flash, _READ | _EXECUTE, flash_image(firmware))]
    if steps.low - end < 2 * _PAGE:  # one segment, as two may not share a page
        parts.append((start, _READ | _WRITE, bytes(variables) + bytes(steps.low - end) + stack))
    else:
        parts += [(start, _READ | _WRITE, bytes(variables)), (steps.low, _READ | _WRITE, stack)]
    return _executable(symbol("htvm_reset").address, parts, process)


def _executable(entry: int, parts: Sequence[tuple[int, int, bytes]], process: _Process) -> bytes:
    """Return an ELF file.

    Args:
        entry: address of the first instruction.
        parts: address, permissions and contents of each segment.
        process: what executes it.
    """
    # Of 32 bits, a segment's permissions stand before its alignment, of 64 behind its kind.
    wide = process.bits == 64
    head, each = (64, 56) if wide else (52, 32)
    text = struct.pack(
        f"<4s4B8x2HI3{'Q' if wide else 'I'}I6H",
        *(b"\x7fELF", 2 if wide else 1, 1, 1, 0, 2, process.machine, 1, entry, head, 0),
        *(process.flags, head, each, len(parts), 0, 0, 0),
    )
    contents, place = bytearray(), -(-(head + each * len(parts)) // _PAGE) * _PAGE
    first = place
    for address, permissions, data in parts:
        offset = place + address % _PAGE
        where = (offset, address, address, len(data), len(data))
        if wide:
            text += struct.pack("<2I6Q", 1, permissions, *where, _PAGE)
        else:
            text += struct.pack("<8I", 1, *where, permissions, _PAGE)
        contents += bytes(offset - first - len(contents)) + data
        place = -(-(offset + len(data)) // _PAGE) * _PAGE
    return text + bytes(first - len(text)) + contents
