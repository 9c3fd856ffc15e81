"""The machine code of a program: as a C compiler makes it, or estimated where none can."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_dory.errors import L2OverflowError, ToolchainError
from byoc_dory.memory.arena import ALIGNMENT
from byoc_dory.soc.base import round_up
from htvm.firmware.build import build_arm, build_rv32
from htvm.firmware.sizes import tensor_bytes

if TYPE_CHECKING:
    from htvm.compiled import Compiled
    from htvm.firmware.sizes import Sizes
    from htvm.firmware.toolchain import Compiler

TOLERANCE = 0.75
"""Largest relative error of the estimate."""

WORD_BYTES = 4.5
"""Estimated bytes of code per word of generated C."""

_RESULT = 4  # bytes of the code that a run returns
_ROOMY = 1 << 26
"""Bytes of each memory where the program exceeds its own."""


@dataclass(frozen=True)
class CodeSize:
    """What a program takes beside its constants, arena and stack, in bytes.

    Attributes:
        code: machine code, with the read-only data that the program's list of constants lacks.
        borders: inputs, outputs and the runtime's variables.
        slack: largest error of the code; 0 if a compiler made it.
        said: where the number comes from.
    """

    code: int
    borders: int
    slack: int
    said: str


def code_size(compiled: Compiled, compiler: Compiler | None, constants: int) -> CodeSize:
    """Compile and link a program, and return what that takes.

    Without a compiler of the user's, a program that ziglang's cannot compile, such as one for a
    SoC whose drivers are not written yet, is estimated from the words of its C, without the
    functions of the SoC.

    Args:
        compiled: the program.
        compiler: the user's; ziglang's clang if not given.
        constants: bytes of the program's constants in the same memory, with gaps.

    Raises:
        ToolchainError: the user's compiler failed.
    """
    try:
        sizes = _measured(compiled, compiler)
    except ToolchainError as error:
        if compiler is not None:
            raise
        program = compiled.program
        words = len(f"{program.layers_source} {program.cpu_source}".split())
        code = math.ceil(WORD_BYTES * words)
        tensors = [tensor_bytes((info,)) for info in (*program.l2_inputs, *program.outputs)]
        borders = sum(round_up(size, ALIGNMENT) for size in (*tensors, _RESULT))
        said = f"estimated from the words of its C, +-{TOLERANCE:.0%}: {error.what}"
        return CodeSize(code, borders, math.ceil(TOLERANCE * code), said)
    code = sizes.code + sizes.constants - constants
    said = f"and its own constants, by {sizes.compiler}"
    return CodeSize(code, sizes.io + sizes.other, 0, said)


def _measured(compiled: Compiled, compiler: Compiler | None) -> Sizes:
    """Return the sizes of the linked program, in larger memories than the target's if need be."""
    soc = compiled.target.soc
    build = build_rv32 if soc.host.arm is None else build_arm
    try:
        return build(compiled.program, soc, compiler).sizes
    except L2OverflowError:
        memories = tuple(
            replace(memory, size=max(memory.size, _ROOMY))
            if memory.name in ("L2", soc.code_memory)
            else memory
            for memory in soc.memories
        )
        return build(compiled.program, replace(soc, memories=memories), compiler).sizes
