"""The L2 use of a program, and the errors if it is too much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from byoc_dory.errors import L2OverflowError
from htvm.firmware.linked import Firmware
from htvm.model import TensorInfo

if TYPE_CHECKING:
    from byoc_dory.soc.base import Soc
    from htvm.aot.program import Program


@dataclass(frozen=True)
class Sizes:
    """Sizes of a linked program's parts in bytes; on ``rv32`` they are in L2, on ``arm`` code and
    constants are in flash and all others in RAM.

    Attributes:
        code: machine code, including runtime and drivers; on the host platform, this machine's code
            of the whole native program, including device models.
        constants: weights and all other read-only data.
        arena: intermediate tensors and workspaces.
        stack: bytes reserved for the stack.
        io: inputs and outputs.
        other: other variables.
        compiler: name and version of the C compiler.
    """

    code: int
    constants: int
    arena: int
    stack: int
    io: int
    other: int = 0
    compiler: str = ""

    @property
    def total(self) -> int:
        """Sum of all parts in bytes."""
        return self.code + self.constants + self.arena + self.stack + self.io + self.other


def tensor_bytes(infos: Sequence[TensorInfo]) -> int:
    """Return the total bytes of inputs or outputs."""
    return sum(math.prod(info.shape) * np.dtype(info.dtype).itemsize for info in infos)


def check_l2(program: Program, soc: Soc) -> None:
    """Refuse a program that cannot fit whatever its code size, before anything is compiled.

    Raises:
        L2OverflowError: the message lists the sizes, the largest part, and what to do.  Constants
            in a memory of their own may also exceed that.
    """
    for name in program.constant_memories:
        memory, size = soc.memory(name), program.bytes_in(name)
        if size > memory.size:
            raise L2OverflowError(
                f"the weights need {size:,} B of {name}, there are {memory.size:,} B",
                where=f"{program.name} on {soc.name}",
                hint="use a network with fewer weights, or a target whose weights are elsewhere",
                limit=memory.size,
                demand=size,
            )
    limit = soc.memory("L2").size
    if soc.code_memory != "L2":
        _check_flash(program, soc)
    parts = _parts(program, soc)
    total = sum(parts.values())
    if total <= limit:
        return
    name = "L2" if soc.code_memory == "L2" else "RAM"
    words = ", ".join(f"{name} {size:,} B" for name, size in parts.items())
    raise L2OverflowError(
        f"the program needs {total:,} B of {name} without its code, there are {limit:,} B: {words}",
        where=f"{program.name} on {soc.name}",
        hint=dominant(program, soc),
        limit=limit,
        demand=total,
    )


def _parts(program: Program, soc: Soc) -> dict[str, int]:
    """Return what is known of L2's or the RAM's use before anything is compiled, in bytes."""
    parts = {
        "constants": program.constant_bytes,
        "arena": program.plan.peak,
        "inputs and outputs": tensor_bytes((*program.l2_inputs, *program.outputs)),
        "stack": soc.stacks if soc.host.stack_memory == "L2" else 0,
    }
    if soc.code_memory != "L2":
        del parts["constants"]
    return parts


_VARIABLES = 1 << 10
"""Bytes left for the runtime's variables and for a row of the input, where code is in flash."""

_CODE = 32 << 10
"""Bytes left for code, where it is in L2."""


def room_for_arena(program: Program, soc: Soc, *, streamed: bool = False) -> int | None:
    """Return the bytes that a smaller arena may have, at least 1; ``None`` if this one may fit.

    With ``streamed``, the program's inputs will come row by row, and do not count.
    """
    parts, limit = _parts(program, soc), soc.memory("L2").size
    if streamed:
        parts["inputs and outputs"] -= tensor_bytes(program.l2_inputs)
    if sum(parts.values()) <= limit:
        return None
    others = sum(parts.values()) - parts["arena"]
    return max(limit - others - (_CODE if soc.code_memory == "L2" else _VARIABLES), 1)


def _check_flash(program: Program, soc: Soc) -> None:
    memory, demand = soc.memory(soc.code_memory), program.constant_bytes
    if demand > memory.size:
        raise L2OverflowError(
            f"the constants need {demand:,} B of {memory.name}, there are {memory.size:,} B",
            where=f"{program.name} on {soc.name}",
            hint=dominant(program, soc),
        )


def _target_with_more_l2(soc: Soc) -> str:
    """Return a target with more L2: the first one with accelerators, or a single core."""
    from byoc_dory.soc.registry import resolve, targets

    for other in map(resolve, targets()):
        same = other.soc.host.platform == soc.host.platform
        if same and other.accelerators and other.soc.memory("L2").size > soc.memory("L2").size:
            if not other.soc.adjustable and other.soc.cluster is not None:
                return f"{other.name} or generic.cpu"
    return "generic.cpu"


def dominant(program: Program, soc: Soc) -> str:
    """Return what takes most, and its largest piece, as text.

    Where constants are not in L2, that is the arena, unless they exceed their own memory.
    """
    where = f"or choose a target with more L2, such as {_target_with_more_l2(soc)}"
    if "L2" in soc.adjustable:
        where = "or give it more L2 (--l2 BYTES, htvm.build(..., l2_bytes=...))"
    if soc.code_memory != "L2":
        where = "or choose a board with more memory"
    constants_fit_apart = (
        soc.code_memory != "L2" and program.constant_bytes <= soc.memory(soc.code_memory).size
    )
    borders = tensor_bytes((*program.l2_inputs, *program.outputs))
    if borders > max(program.plan.peak, 0 if constants_fit_apart else program.constant_bytes):
        return (
            f"inputs and outputs dominate ({borders:,} B), which are apart from the arena: use a "
            f"smaller input, {where}"
        )
    if not constants_fit_apart and program.constant_bytes >= program.plan.peak:
        inside = [constant for constant in program.constants if not constant.memory]
        largest = max(inside, key=lambda constant: constant.data.nbytes)
        return (
            f"constants dominate ({program.constant_bytes:,} B), the largest is {largest.name} "
            f"with {largest.data.nbytes:,} B: use a network with fewer weights, {where}"
        )
    counts = [
        sum(use.bytes for use in program.buffers if use.first <= step <= use.last)
        for step in range(len(program.steps))
    ]
    step = program.steps[counts.index(max(counts))]
    return (
        f"the arena dominates ({program.plan.peak:,} B), it is fullest in layer {step.layer}: "
        f"use a smaller input or fewer channels there, {where}"
    )


def linked_sizes(firmware: Firmware[Any], program: Program, compiler: str) -> Sizes:
    """Return the sizes of a firmware, from its sections and symbols.

    Args:
        firmware: the firmware.
        program: the program in it.
        compiler: name and version of the compiler that made it.
    """
    use, symbols = firmware.memory, firmware.symbols
    # Without intermediates the static arena is 16 unused bytes.
    arena_name = arena_symbol(program)
    arena = symbols[arena_name].size if arena_name in symbols else 0
    inside = {f"htvm_run_input_{number}" for number, _ in program.overwritten}
    io = sum(
        symbol.size
        for name, symbol in symbols.items()
        if name.startswith(("htvm_run_input_", "htvm_run_output_")) and name not in inside
    )
    constants, other = use.constants, use.data + use.zeroed + use.uninitialised - arena - io
    if program.streamed is not None:
        # The caller has a row at a time; only this firmware has all of them.
        whole = symbols["htvm_run_input_0"]
        io += tensor_bytes(program.l2_inputs) - whole.size
        if whole.address < symbols["__bss_start"].address:  # in flash, so not in RAM
            constants, other = constants - whole.size, other + whole.size
    return Sizes(
        code=use.code,
        constants=constants,
        arena=arena,
        stack=use.stack,
        io=io,
        other=other,
        compiler=compiler,
    )


def arena_symbol(program: Program) -> str:
    """Return the symbol of the arena in a firmware that runs an inference."""
    return "htvm_run_arena" if program.overwritten else f"{program.name}_arena"


def native_code_bytes(path: Path) -> int:
    """Return the bytes of executable sections of a 64-bit ELF file, 0 for any other format."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.constants import SH_FLAGS
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        try:
            elf = ELFFile(file)
        except ELFError:
            return 0
        code = (s["sh_size"] for s in elf.iter_sections() if s["sh_flags"] & SH_FLAGS.SHF_EXECINSTR)
        return sum(code) if elf.elfclass == 64 else 0
